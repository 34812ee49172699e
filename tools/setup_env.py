"""Make `.venv` from requirements.lock: what `make setup` runs. Standard library only.

Run by whatever Python 3.11+ the machine has. Does nothing, in well under a second, when neither the
lock, nor a pyproject.toml, nor the interpreter, nor this file changed since the last success.

Steps: a venv; `uv` into it by pip, hash-checked against the lock; everything else by that uv, also
hash-checked; the two distributions of this repository, editable. `--pip` does without uv (slower).
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / ".setup-stamp"
LOCK = ROOT / "requirements.lock"
EDITABLES = (ROOT / "clients" / "python", ROOT)
MINIMUM = (3, 11)


class StepFailedError(Exception):
    """A step that did not work: what it was, why, and what to do about it."""

    def __init__(self, step: str, why: str, remedy: str) -> None:
        super().__init__(f"setup failed at: {step}\n  why: {why}\n  what to do: {remedy}")


def fingerprint() -> str:
    """A digest of everything that decides what `.venv` holds."""
    digest = hashlib.sha256(f"{sys.version_info[:2]} {sys.prefix}".encode())
    for path in (LOCK, Path(__file__), *(each / "pyproject.toml" for each in EDITABLES)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def run(step: str, command: list[str], remedy: str) -> None:
    """Run a command with its output shown; a failure names the step and the remedy."""
    started = time.monotonic()
    print(f"setup: {step} …", flush=True)
    # The user's own virtual environment, if one is active, must not be taken for the target.
    env = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    env["UV_LINK_MODE"] = env.get("UV_LINK_MODE", "copy")
    result = subprocess.run(command, cwd=ROOT, env=env, check=False)
    if result.returncode != 0:
        raise StepFailedError(
            step, f"{Path(command[0]).name} ended with {result.returncode} (see above)", remedy
        )
    print(f"setup: {step}: done in {time.monotonic() - started:.1f} s", flush=True)


def venv_version() -> tuple[int, ...] | None:
    """The (major, minor) of the Python in `.venv`; None if there is none that works."""
    code = "import pip, sys; print(*sys.version_info[:2])"
    try:
        result = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return tuple(int(part) for part in result.stdout.split())


def make_venv() -> None:
    """A venv with pip in it, kept if it is there and of our Python: others may be using it.

    Debian ships Python without ensurepip, hence the remedy.
    """
    if venv_version() == sys.version_info[:2]:
        return
    remedy = (
        "install Python's venv module (Debian, Ubuntu: apt install python3-venv), or point make "
        "at a complete Python: make setup PYTHON=/path/to/python3.11"
    )
    try:
        import ensurepip  # noqa: F401  (absent where the distribution split it off)
        import venv  # noqa: F401
    except ImportError as error:
        raise StepFailedError("virtual environment", str(error), remedy) from error
    run("virtual environment", [sys.executable, "-m", "venv", "--clear", str(VENV)], remedy)


def locked(name: str) -> str:
    """The lock's entry of one package, with its hashes."""
    entry = re.search(
        rf"^{re.escape(name)}==.*\n(?:    --hash=.*\n?)+", LOCK.read_text(), re.MULTILINE
    )
    if entry is None:
        raise StepFailedError(
            f"{name} from the lock", f"{LOCK.name} has no entry for it", "make lock"
        )
    return entry.group(0)


def install(*, use_uv: bool) -> None:
    """Everything in the lock, then this repository's own distributions."""
    network = "check that the package index can be reached (a proxy? pip config list), then repeat"
    pip = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "install"]
    if use_uv:
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(locked("uv"))
            file.flush()
            command = [*pip, "--quiet", "--require-hashes", "--no-deps", "-r", file.name]
            run(
                "the installer (uv)",
                command,
                network + "; without uv: make setup SETUP_FLAGS=--pip",
            )
        pip = [str(VENV / "bin" / "uv"), "pip", "install", "--python", str(PYTHON)]
    run(
        f"packages of {LOCK.name}",
        [*pip, "--require-hashes", "-r", str(LOCK)],
        network + "; if a hash differs or a version is gone: make lock",
    )
    editables = [argument for path in EDITABLES for argument in ("-e", str(path))]
    run(
        "this repository's packages",
        [*pip, "--no-deps", "--no-build-isolation", *editables],
        "a pyproject.toml is at fault: see the message above",
    )


def main(arguments: list[str]) -> int:
    """Set up if needed; the exit code."""
    if sys.version_info < MINIMUM:
        print(
            f"setup failed: Python {sys.version.split()[0]} is too old, 3.11 or newer is needed\n"
            "  what to do: make setup PYTHON=/path/to/python3.11",
            file=sys.stderr,
        )
        return 1
    wanted = fingerprint()
    if PYTHON.exists() and STAMP.exists() and STAMP.read_text() == wanted:
        return 0
    started = time.monotonic()
    try:
        make_venv()
        install(use_uv="--pip" not in arguments)
    except StepFailedError as error:
        print(error, file=sys.stderr)
        return 1
    STAMP.write_text(wanted)
    print(f"setup: .venv is ready ({time.monotonic() - started:.0f} s)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

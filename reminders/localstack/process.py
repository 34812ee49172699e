"""Child processes that are stopped with their parent, however it ends.

On Linux each child asks the kernel for a SIGTERM at its parent's death (PR_SET_PDEATHSIG), so that
even `kill -9` of the parent orphans nothing. The kernel means the *thread* that started the child:
hence one thread, kept for the life of the process, starts them all. Elsewhere only an orderly exit
stops them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reminders.localstack.failure import StepFailedError, tail

POLL_S: Final = 0.05
REPORT_EVERY_S: Final = 5.0
STOP_TIMEOUT_S: Final = 20.0
NICE: Final = 10
"""Of who lets others go first. With 19 a store would starve beside tests that compute."""

# Runs in the child before the server does: a fresh interpreter, since Python code between fork and
# exec can deadlock in a process with threads. Arguments: the parent's pid, then the command line.
_DIE_WITH_PARENT: Final = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""
_LET_OTHERS_GO_FIRST: Final = """
import contextlib, os, sys
os.nice(int(sys.argv[1]))
with contextlib.suppress(AttributeError, OSError):  # only on Linux; a sandbox may forbid it
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
os.execv(sys.argv[2], sys.argv[2:])
"""

_starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="localstack-starter")


@dataclass(slots=True, kw_only=True)
class ServerProcess:
    """A server started here.

    Attributes:
        name: as shown to people ("Cassandra").
        process: the running child, in a process group of its own: Ctrl-C reaches it only through
            us.
        logs: the files whose ends tell why it failed.
        started: time.monotonic() at its start.
    """

    name: str
    process: subprocess.Popen[bytes]
    logs: Sequence[Path]
    started: float

    def wait_until(
        self, answers: Callable[[], bool], *, timeout_s: float, progress: Callable[[str], None]
    ) -> None:
        """Block until `answers()` is true, reporting every few seconds.

        Raises:
            StepFailedError: the process ended, or the time is over.
        """
        report_at = time.monotonic() + REPORT_EVERY_S
        while not answers():
            elapsed = time.monotonic() - self.started
            code = self.process.poll()
            if code is not None:
                raise self._failed(
                    f"it ended with exit code {code} after {elapsed:.1f} s", "see the log above"
                )
            if elapsed > timeout_s:
                raise self._failed(
                    f"no answer within {timeout_s:.0f} s",
                    "is the machine overloaded? repeat, or stop what else runs",
                )
            if time.monotonic() >= report_at:
                progress(f"{self.name}: starting … {elapsed:.0f} s")
                report_at += REPORT_EVERY_S
            time.sleep(POLL_S)
        elapsed = time.monotonic() - self.started
        progress(f"{self.name}: answers after {elapsed:.1f} s (pid {self.process.pid})")

    def ask_to_stop(self) -> None:
        """Send SIGTERM; does not wait."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        """SIGTERM, wait, then SIGKILL. Idempotent."""
        self.ask_to_stop()
        try:
            self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _failed(self, why: str, remedy: str) -> StepFailedError:
        return StepFailedError(
            step=f"start {self.name}", why=f"{why}\n{tail(*self.logs)}", remedy=remedy
        )


def yielding(command: Sequence[str]) -> list[str]:
    """The command line that runs it so that this machine's other processes go first.

    Beside them it gets a tenth of their share of a CPU that all of them want, and its threads
    interrupt nobody when they wake (SCHED_BATCH, on Linux).
    """
    return [*_python(_LET_OTHERS_GO_FIRST), str(NICE), *command]


def _python(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


def start(
    name: str,
    command: Sequence[str],
    *,
    output: Path,
    logs: Sequence[Path] = (),
    environment: Mapping[str, str] | None = None,
    keep_open: Sequence[int] = (),
) -> ServerProcess:
    """Start a server with its output in a file.

    Args:
        name: as shown to people.
        command: absolute path of the program, then its arguments.
        output: receives stdout and stderr, emptied first.
        logs: the server's own log files, shown with `output` when it fails.
        environment: added to this process's environment.
        keep_open: descriptors the server inherits (a lock that lives as long as the server does).
    """
    if sys.platform == "linux":
        wrapped = [*_python(_DIE_WITH_PARENT), str(os.getpid()), *command]
    else:
        wrapped = list(command)

    def spawn() -> subprocess.Popen[bytes]:
        with output.open("wb") as sink:
            return subprocess.Popen(
                wrapped,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                pass_fds=tuple(keep_open),
                # Not a session: Linux shares the CPU among sessions first (autogroup), and then
                # niceness counts only within each, and short turns for less.
                process_group=0,
            )

    started = time.monotonic()
    process = _starter.submit(spawn).result()
    return ServerProcess(name=name, process=process, logs=(output, *logs), started=started)

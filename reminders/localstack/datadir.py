"""A data folder belongs to one run at a time, and its servers keep their ports from run to run."""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from reminders.localstack.failure import StepFailedError
from reminders.localstack.ports import free_port, is_free

STOPPING_TIMEOUT_S: Final = 30.0
POLL_S: Final = 0.1


@contextmanager
def hold(data_dir: Path, progress: Callable[[str], None]) -> Iterator[int]:
    """Hold the folder's lock; yields its descriptor.

    Servers inherit the descriptor, so the folder stays locked while any of them lives: when the run
    before was killed, this waits until its servers have stopped.

    Raises:
        StepFailedError: another run holds the folder; says which.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    path = data_dir / "lock"
    with path.open("a+") as file:
        _acquire(file.fileno(), path, progress)
        file.seek(0)
        file.truncate()
        json.dump(
            {
                "pid": os.getpid(),
                "command": " ".join(sys.argv),
                "since": datetime.now(UTC).isoformat(),
            },
            file,
        )
        file.flush()
        yield file.fileno()


def _acquire(descriptor: int, path: Path, progress: Callable[[str], None]) -> None:
    started = time.monotonic()
    announced = False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(path)
            if _alive(holder.get("pid")) or time.monotonic() - started > STOPPING_TIMEOUT_S:
                raise StepFailedError(
                    step=f"use the data in {path.parent}",
                    why="another run uses it: process {pid} ({command}), since {since}".format_map(
                        {"pid": "unknown", "command": "unknown", "since": "unknown", **holder}
                    ),
                    remedy="stop that run, use its servers by their addresses "
                    "(TOCSIN_CASSANDRA_HOSTS, TOCSIN_REDIS_URL), or choose another data folder",
                ) from None
            if not announced:
                progress("waiting for the servers of a run that was killed to stop …")
                announced = True
            time.sleep(POLL_S)
        else:
            return


def _holder(path: Path) -> dict[str, object]:
    try:
        content = json.loads(path.read_text())
    except ValueError:  # caught while being written
        return {}
    return content if isinstance(content, dict) else {}


def _alive(pid: object) -> bool:
    if not isinstance(pid, int):
        return True  # unknown: the careful answer
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class Ports:
    """The ports of one folder's servers: those of the last run while they are free, else new."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known: dict[str, int] = json.loads(file.read_text()) if file.exists() else {}

    def choose(self, name: str, host: str, wanted: int | None = None) -> int:
        """A port for the named server.

        Raises:
            StepFailedError: a port was asked for and is taken.
        """
        if wanted is not None:
            if not is_free(host, wanted):
                raise StepFailedError(
                    step=f"use port {wanted} of {host} for {name}",
                    why="another process listens there",
                    remedy="stop it, or choose another port (none chosen: a free one is found)",
                )
            port = wanted
        elif (last := self._known.get(name)) is not None and is_free(host, last):
            port = last
        else:
            port = free_port(host)
        self._known[name] = port
        self._file.write_text(json.dumps(self._known))
        return port

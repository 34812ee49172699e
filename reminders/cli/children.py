"""The services as child processes: started, waited for, watched, stopped. Never orphaned.

They live in process groups of their own (`localstack.process`), so that a terminal's Ctrl-C reaches
only this process; it then sends SIGTERM, which drains them, and a second Ctrl-C kills them.
"""

import http.client
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from reminders.cli.failure import CommandError
from reminders.config.sources import variable
from reminders.localstack.failure import tail
from reminders.localstack.process import ServerProcess, start

SERVICES = ("scheduler", "scanner", "expander", "dispatcher")
HOST = "127.0.0.1"
READY_TIMEOUT_S = 90.0
REPORT_EVERY_S = 5.0
POLL_S = 0.1


def module_command(module: str, *arguments: str) -> list[str]:
    """`python -m module`, from the installed code whatever the current directory holds."""
    return [sys.executable, "-P", "-m", module, *arguments]


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """One process of a service."""

    service: str
    """Its name; of a second one such as "dispatcher-2"."""
    http_port: int
    log: Path
    process: ServerProcess

    def ensure_alive(self) -> None:
        """Raises CommandError with the end of the log if it has ended."""
        code = self.process.process.poll()
        if code is not None:
            raise CommandError(f"{self.service} ended with exit code {code}", tail(self.log))

    def problems(self) -> list[str]:
        """Why it is not ready; empty if it is."""
        connection = http.client.HTTPConnection(HOST, self.http_port, timeout=1.0)
        try:
            connection.request("GET", "/ready")
            content = json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException, ValueError):
            return ["starting"]
        finally:
            connection.close()
        return list(content.get("problems", ["its /ready is none of ours"]))


@contextmanager
def running(
    environment: Mapping[str, str],
    ports: Mapping[str, int],
    logs: Path,
    progress: Callable[[str], None],
) -> Iterator[Sequence[Child]]:
    """Processes of services, ready, for the length of the block.

    Args:
        environment: on top of this process's own.
        ports: by process, where it answers about its health; "dispatcher-2" is a second one.
        logs: a folder; each process writes `<name>.log`, emptied first.
        progress: gets a line for what takes time.

    Raises:
        CommandError: One ended, or is not ready in time; with its reasons.
    """
    logs.mkdir(parents=True, exist_ok=True)
    children: list[Child] = []
    try:
        for name, port in ports.items():
            service, log = name.partition("-")[0], logs / f"{name}.log"
            told = {**environment, variable(f"{service}_http_port"): str(port)}
            process = start(name, module_command(service), output=log, environment=told)
            children.append(Child(service=name, http_port=port, log=log, process=process))
        _wait_until_ready(children, progress)
        yield children
    finally:
        _stop(children, progress)


def _wait_until_ready(children: Sequence[Child], progress: Callable[[str], None]) -> None:
    started = time.monotonic()
    report_at = started + REPORT_EVERY_S
    waiting = list(children)
    while waiting:
        for child in list(waiting):
            child.ensure_alive()
            if not child.problems():
                waiting.remove(child)
        now = time.monotonic()
        reasons = [f"{child.service}: {', '.join(child.problems())}" for child in waiting]
        if waiting and now - started > READY_TIMEOUT_S:
            logs = [tail(child.log) for child in waiting]
            raise CommandError(f"not ready after {READY_TIMEOUT_S:.0f} s", *reasons, *logs)
        if waiting and now >= report_at:
            progress(f"waiting for {'; '.join(reasons)} ({now - started:.0f} s)")
            report_at += REPORT_EVERY_S
        time.sleep(POLL_S)


def _stop(children: Sequence[Child], progress: Callable[[str], None]) -> None:
    """Drains all of them at once; a second Ctrl-C kills what is left."""
    alive = [child for child in children if child.process.process.poll() is None]
    if not alive:
        return
    progress("stopping the services …")
    try:
        for child in alive:
            child.process.ask_to_stop()
        for child in alive:
            child.process.stop()
    except KeyboardInterrupt:
        for child in alive:
            child.process.process.kill()
            child.process.process.wait()

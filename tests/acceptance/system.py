"""A whole Tocsin of real processes, which tests may stop and kill one by one."""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from reminders.localstack import Endpoints
from reminders.localstack.ports import free_port
from reminders.localstack.process import ServerProcess, start

TOCSIN = Path(sys.executable).with_name("tocsin")
PATIENCE_S = 60.0
"""For what takes a moment on an idle machine; a busy one may take long."""


def until(condition: Callable[[], Any], what: str, patience_s: float = PATIENCE_S) -> Any:
    """Looks until the condition holds. For other processes' doings, which no event tells of."""
    deadline = time.monotonic() + patience_s
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {patience_s} s: {what}")
        time.sleep(0.02)
    return result


# --- the receiver ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One request."""

    at: datetime
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def key(self) -> str:
        """What receivers deduplicate by."""
        return self.headers["x-event-id"]

    @property
    def lateness_s(self) -> float:
        """Against the promise in the body; negative would be early."""
        return (self.at - datetime.fromisoformat(self.body["fireAt"])).total_seconds()


class Receiver:
    """A webhook endpoint on loopback that remembers everything."""

    def __init__(self) -> None:
        self.requests: list[Received] = []
        self._changed = threading.Condition()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                at = datetime.now(UTC)
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver._record(at, self.path, dict(self.headers.items()), body)
                self.send_response(204)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Silent."""

        class Server(ThreadingHTTPServer):
            request_queue_size = 512
            """With its 5, a burst overflows it: connections hang until the sender gives up."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, name="receiver", daemon=True).start()

    def _record(self, at: datetime, path: str, headers: dict[str, str], body: bytes) -> None:
        lowered = {name.lower(): value for name, value in headers.items()}
        with self._changed:
            self.requests.append(Received(at=at, path=path, headers=lowered, body=json.loads(body)))
            self._changed.notify_all()

    def url(self, path: str) -> str:
        """Where to send to."""
        return f"http://127.0.0.1:{self._server.server_port}/{path}"

    def at(self, path: str) -> list[Received]:
        """What came to this path so far."""
        with self._changed:
            return [one for one in self.requests if one.path == f"/{path}"]

    def wait(self, path: str, count: int = 1, patience_s: float = PATIENCE_S) -> list[Received]:
        """Waits until so many different deliveries came to the path, and answers all that came."""
        with self._changed:
            arrived = self._changed.wait_for(
                lambda: len({one.key for one in self.at_unlocked(path)}) >= count, patience_s
            )
            found = self.at_unlocked(path)
        assert arrived, f"{len({one.key for one in found})} of {count} came to /{path}"
        return found

    def at_unlocked(self, path: str) -> list[Received]:
        """For callers that hold the lock."""
        return [one for one in self.requests if one.path == f"/{path}"]

    def close(self) -> None:
        """No more."""
        self._server.shutdown()
        self._server.server_close()


# --- the services ---


def itself(service: str) -> list[str]:
    """As in production."""
    return [sys.executable, "-P", "-m", service]


@dataclass(slots=True, kw_only=True)
class System:
    """The services of one keyspace, each as many times as a test likes."""

    endpoints: Endpoints
    folder: Path
    environment: dict[str, str]
    running: dict[str, tuple[ServerProcess, int]] = field(default_factory=dict)
    own: dict[str, dict[str, str]] = field(default_factory=dict)
    """What single processes are told on top."""
    command: Callable[[str], list[str]] = itself
    """What starts a service."""

    def start(self, *names: str) -> None:
        """Starts `scanner`, `scanner-2`, …, and waits until all of them are ready."""
        for name in names:
            service = name.partition("-")[0]
            port = free_port()
            process = start(
                name,
                self.command(service),
                output=self._fresh_log(name),
                environment={
                    **self.environment,
                    **self.own.get(name, {}),
                    f"TOCSIN_{service.upper()}_HTTP_PORT": str(port),
                },
            )
            self.running[name] = (process, port)
        for name in names:
            until(partial(self.ready, name), f"{name} ready; see {self.folder}")

    def _fresh_log(self, name: str) -> Path:
        """`scanner.log`; that of its predecessor becomes `scanner.1.log`, and so on."""
        log = self.folder / f"{name}.log"
        if log.exists():
            log.rename(self.folder / f"{name}.{len(list(self.folder.glob(f'{name}.*')))}.log")
        return log

    def kill(self, *names: str) -> None:
        """As `kill -9`, without a farewell."""
        for name in names:
            process, _ = self.running.pop(name)
            process.process.send_signal(signal.SIGKILL)
            process.process.wait()

    def stop(self, *names: str) -> list[int]:
        """As SIGTERM; answers the exit codes."""
        stopped = [self.running.pop(name)[0] for name in names]
        for process in stopped:
            process.ask_to_stop()
        for process in stopped:
            process.process.wait(PATIENCE_S)
        return [process.process.returncode for process in stopped]

    def tocsin(self, *arguments: str, expect: int = 0, patience_s: float = PATIENCE_S) -> str:
        """Runs the real command line; answers its output."""
        done = subprocess.run(
            [TOCSIN, *arguments],
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=patience_s,
            check=False,
        )
        told = done.stdout + done.stderr
        assert done.returncode == expect, f"{arguments}: {done.returncode}\n{told}"
        return done.stdout + done.stderr if expect else done.stdout

    def json(self, *arguments: str) -> Any:
        """The same with `--json`, parsed."""
        return json.loads(self.tocsin(*arguments, "--json"))

    def create(self, *arguments: str) -> Any:
        """The reminder that `tocsin create …` answers."""
        return self.json(*arguments)["reminder"]

    def ready(self, name: str) -> bool:
        """Whether it says so; one that has ended is an error."""
        process, port = self.running[name]
        if process.process.poll() is not None:
            raise AssertionError(
                f"{name} ended:\n{(self.folder / f'{name}.log').read_text()[-3000:]}"
            )
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
        try:
            connection.request("GET", "/ready")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()


SERVICES: Sequence[str] = ("scheduler", "scanner", "scanner-2", "expander", "dispatcher")


@contextmanager
def system(endpoints: Endpoints, folder: Path, **settings: str) -> Iterator[System]:
    """A migrated keyspace of its own; nothing runs yet. Stops what is left at the end."""
    environment = {
        "TOCSIN_CASSANDRA_HOSTS": endpoints.cassandra_hosts,
        "TOCSIN_CASSANDRA_KEYSPACE": f"acceptance_{os.getpid()}",
        "TOCSIN_REDIS_URL": endpoints.redis_url,
        "TOCSIN_GRPC_ADDRESS": f"127.0.0.1:{free_port()}",
        "TOCSIN_SHARDS": "4",
        "TOCSIN_ALLOW_LOOPBACK_HTTP": "true",
        **{f"TOCSIN_{name.upper()}": value for name, value in settings.items()},
    }
    made = System(endpoints=endpoints, folder=folder, environment=environment)
    made.tocsin("migrate")
    try:
        yield made
    finally:
        made.stop(*list(made.running))

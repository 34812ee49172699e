"""The services, two of each, which scenarios may kill, stop, wake and start again."""

import http.client
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct, field

from reminders.localstack import Endpoints
from reminders.localstack.ports import free_port
from tests.acceptance.system import System, itself, until
from tests.chaos import planted

ONE_OF_EACH = ("scheduler", "scanner", "expander", "dispatcher")
TWO_OF_EACH = tuple(name for one in ONE_OF_EACH for name in (one, f"{one}-2"))
CALM_S = 180.0
"""For a process to be ready on a busy machine."""


class Fleet(Struct, kw_only=True):
    """The processes of one keyspace."""

    system: System
    names: tuple[str, ...]
    grpc: dict[str, str]
    """Addresses of the schedulers, by name."""
    killed: set[str] = field(default_factory=set)

    @property
    def keyspace(self) -> str:
        """Where they store."""
        return self.system.environment["TOCSIN_CASSANDRA_KEYSPACE"]

    def start(self, *names: str, **settings: str) -> None:
        """Starts them, with settings of their own, and waits until they are ready."""
        for name in names:
            self.system.own[name] = {f"TOCSIN_{key.upper()}": v for key, v in settings.items()}
            if name in self.grpc:
                self.system.own[name]["TOCSIN_GRPC_ADDRESS"] = self.grpc[name]
        self.system.start(*names)
        self.killed -= set(names)

    def complete(self) -> None:
        """Starts what is missing."""
        missing = [name for name in self.names if name not in self.system.running]
        self.start(*missing)

    def ready(self) -> None:
        """Waits until all of them are."""
        for name in self.system.running:
            until(lambda name=name: self.system.ready(name), f"{name} ready", CALM_S)  # type: ignore[misc]

    def kill(self, *names: str) -> None:
        """As `kill -9`."""
        self.killed |= set(names)
        self.system.kill(*names)

    def stop(self, *names: str) -> None:
        """As SIGTERM; they must end well."""
        processes = {name: self.system.running[name][0].process for name in names}
        try:
            codes = self.system.stop(*names)
        except subprocess.TimeoutExpired:
            stuck = [name for name, process in processes.items() if process.poll() is None]
            for process in processes.values():
                process.kill()
            raise AssertionError(f"{stuck} did not end on SIGTERM") from None
        assert codes == [0] * len(names), f"{names} ended with {codes}"

    def pause(self, *names: str) -> None:
        """SIGSTOP."""
        for name in names:
            self.system.running[name][0].process.send_signal(signal.SIGSTOP)

    def resume(self, *names: str) -> None:
        """SIGCONT."""
        for name in names:
            self.system.running[name][0].process.send_signal(signal.SIGCONT)

    def dead(self) -> list[str]:
        """Those that ended by themselves, with the end of their logs; they are forgotten."""
        told = []
        for name, (process, _) in list(self.system.running.items()):
            if (code := process.process.poll()) is not None:
                del self.system.running[name]
                log = (self.system.folder / f"{name}.log").read_text(errors="replace")[-1500:]
                told.append(f"{name} ended by itself with {code}:\n{log}")
        return told

    def shards_led(self, name: str) -> int:
        """How many shards a scanner leads, as its /metrics tell."""
        _, port = self.system.running[name]
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
        finally:
            connection.close()
        lines = [line for line in text.splitlines() if line.startswith("tocsin_leads")]
        return int(sum(float(line.split()[-1]) for line in lines))


@contextmanager
def fleet(
    endpoints: Endpoints,
    folder: Path,
    names: tuple[str, ...],
    *,
    fault: str | None = None,
    **settings: str,
) -> Iterator[Fleet]:
    """A keyspace of its own; nothing runs yet. Stops what is left at the end. `fault`: one of
    `planted`, in every service.
    """
    system = System(
        endpoints=endpoints,
        folder=folder,
        environment={
            "PYTHONTZPATH": "",
            "TOCSIN_CASSANDRA_HOSTS": endpoints.cassandra_hosts,
            "TOCSIN_CASSANDRA_KEYSPACE": f"chaos_{os.getpid()}",
            "TOCSIN_REDIS_URL": endpoints.redis_url,
            "TOCSIN_ALLOW_LOOPBACK_HTTP": "true",
            **{f"TOCSIN_{name.upper()}": value for name, value in settings.items()},
            **(planted.environment(fault) if fault else {}),
        },
        command=planted.command if fault else itself,
    )
    system.tocsin("migrate", patience_s=CALM_S)  # three nodes agree on each schema in seconds
    made = Fleet(
        system=system,
        names=names,
        grpc={name: f"127.0.0.1:{free_port()}" for name in names if name.startswith("scheduler")},
    )
    try:
        yield made
    finally:
        for process, _ in system.running.values():
            if process.process.poll() is None:
                process.process.send_signal(signal.SIGCONT)
        system.stop(*list(system.running))

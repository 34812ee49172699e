"""The real stack: servers with empty data, a keyspace, the four services as processes.

Cassandra syncs its commit log periodically, as ordinary clusters do and as the peers were
measured (`reminders.localstack.cassandra` says why a local node does otherwise by default).
Servers that the environment names are used as they are; what they cost is not seen then.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from bench.harness.machine import Meter, child_running
from reminders.cli import children
from reminders.cli.stack import migrate
from reminders.localstack import Endpoints, provide
from reminders.localstack.cassandra import COMMITLOG_VARIABLE
from reminders.localstack.ports import free_port
from reminders.storage.settings import StorageSettings

Progress = Callable[[str], None]

SETTLE_S = 1.0
"""After start-up, before anything is measured."""
QUIET_CORES, QUIET_FOR_S, QUIET_WITHIN_S = 0.15, 2.0, 60.0
"""Idle is less than so many cores, all together, for so long."""
SEPARATE_S = 32.0
"""Beyond the look-ahead (30 s): what is due later is found by the scanner's ordinary reading."""


@dataclass(slots=True, kw_only=True)
class Stack:
    """What runs."""

    endpoints: Endpoints
    folder: Path
    shards: int
    dispatchers: int
    keyspace: str
    bare_keyspace: str
    """The same tables for the references."""
    progress: Progress
    servers: Mapping[str, int]
    """Pids by name, of servers that were started here."""
    environment: dict[str, str] = field(default_factory=dict)
    services: dict[str, int] = field(default_factory=dict)
    """Pids by name; empty while no service runs."""
    warm: bool = False
    """Fires have run for a while: Cassandra's JIT takes its time, and half of the machine."""

    @property
    def grpc_address(self) -> str:
        """Of the scheduler."""
        return self.environment["TOCSIN_GRPC_ADDRESS"]

    @property
    def processes(self) -> dict[str, int]:
        """All pids that were started here, by name."""
        return {**self.services, **self.servers}

    def storage(self, keyspace: str) -> StorageSettings:
        """For a process that talks to Cassandra as the services do."""
        return StorageSettings(
            hosts=tuple(self.endpoints.cassandra_hosts.split(",")),
            keyspace=keyspace,
            shards=self.shards,
            retention=timedelta(days=90),
        )

    @contextmanager
    def running(self, dispatchers: int | None = None) -> Iterator[None]:
        """The four services, ready; as many dispatchers as were asked for, here or at all."""
        count = self.dispatchers if dispatchers is None else dispatchers
        more = [f"dispatcher-{number}" for number in range(2, count + 1)]
        ports = {name: free_port() for name in (*children.SERVICES, *more)}
        self.environment["TOCSIN_GRPC_ADDRESS"] = f"{children.HOST}:{free_port()}"
        self.progress(f"starting {', '.join(ports)} …")
        with children.running(
            self.environment, ports, self.folder / "logs", self.progress
        ) as started:
            self.services = {child.service: child.process.process.pid for child in started}
            try:
                time.sleep(SETTLE_S)
                yield
            finally:
                self.services = {}

    def quiet(self) -> None:
        """Returns when our processes are idle: Cassandra compacts what the last line wrote, and
        the next one must not pay for it. At most `QUIET_WITHIN_S` later.
        """
        end = time.monotonic() + QUIET_WITHIN_S
        while time.monotonic() < end:
            meter = Meter(self.processes)
            meter.start()
            time.sleep(QUIET_FOR_S)
            usage = meter.stop()
            if sum(usage.cpu.values()) < QUIET_CORES * usage.seconds:
                return
        self.progress("  it does not get quiet …")


@contextmanager
def real_stack(
    folder: Path, *, shards: int, dispatchers: int, progress: Progress
) -> Iterator[Stack]:
    """Servers and schema; services start with `Stack.running`. All of it is stopped at the end."""
    os.environ.setdefault(COMMITLOG_VARIABLE, "periodic")
    with provide(folder / "servers", progress=progress, fresh=True) as endpoints:
        pids = {
            "Cassandra": child_running("CassandraDaemon"),
            "Redis": child_running("redis-server"),
        }
        stack = Stack(
            endpoints=endpoints,
            folder=folder,
            shards=shards,
            dispatchers=dispatchers,
            keyspace=f"bench_{os.getpid()}",
            bare_keyspace=f"bench_bare_{os.getpid()}",
            progress=progress,
            servers={name: pid for name, pid in pids.items() if pid is not None},
        )
        stack.environment = {
            "PYTHONTZPATH": "",
            "TOCSIN_CASSANDRA_HOSTS": endpoints.cassandra_hosts,
            "TOCSIN_REDIS_URL": endpoints.redis_url,
            "TOCSIN_HTTP_HOST": children.HOST,
            "TOCSIN_SHARDS": str(shards),
            "TOCSIN_ALLOW_LOOPBACK_HTTP": "true",
        }
        for keyspace in (stack.keyspace, stack.bare_keyspace):
            stack.environment["TOCSIN_CASSANDRA_KEYSPACE"] = keyspace
            migrate(stack.environment, progress)
        stack.environment["TOCSIN_CASSANDRA_KEYSPACE"] = stack.keyspace
        yield stack


def commit_log() -> str:
    """How Cassandra syncs, for the report."""
    return os.environ.get(COMMITLOG_VARIABLE, "periodic")

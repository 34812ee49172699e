"""The real adapters, put together from the settings. Only the services' `__main__`s call this,
and commands that work on the servers themselves: `tocsin migrate` and `tocsin zones recompute`.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

import structlog
import tenacity

from reminders.config.agreed import limits_of
from reminders.config.settings import Settings
from reminders.coordination.adapter import RedisCoordination
from reminders.coordination.connection import Lives
from reminders.errors import CoordinationUnavailable, Unavailable
from reminders.findings import Finding, Severity
from reminders.platform import Platform
from reminders.storage.settings import StorageSettings
from reminders.storage.store import CassandraStore

log = structlog.get_logger(__name__)

WATCH_EVERY = timedelta(seconds=2)
PATIENCE = timedelta(seconds=60)
"""How long a service's start waits for a server that does not answer yet."""
SHORT_PATIENCE = timedelta(seconds=10)
"""The same for a command: somebody waits for it."""


class DangerousServerError(RuntimeError):
    """A server is set up such that reminders could be lost; the message says what to change."""


def storage_settings(settings: Settings, patience: timedelta = PATIENCE) -> StorageSettings:
    """The part that the Cassandra adapter needs."""
    password = settings.cassandra_password
    return StorageSettings(
        hosts=settings.cassandra_hosts,
        keyspace=settings.cassandra_keyspace,
        shards=settings.shards,
        datacenter=settings.cassandra_datacenter,
        replication=settings.cassandra_replication,
        username=settings.cassandra_username,
        password=password.get_secret_value() if password else None,
        retention=settings.retention,
        connect_patience=patience,
    )


@asynccontextmanager
async def connected(
    settings: Settings, *, patience: timedelta = PATIENCE
) -> AsyncIterator[Platform]:
    """Connects to both servers, checks them, and closes at the end.

    Raises `DangerousServerError`, or `Unavailable` when a server did not answer for so long.
    """
    async with AsyncExitStack() as stack:
        store = await CassandraStore.connect(storage_settings(settings, patience))
        stack.push_async_callback(store.close)
        _heed("cassandra", store.findings)
        coordination = await _redis(settings, patience)
        stack.push_async_callback(coordination.close)
        _heed("redis", await coordination.inspect())
        yield Platform(
            store=store,
            coordination=coordination,
            clock=coordination.clock,
            limits=limits_of(settings),
        )


async def _redis(settings: Settings, patience: timedelta) -> RedisCoordination:
    patiently = tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception_type(CoordinationUnavailable),
        wait=tenacity.wait_exponential(multiplier=0.1, max=2),
        stop=tenacity.stop_after_delay(patience),
        before_sleep=lambda state: log.warning("redis.awaited", attempt=state.attempt_number),
        reraise=True,
    )
    return await patiently(
        RedisCoordination.connect,
        settings.redis_url,
        lookahead=settings.lookahead,
        margin=settings.void_margin,
        lives=Lives(lease=settings.lease_ttl),
    )


def _heed(server: str, findings: Sequence[Finding]) -> None:
    for finding in findings:
        if finding.severity is Severity.REFUSE:
            raise DangerousServerError(f"{server}: {finding.remedy}")
        log.warning("server.finding", server=server, finding=finding.name, remedy=finding.remedy)


class ServerWatch:
    """Asks both servers now and then whether they answer: what /ready and gRPC health tell."""

    def __init__(self, platform: Platform) -> None:
        self._pings = {"Cassandra": platform.store.ping, "Redis": platform.coordination.ping}
        self._silent: dict[str, str] = {}

    def problems(self) -> list[str]:
        """Which of them did not answer the last time."""
        return [f"{name} does not answer: {why}" for name, why in self._silent.items()]

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`."""
        while not stop.is_set():
            for name, ping in self._pings.items():
                try:
                    await ping()
                    self._silent.pop(name, None)
                except Unavailable as error:
                    self._silent[name] = str(error)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), timeout=WATCH_EVERY.total_seconds())

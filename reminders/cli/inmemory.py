"""`tocsin up --in-memory`: the whole of Tocsin in this process, on the in-memory adapters.

For people who write clients. The services are the real ones, wired to adapters that forget
everything at the end; the only module outside of the services' `__main__`s that wires them.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

import structlog

from dispatcher.channels.opening import open_channels
from dispatcher.configured import events_of, settings_of
from dispatcher.service import Dispatcher
from expander.expansion import Expansion
from expander.service import Expander
from reminders.cli.failure import CommandError
from reminders.cli.stack import LOCAL_SHARDS, checked_settings, ensure_free
from reminders.clock import SystemClock
from reminders.config.agreed import limits_of
from reminders.config.limits import request_limits
from reminders.config.settings import Settings, given_values
from reminders.lifecycle import Reminders
from reminders.memory.coordination import MemoryCoordination
from reminders.memory.store import MemoryStore
from reminders.platform import Platform
from reminders.process import Service, run, use_packaged_zones
from scanner.service import Scanner
from scheduler.server import Scheduler
from scheduler.settings import SchedulerSettings, channel_rules

READY_POLL = timedelta(milliseconds=10)


def up() -> None:
    """Runs until Ctrl-C; a failure is a CommandError."""
    use_packaged_zones()
    settings = checked_settings(allow_loopback_http=True)
    ensure_free(settings.grpc_address)
    given = given_values()
    changes: dict[str, object] = {} if "shards" in given else {"shards": LOCAL_SHARDS}
    changes |= {} if "log_format" in given else {"log_format": "console"}
    code = run("in-memory", build, settings.model_copy(update=changes), http_port=0)
    if code != 0:
        raise CommandError("it ended; the log above says why", exit_code=code)


@asynccontextmanager
async def build(settings: Settings, stop: asyncio.Event) -> AsyncIterator[Service]:
    """All four services on one platform."""
    del stop
    platform = in_memory(settings)
    reminders = Reminders(platform)
    async with open_channels(settings, platform.clock) as senders:
        yield Everything(
            settings.grpc_address,
            {
                "scheduler": Scheduler(
                    reminders,
                    platform.clock,
                    SchedulerSettings(
                        address=settings.grpc_address,
                        allow_loopback_http=settings.allow_loopback_http,
                        channels=channel_rules(settings),
                        limits=request_limits(settings),
                        max_creates=settings.scheduler_max_inflight,
                    ),
                    stores=list,
                ),
                "scanner": Scanner(platform, reminders.changes.finish),
                "expander": Expander(platform, Expansion(platform, reminders)),
                "dispatcher": Dispatcher(
                    platform,
                    settings_of(settings),
                    reminders.changes.finish,
                    reminders.backfills.turn,
                    senders,
                    events=events_of(settings, platform, reminders),
                ),
            },
        )


def in_memory(settings: Settings) -> Platform:
    """Adapters that keep everything in this process, on this machine's clock."""
    clock = SystemClock()
    return Platform(
        store=MemoryStore(shards=settings.shards, started_at=clock.now()),
        coordination=MemoryCoordination(
            clock,
            lookahead=settings.lookahead,
            margin=settings.void_margin,
            lease_life=settings.lease_ttl,
        ),
        clock=clock,
        limits=limits_of(settings),
    )


@dataclass(frozen=True, slots=True)
class Everything:
    """Several services as one; one that dies ends them all."""

    address: str
    services: dict[str, Service]

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`, then all are drained."""
        async with asyncio.TaskGroup() as group:
            for name, service in self.services.items():
                group.create_task(run_named(name, service, stop), name=name)
            group.create_task(self.announce(stop), name="announce")

    def problems(self) -> Sequence[str]:
        """Of all of them."""
        return [
            f"{name}: {problem}"
            for name, service in self.services.items()
            for problem in service.problems()
        ]

    async def announce(self, stop: asyncio.Event) -> None:
        """Says, once it is true, where it is and what it is not."""
        while self.problems() and not stop.is_set():  # noqa: ASYNC110 - nobody signals readiness
            await asyncio.sleep(READY_POLL.total_seconds())
        sys.stdout.write(
            f"Tocsin is up in memory: gRPC on {self.address}.\n"
            "NOTHING IS DURABLE: when this ends, all reminders are gone. "
            "Loopback HTTP is allowed for webhooks. Ctrl-C stops it.\n"
        )
        sys.stdout.flush()


async def run_named(name: str, service: Service, stop: asyncio.Event) -> None:
    """Its log lines carry its name."""
    structlog.contextvars.bind_contextvars(service=name)
    await service.run(stop)

"""`tocsin up --in-memory`: all services in this process, on the adapters in memory.

The one place that knows all services at once; everything else starts them as processes.
"""

import asyncio
import contextlib
import signal
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dispatcher.__main__ import dispatching
from expander.expansion import Expansion
from expander.service import Expander
from reminders.cli import render
from reminders.cli.stack import checked_settings
from reminders.clock import SystemClock
from reminders.config.settings import Settings
from reminders.lifecycle import Reminders
from reminders.memory.coordination import MemoryCoordination
from reminders.memory.store import MemoryStore
from reminders.platform import Limits, Platform
from reminders.process import Service, use_packaged_zones
from reminders.telemetry.logs import configure_logging
from scanner.service import Scanner
from scheduler.server import Scheduler
from scheduler.settings import SchedulerSettings

SHARDS = 4


def up() -> None:
    """Serves until Ctrl-C."""
    use_packaged_zones()
    settings = checked_settings().model_copy(update={"allow_loopback_http": True})
    configure_logging(
        service="in-memory", instance=str(uuid.uuid4()), level="warning", style="console"
    )
    asyncio.run(_serve(settings))


async def _serve(settings: Settings) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with services(settings) as running, asyncio.TaskGroup() as group:
        for service in running:
            group.create_task(service.run(stop), name=type(service).__name__)
        render.console().print(
            f"Tocsin is up in memory: gRPC on {settings.grpc_address}.\n"
            "Nothing is durable: all reminders are gone when this ends. "
            "Loopback HTTP is allowed for webhooks. Ctrl-C stops it."
        )
        await stop.wait()


@asynccontextmanager
async def services(settings: Settings) -> AsyncIterator[list[Service]]:
    """Scheduler, scanner, expander and dispatcher on one memory."""
    clock = SystemClock()
    limits = Limits(shards=SHARDS, lookahead=settings.lookahead, margin=settings.void_margin)
    platform = Platform(
        store=MemoryStore(shards=SHARDS, started_at=clock.now()),
        coordination=MemoryCoordination(clock, lookahead=limits.lookahead, margin=limits.margin),
        clock=clock,
        limits=limits,
    )
    reminders = Reminders(platform)
    scheduler = SchedulerSettings(address=settings.grpc_address, allow_loopback_http=True)
    async with contextlib.AsyncExitStack() as stack:
        dispatcher = await stack.enter_async_context(dispatching(platform, settings))
        yield [
            Scheduler(reminders, clock, scheduler),
            Scanner(platform, reminders.changes.finish),
            Expander(platform, Expansion(platform, reminders)),
            dispatcher,
        ]

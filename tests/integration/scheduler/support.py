"""The whole service without servers: gRPC, validation and the real use cases."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import grpc

from reminders.clock import ManualClock
from reminders.lifecycle import Reminders
from reminders.memory.coordination import MemoryCoordination
from reminders.platform import Limits, Platform
from reminders.ports import Store
from scheduler.server import Scheduler
from scheduler.settings import SchedulerSettings

SHARDS = 4


@asynccontextmanager
async def serving(
    store: Store, clock: ManualClock, settings: SchedulerSettings
) -> AsyncIterator[grpc.aio.Channel]:
    """A channel to one on that store; what is Redis otherwise is in memory."""
    limits = Limits(shards=SHARDS)
    platform = Platform(
        store=store,
        coordination=MemoryCoordination(clock, lookahead=limits.lookahead, margin=limits.margin),
        clock=clock,
        limits=limits,
    )
    scheduler = Scheduler(Reminders(platform), clock, settings)
    port = await scheduler.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield channel
    await scheduler.stop(timedelta(0))

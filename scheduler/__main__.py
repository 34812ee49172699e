"""`python -m scheduler`: wires the adapters and runs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from reminders.config.limits import request_limits
from reminders.config.settings import Settings
from reminders.lifecycle import Reminders
from reminders.process import run_service
from reminders.wiring import ServerWatch, connected
from scheduler.server import Scheduler
from scheduler.settings import SchedulerSettings, channel_rules


@asynccontextmanager
async def build(settings: Settings, stop: asyncio.Event) -> AsyncIterator[Scheduler]:
    """The service on its adapters."""
    async with connected(settings) as platform, asyncio.TaskGroup() as group:
        watch = ServerWatch(platform)
        group.create_task(watch.run(stop), name="server-watch")
        yield Scheduler(
            Reminders(platform),
            platform.clock,
            SchedulerSettings(
                address=settings.grpc_address,
                allow_loopback_http=settings.allow_loopback_http,
                channels=channel_rules(settings),
                limits=request_limits(settings),
                max_creates=settings.scheduler_max_inflight,
                call_timeout=settings.call_timeout,
            ),
            stores=watch.problems,
        )


if __name__ == "__main__":
    run_service("scheduler", build)

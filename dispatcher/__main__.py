"""`python -m dispatcher`: wires the adapters and the channels, and runs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dispatcher.channels.opening import open_channels
from dispatcher.configured import events_of, settings_of
from dispatcher.service import Dispatcher
from reminders.config.settings import Settings
from reminders.lifecycle import Reminders
from reminders.platform import Platform
from reminders.process import run_service
from reminders.wiring import connected


@asynccontextmanager
async def dispatching(platform: Platform, settings: Settings) -> AsyncIterator[Dispatcher]:
    """The service with its channels."""
    async with open_channels(settings, platform.clock) as senders:
        reminders = Reminders(platform)
        yield Dispatcher(
            platform,
            settings_of(settings),
            reminders.changes.finish,
            reminders.backfills.turn,
            senders,
            events=events_of(settings, platform, reminders),
        )


@asynccontextmanager
async def build(settings: Settings, stop: asyncio.Event) -> AsyncIterator[Dispatcher]:
    """The service on its adapters."""
    del stop
    async with connected(settings) as platform, dispatching(platform, settings) as dispatcher:
        yield dispatcher


if __name__ == "__main__":
    run_service("dispatcher", build)

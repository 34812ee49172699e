"""`python -m dispatcher`: wires the adapters and the channels, and runs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dispatcher.channels.log import LogSender
from dispatcher.channels.webhook import WebhookSender
from dispatcher.service import Dispatcher
from dispatcher.settings import DispatcherSettings
from reminders.config.settings import Settings
from reminders.lifecycle import Reminders
from reminders.platform import Platform
from reminders.process import run_service
from reminders.wiring import connected


@asynccontextmanager
async def dispatching(platform: Platform, settings: Settings) -> AsyncIterator[Dispatcher]:
    """The service with its channels."""
    async with WebhookSender(
        platform.clock, allow_loopback_http=settings.allow_loopback_http
    ) as webhook:
        yield Dispatcher(
            platform,
            DispatcherSettings(
                max_in_flight=settings.dispatcher_concurrency,
                per_destination=settings.dispatcher_destination_concurrency,
            ),
            Reminders(platform).changes.finish,
            {"webhook": webhook, "log": LogSender()},
        )


@asynccontextmanager
async def build(settings: Settings, stop: asyncio.Event) -> AsyncIterator[Dispatcher]:
    """The service on its adapters."""
    del stop
    async with connected(settings) as platform, dispatching(platform, settings) as dispatcher:
        yield dispatcher


if __name__ == "__main__":
    run_service("dispatcher", build)

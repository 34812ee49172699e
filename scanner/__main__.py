"""`python -m scanner`: wires the adapters and runs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from reminders.config.settings import Settings
from reminders.lifecycle import Reminders
from reminders.process import run_service
from reminders.wiring import connected
from scanner.service import Scanner


@asynccontextmanager
async def build(settings: Settings, stop: asyncio.Event) -> AsyncIterator[Scanner]:
    """The service on its adapters."""
    del stop
    async with connected(settings) as platform:
        yield Scanner(platform, Reminders(platform).changes.finish)


if __name__ == "__main__":
    run_service("scanner", build)

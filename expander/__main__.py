"""`python -m expander`: wires the adapters and runs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from expander.expansion import Expansion
from expander.service import Expander
from reminders.config.settings import Settings
from reminders.lifecycle import Reminders
from reminders.process import run_service
from reminders.wiring import connected


@asynccontextmanager
async def build(settings: Settings, stop: asyncio.Event) -> AsyncIterator[Expander]:
    """The service on its adapters."""
    del stop
    async with connected(settings) as platform:
        yield Expander(platform, Expansion(platform, Reminders(platform)))


if __name__ == "__main__":
    run_service("expander", build)

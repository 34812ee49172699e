"""Settling waits while a store does not answer; nothing is acknowledged meanwhile."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import ParamSpec, TypeVar

import structlog

from reminders.errors import Unavailable
from reminders.ports import Clock

FIRST_WAIT = timedelta(milliseconds=100)
LONGEST_WAIT = timedelta(seconds=5)

P = ParamSpec("P")
T = TypeVar("T")

log = structlog.get_logger()


class Insistence:
    """Repeats calls of ports until they are answered; cancelling ends it, as a drain does."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def __call__(
        self, call: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The answer. Every port call is safe to repeat with the same arguments."""
        wait = FIRST_WAIT
        while True:
            try:
                return await call(*args, **kwargs)
            except Unavailable as error:
                log.warning("settling.waits", operation=error.operation, reason=error.reason)
            await self._clock.sleep_until(self._clock.now() + wait)
            wait = min(wait * 2, LONGEST_WAIT)

"""Seconds since a process began, with and without those in which it stood still."""

import math
from datetime import timedelta

from reminders.ports import Clock

ON_TIME_S = 0.02
"""A look that is later than this by so much was kept from it by this process itself."""


class Timepiece:
    """Receivers are timed by what it answers as `awake`: time in which this process stood still, or
    was short of CPU, is nobody else's slowness. It is told when a look is due, and learns from that
    look's delay.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began_at = clock.now() - timedelta(seconds=1)
        """So that nothing begins at 0."""
        self._lost_s = 0.0
        self._look_at = math.inf

    def now(self) -> float:
        """Seconds, all of them."""
        return (self._clock.now() - self._began_at).total_seconds()

    def awake(self, now: float) -> float:
        """The same without the time that this process stood still."""
        return now - self._lost_s - self._overdue_s(now)

    async def sleep_until(self, now: float) -> None:
        """Until that second."""
        await self._clock.sleep_until(self._began_at + timedelta(seconds=now))

    async def look_after(self, wait: timedelta) -> None:
        """Sleeps so long, and notices how much longer it became."""
        wake = self._clock.now() + wait
        self._look_at = (wake - self._began_at).total_seconds()
        await self._clock.sleep_until(wake)
        self._lost_s += self._overdue_s(self.now())
        self._look_at = math.inf

    def _overdue_s(self, now: float) -> float:
        overdue_s = now - self._look_at
        return overdue_s if overdue_s > ON_TIME_S else 0.0

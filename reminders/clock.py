"""Clocks without I/O: the machine's own for the in-memory mode, and one that tests move by hand."""

import asyncio
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from itertools import count

LONGEST_NAP_S = 1.0
"""A sleeper looks again at least so often: the machine's clock may be set meanwhile."""
HALF_TICK_S = 0.0005
SETTLING_STEPS = 50
"""Turns of the loop that `ManualClock.run_until` gives to what it woke."""


async def nap(left_s: float, *, exact: bool) -> None:
    """For so long at most. The services' event loop rounds to whole milliseconds: an exact nap may
    end half of one early, and the rest is spent in turns of the loop; another is rounded up.
    """
    await asyncio.sleep(min(left_s if exact else left_s + HALF_TICK_S, LONGEST_NAP_S))


class SystemClock:
    """Implements `ports.Clock` by this machine's clock alone, for a single process."""

    def __init__(self) -> None:
        self._latest = datetime.now(UTC)

    def now(self) -> datetime:
        """Stands still while the machine's clock is set back."""
        self._latest = max(self._latest, datetime.now(UTC))
        return self._latest

    def at_least(self) -> datetime:
        """It is the reference."""
        return self.now()

    async def refresh(self) -> None:
        """There is nothing to look at."""

    def in_bounds(self) -> bool:
        """There is nothing to differ from."""
        return True

    async def sleep_until(self, at: datetime, *, exact: bool = False) -> None:
        """Looks again when a timer wakes it early."""
        while (left := at - self.now()) > timedelta(0):
            await nap(left.total_seconds(), exact=exact)


class ManualClock:
    """Implements `ports.Clock` for tests and simulations: time passes only when told to."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        if start.tzinfo is None:
            raise ValueError("a clock starts at an aware datetime")
        self._now = start
        self._sleepers: list[tuple[datetime, int, asyncio.Future[None]]] = []
        self._order = count()
        self._fell_asleep = asyncio.Condition()
        self.unsure = timedelta(0)
        """How far `at_least` is behind, until the next `refresh`."""
        self.bounds = True
        """What `in_bounds` answers."""

    def now(self) -> datetime:
        """Where the test put it."""
        return self._now

    def at_least(self) -> datetime:
        """As far behind as the test says."""
        return self._now - self.unsure

    async def refresh(self) -> None:
        """Now it is sure."""
        self.unsure = timedelta(0)

    def in_bounds(self) -> bool:
        """As the test says."""
        return self.bounds

    async def sleep_until(self, at: datetime, *, exact: bool = False) -> None:
        """Until the test moves the clock to `at` or past it."""
        del exact
        while at > self._now:
            awake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            heappush(self._sleepers, (at, next(self._order), awake))
            async with self._fell_asleep:
                self._fell_asleep.notify_all()
            await awake

    @property
    def next_wake(self) -> datetime | None:
        """When the next sleeper wakes; None if nobody sleeps."""
        while self._sleepers and self._sleepers[0][2].done():
            heappop(self._sleepers)  # cancelled
        return self._sleepers[0][0] if self._sleepers else None

    @property
    def sleeping(self) -> int:
        """How many sleep."""
        return sum(not awake.done() for _, _, awake in self._sleepers)

    async def until_sleeping(self, sleepers: int = 1) -> None:
        """Return once at least so many sleep: what is under test got as far as it can."""
        async with self._fell_asleep:
            await self._fell_asleep.wait_for(lambda: self.sleeping >= sleepers)

    def advance(self, span: timedelta) -> None:
        """Let time pass at once; whoever is due wakes in order of its time, when the loop turns."""
        self.move_to(self._now + span)

    def move_to(self, at: datetime) -> None:
        """Like `advance`; never back."""
        if at < self._now:
            raise ValueError(f"the clock stands at {self._now} and can't go back to {at}")
        self._now = at
        while (wake := self.next_wake) is not None and wake <= at:
            heappop(self._sleepers)[2].set_result(None)

    async def run_until(self, at: datetime) -> None:
        """Let time pass in steps: each sleeper finds the clock at its own time.

        It has some turns of the loop before the next one wakes. For code that waits for this clock
        alone, not for a server.
        """
        await _settle()
        while (wake := self.next_wake) is not None and wake <= at:
            self.move_to(max(wake, self._now))
            await _settle()
        self.move_to(at)
        await _settle()


async def _settle() -> None:
    for _ in range(SETTLING_STEPS):
        await asyncio.sleep(0)

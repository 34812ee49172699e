"""The reference clock: the time of the Redis server that is in charge."""

from datetime import datetime

from tests.simulation.loop import VirtualLoop
from tests.simulation.process import MICROSECOND, Process


class ServerClock:
    """The reference: Redis's TIME."""

    def __init__(self, loop: VirtualLoop, base: datetime) -> None:
        self._loop = loop
        self._base = base
        self._at_us = -1
        self._now = base
        self.offset_us = 0
        """Minus true time: the server that is in charge now."""
        self.caller: Process | None = None

    def now(self) -> datetime:
        """By the server that is in charge."""
        if self._loop.now_us != self._at_us:
            self._at_us = self._loop.now_us
            self._now = self._base + MICROSECOND * (self._at_us + self.offset_us)
        return self._now

    def of_the_caller(self) -> "CallerClock":
        """The clock of whoever makes the call that takes effect now: only a planted fault asks."""
        assert self.caller is not None
        return CallerClock(self._loop, self.caller)

    def set_offset(self, offset_us: int) -> None:
        """Another server is in charge."""
        self.offset_us = offset_us
        self._at_us = -1

    def at_least(self) -> datetime:
        """It is the reference."""
        return self.now()

    async def refresh(self) -> None:
        """It is the reference."""

    def in_bounds(self) -> bool:
        """It is the reference."""
        return True

    async def sleep_until(self, at: datetime, *, exact: bool = False) -> None:
        """Servers never sleep here: waiting is the network's."""
        raise AssertionError(f"a server sleeps until {at}, {exact}")


class CallerClock:
    """A process's own clock, seen from a server."""

    def __init__(self, loop: VirtualLoop, process: Process) -> None:
        self._loop = loop
        self._process = process

    def now(self) -> datetime:
        """As the process would say."""
        assert self._process.clock is not None
        return self._loop.inside(self._process, self._process.clock.now)

    def at_least(self) -> datetime:
        """Not asked here."""
        raise AssertionError("a server sends nothing")

    async def refresh(self) -> None:
        """Not asked here."""

    def in_bounds(self) -> bool:
        """Not asked here."""
        return True

    async def sleep_until(self, at: datetime, *, exact: bool = False) -> None:
        """Servers never sleep here."""
        raise AssertionError(f"a server sleeps until {at}, {exact}")

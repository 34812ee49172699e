"""Many things that wait for their times, and one sleeper for all of them."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

from reminders.ports import Clock

T = TypeVar("T")


class Alarms(Generic[T]):
    """Rings what was added when its time has come by this clock, never before; ties in the order
    in which they came.
    """

    def __init__(
        self,
        clock: Clock,
        ring: Callable[[T], None],
        *,
        at_once: int | None = None,
        grain: timedelta | None = None,
    ) -> None:
        """`at_once`: after so many rings the loop has a turn, so that the first of a crowd need not
        wait for the last. `grain`: how late it may ring; what is due within it rings with what is
        due first. None: to the very moment. `ring` must not raise.
        """
        self._clock = clock
        self._ring = ring
        self._at_once = at_once
        self._grain = grain
        self._heap: list[tuple[datetime, int, T]] = []
        self._order = count()
        self._group: asyncio.TaskGroup | None = None
        self._ringer: asyncio.Task[None] | None = None
        self._ringing = False

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, at: datetime, what: T) -> None:
        """To be rung then, or at once if that has come."""
        sooner = not self._heap or at < self._heap[0][0]
        heappush(self._heap, (at, next(self._order), what))
        if sooner and not self._ringing:
            self._wind()

    async def run(self) -> None:
        """For ever."""
        try:
            async with asyncio.TaskGroup() as self._group:
                self._wind()
                await asyncio.get_running_loop().create_future()
        finally:
            self._group = None

    def _wind(self) -> None:
        """Has somebody sleep until the first of them. Who sleeps rings himself: when the loop is
        busy, each further turn of it would make them late.
        """
        if self._group is None:
            return
        if self._ringer is not None:
            self._ringer.cancel()
        if self._heap:
            self._ringer = self._group.create_task(self._ring_in_time(), name="alarms")

    async def _ring_in_time(self) -> None:
        late = self._grain or timedelta(0)
        await self._ring_due()  # what comes too late has waited long enough
        while self._heap:
            await self._clock.sleep_until(self._heap[0][0] + late, exact=self._grain is None)
            await self._ring_due()

    async def _ring_due(self) -> None:
        now, rung = self._clock.now(), 0
        self._ringing = True
        try:
            while self._heap and self._heap[0][0] <= now:
                _, _, what = heappop(self._heap)
                self._ring(what)
                rung += 1
                if rung == self._at_once:
                    await asyncio.sleep(0)
                    now, rung = self._clock.now(), 0
        finally:
            self._ringing = False

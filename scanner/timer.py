"""The heap that wakes at the next `ring_at`: one for the process."""

import asyncio
from datetime import datetime, timedelta
from heapq import heappop, heappush
from itertools import count

from reminders.ports import Clock, Copy
from scanner.lead import Lead

MAX_HEAP = 200_000
"""Entries held ahead of their time, about 1 KB each; readers wait above it."""
EARLY_PAUSE = timedelta(milliseconds=1)


class Timer:
    """Rings copies on their leads when their time comes, never before."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[datetime, int, Lead, Copy]] = []
        self._order = count()
        self._earlier = asyncio.Event()

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def full(self) -> bool:
        """Readers should wait."""
        return len(self._heap) >= MAX_HEAP

    def add(self, lead: Lead, copy: Copy) -> None:
        """Rings it at its time, or at once if that has come."""
        self._push(copy.state.entry.key.ring_at, lead, copy)

    def again(self, lead: Lead, copy: Copy) -> None:
        """Rings it once more, a little later: the server's clock is a little behind ours."""
        self._push(self._clock.now() + EARLY_PAUSE, lead, copy)

    def _push(self, ring_at: datetime, lead: Lead, copy: Copy) -> None:
        if not self._heap or ring_at < self._heap[0][0]:
            self._earlier.set()
        heappush(self._heap, (ring_at, next(self._order), lead, copy))

    async def run(self) -> None:
        """For ever."""
        while True:
            self._ring_due()
            self._earlier.clear()
            await self._until_next()

    def _ring_due(self) -> None:
        now = self._clock.now()
        while self._heap and self._heap[0][0] <= now:
            _, _, lead, copy = heappop(self._heap)
            if not lead.lost.is_set():
                lead.ring(copy)

    async def _until_next(self) -> None:
        waits: set[asyncio.Task[object]] = {
            asyncio.create_task(self._earlier.wait(), name="timer-earlier")
        }
        if self._heap:
            at = self._heap[0][0]
            waits.add(asyncio.create_task(self._clock.sleep_until(at), name="timer-sleep"))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

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
        self._filled = asyncio.Event()
        self._sleep: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def full(self) -> bool:
        """Readers should wait."""
        return len(self._heap) >= MAX_HEAP

    def add(self, lead: Lead, copy: Copy, *, not_before: datetime | None = None) -> None:
        """Rings it at its time, or at once if that has come; `not_before`: a place in line."""
        ring_at = copy.state.entry.key.ring_at
        self._push(ring_at if not_before is None else max(ring_at, not_before), lead, copy)

    def again(self, lead: Lead, copy: Copy) -> None:
        """Rings it once more, a little later: the server's clock is a little behind ours."""
        self._push(self._clock.now() + EARLY_PAUSE, lead, copy)

    def _push(self, ring_at: datetime, lead: Lead, copy: Copy) -> None:
        sooner = not self._heap or ring_at < self._heap[0][0]
        heappush(self._heap, (ring_at, next(self._order), lead, copy))
        if sooner:
            self._filled.set()
            if self._sleep is not None:
                self._sleep.cancel()

    async def run(self) -> None:
        """For ever."""
        while True:
            self._ring_due()
            self._filled.clear()
            if self._heap:
                await self._sleep_until(self._heap[0][0])
            else:
                await self._filled.wait()

    def _ring_due(self) -> None:
        now = self._clock.now()
        while self._heap and self._heap[0][0] <= now:
            _, _, lead, copy = heappop(self._heap)
            if not lead.lost.is_set():
                lead.ring(copy)

    async def _sleep_until(self, at: datetime) -> None:
        """Or until something sooner comes."""
        self._sleep = asyncio.create_task(self._clock.sleep_until(at), name="timer-sleep")
        try:
            await asyncio.wait((self._sleep,))
            if not self._sleep.cancelled():
                self._sleep.result()
        finally:
            self._sleep.cancel()
            self._sleep = None

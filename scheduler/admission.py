"""How many creates may be under way at once: what a stalled store may cost in memory.

Counted in creates and in bytes of their requests; whichever is reached first closes the gate.
Callers take a place at once or are told to come back (`try_enter`), or wait in line (`enter`). A
single request that is larger than a bound still passes when nothing else is under way.
"""

import asyncio
from collections import deque

from reminders.errors import Unavailable


class Overloaded(Unavailable):
    """This process has as many creates, or previews, under way as it takes; nothing was begun."""

    reason = "OVERLOADED"


class Draining(Unavailable):
    """This process is stopping; call another one."""

    reason = "SHUTTING_DOWN"


class Admission:
    """One gate. Not for use from several threads."""

    def __init__(self, *, creates: int, size: int) -> None:
        self._most_creates = creates
        self._most_size = size
        self._waiting: deque[tuple[asyncio.Future[None], int, int]] = deque()
        self.creates = 0
        """Under way now."""
        self.size = 0
        """Bytes of their requests."""

    def try_enter(self, creates: int, size: int) -> bool:
        """Takes places if there are enough. True obliges to `leave`."""
        if self._waiting or not self._fits(creates, size):
            return False
        self._take(creates, size)
        return True

    async def enter(self, creates: int, size: int) -> None:
        """Waits for places, first come, first served. Returning obliges to `leave`."""
        if self.try_enter(creates, size):
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.append((place, creates, size))
        try:
            await place
        except asyncio.CancelledError:
            if place.cancelled():
                self._admit()  # drops it, and lets in whoever stood behind it
            else:  # given and cancelled in the same turn
                self.leave(creates, size)
            raise

    def leave(self, creates: int, size: int) -> None:
        """Gives the places back."""
        self.creates -= creates
        self.size -= size
        self._admit()

    def _admit(self) -> None:
        while self._waiting:
            place, creates, size = self._waiting[0]
            if place.cancelled():  # its caller learns of that only in a later turn of the loop
                self._waiting.popleft()
                continue
            if not self._fits(creates, size):
                return
            self._waiting.popleft()
            self._take(creates, size)
            place.set_result(None)

    def _fits(self, creates: int, size: int) -> bool:
        if not self.creates:
            return True
        return self.creates + creates <= self._most_creates and self.size + size <= self._most_size

    def _take(self, creates: int, size: int) -> None:
        self.creates += creates
        self.size += size

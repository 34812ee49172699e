"""When the copies in this process's hands ring: one heap for all its leads."""

from datetime import datetime, timedelta

from reminders.alarms import Alarms
from reminders.ports import Clock, Copy
from scanner.lead import Lead

MAX_HEAP = 200_000
"""Entries held ahead of their time, about 1 KB each; readers wait above it."""
GRAINS = 5
"""Of the time that entries are claimed ahead, this part may be lost to waiting for others."""
EARLY_PAUSE = timedelta(milliseconds=1)


class Timer:
    """Rings copies on their leads when their time comes, or so much ahead of it, never before."""

    def __init__(self, clock: Clock, ahead: timedelta = timedelta(0)) -> None:
        self._clock = clock
        self._ahead = ahead
        # Somebody else waits for the very moment then, and fewer claims have more in them.
        grain = ahead / GRAINS if ahead else None
        self._alarms: Alarms[tuple[Lead, Copy]] = Alarms(clock, _ring, grain=grain)
        self.run = self._alarms.run
        """For ever."""

    def __len__(self) -> int:
        return len(self._alarms)

    @property
    def full(self) -> bool:
        """Readers should wait."""
        return len(self._alarms) >= MAX_HEAP

    def add(self, lead: Lead, copy: Copy, *, not_before: datetime | None = None) -> None:
        """Rings it at its time, or at once if that has come; `not_before`: a place in line."""
        at = copy.state.entry.key.ring_at - self._ahead
        self._alarms.add(at if not_before is None else max(at, not_before), (lead, copy))

    def again(self, lead: Lead, copy: Copy) -> None:
        """Rings it once more, a little later: the server's clock is a little behind ours."""
        self._alarms.add(self._clock.now() + EARLY_PAUSE, (lead, copy))


def _ring(what: tuple[Lead, Copy]) -> None:
    lead, copy = what
    if not lead.lost.is_set():
        lead.ring(copy)

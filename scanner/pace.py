"""How many of a kind may go in a second."""

from datetime import datetime, timedelta

from reminders.ports import Clock

LONGEST_WAIT = timedelta(seconds=10)
"""How far ahead places are given: within it, what was read stays good."""
_SECOND = timedelta(seconds=1)


class Pace:
    """Gives places, so many in each second by the clock."""

    def __init__(self, clock: Clock, a_second: int) -> None:
        self._clock = clock
        self._a_second = a_second
        self._second = clock.now()
        """When the second begins whose places are given now; it may lie ahead."""
        self._left = a_second

    def place(self) -> datetime | None:
        """When one more may go, now at the earliest; None where all are taken."""
        now = self._clock.now()
        if now >= self._second + _SECOND:
            self._second, self._left = now, self._a_second
        if not self._left:
            if self._second + _SECOND - now > LONGEST_WAIT:
                return None
            self._second, self._left = self._second + _SECOND, self._a_second
        self._left -= 1
        return max(now, self._second)

    def take(self) -> bool:
        """Whether one more may go now; then it has its place."""
        now = self._clock.now()
        if now >= self._second + _SECOND:
            self._second, self._left = now, self._a_second
        if not self._left or now < self._second:
            return False
        self._left -= 1
        return True

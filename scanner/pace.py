"""How many of a kind may go in a second."""

from datetime import timedelta

from reminders.ports import Clock


class Pace:
    """Counts them in each second by the clock."""

    def __init__(self, clock: Clock, a_second: int) -> None:
        self._clock = clock
        self._a_second = a_second
        self._until = clock.now()
        self._left = 0

    def take(self) -> bool:
        """Whether one more may go now."""
        now = self._clock.now()
        if now >= self._until:
            self._until = now + timedelta(seconds=1)
            self._left = self._a_second
        if not self._left:
            return False
        self._left -= 1
        return True

"""What was done lately, in bounded memory."""

from datetime import datetime, timedelta

from reminders.ports import Clock


class Recent:
    """Remembers ids for one to two spans, so it holds no more than what comes in two of them."""

    def __init__(self, clock: Clock, span: timedelta) -> None:
        self._clock = clock
        self._span = span
        self._newer: set[str] = set()
        self._older: set[str] = set()
        self._turn_at = clock.now() + span

    def __len__(self) -> int:
        return len(self._newer) + len(self._older)

    def __contains__(self, name: str) -> bool:
        self._turn()
        return name in self._newer or name in self._older

    def add(self, name: str) -> None:
        """From now on, for at least a span."""
        self._turn()
        self._newer.add(name)

    def _turn(self) -> None:
        now: datetime = self._clock.now()
        if now < self._turn_at:
            return
        self._older = self._newer if now < self._turn_at + self._span else set()
        self._newer = set()
        self._turn_at = now + self._span

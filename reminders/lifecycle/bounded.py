"""A series from a cursor on, within a bound of work over all: for whoever computes far ahead.

`Series.next` bounds the work for one occurrence; a thousand rare ones would be a thousand times
that. Here the steps are added up and looked at after each round. A round takes at most `MAX_STEPS`:
it plans many cheap occurrences at once, since each call has to find its place in the period again,
or else one that is dear.
"""

from collections.abc import Iterator
from dataclasses import replace

from reminders.recurrence import MAX_STEPS, Cursor, Planned, RuleExhausted, Series, Work

_ROUND = 25
"""Occurrences."""


class BoundedPlan:
    """Iterates over the occurrences; once. Iterating raises `RuleExhausted` if there is not even
    one to be found.
    """

    def __init__(self, series: Series, cursor: Cursor, *, steps: int, work: Work) -> None:
        """Stops as soon as `work`, which several plans may share, has taken `steps`."""
        self._series = series
        self._hasty = replace(series, max_steps=MAX_STEPS // _ROUND)
        self._cursor = cursor
        self._steps = steps
        self._work = work
        self.ended = False
        """The series has no more."""
        self.stopped = ""
        """Why it was given up before the end, if it was."""

    def __iter__(self) -> Iterator[Planned]:
        any_found = False
        while not self.ended and not self.stopped:
            try:
                planned = self._round()
            except RuleExhausted as error:
                if not any_found:
                    raise
                self.stopped = f"{error.part} {error.reason}"
                return
            any_found = any_found or bool(planned)
            yield from planned
            if self._work.steps >= self._steps:
                self.stopped = (
                    f"what is so rare takes long to find: stopped after {self._steps} steps of "
                    "work; go on after the last one"
                )

    def take(self, count: int) -> list[Planned]:
        """The next `count`, or fewer. Raises `RuleExhausted` if there is not even one."""
        found: list[Planned] = []
        for one in self:
            found.append(one)
            if len(found) == count:
                break
        return found

    def _round(self) -> list[Planned]:
        try:
            planned = self._hasty.next(self._cursor, _ROUND, self._work)
        except RuleExhausted:
            planned = []
        if not planned:
            planned = self._series.next(self._cursor, 1, self._work)
            self.ended = not planned
        if planned:
            self._cursor = planned[-1].cursor
        return planned

"""Putting a source's batches into the order of instants, within a bound of work."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from heapq import heapify, heappop, heappush
from itertools import count
from zoneinfo import ZoneInfo

from reminders.recurrence.errors import RuleExhausted
from reminders.recurrence.slots import Batch, Candidate
from reminders.recurrence.zones import earliest


@dataclass(slots=True, kw_only=True)
class Work:
    """Counts steps. Not a value: `Series.next` adds to it."""

    steps: int = 0
    """Dates, periods and local times looked at, over all calls that this was given to."""


class Walk:
    """Candidates in order of instants, the merge of a rule's batches and the RDATEs.

    A candidate is safe to take once the source can bring none before it any more. That is known
    from `Batch.opens`, so the walk reads no further ahead than it must.
    """

    def __init__(
        self,
        batches: Iterator[Batch],
        added: Iterable[Candidate],
        zone: ZoneInfo,
        *,
        part: str,
        max_steps: int,
    ) -> None:
        self._batches: Iterator[Batch] | None = batches
        self._zone = zone
        self._part = part
        self._max_steps = max_steps
        self._steps = 0
        self._opens: datetime | None = None
        self._tie = count()
        self._pending = [(one.order, next(self._tie), one) for one in added]
        heapify(self._pending)
        self.total = 0
        """Steps taken so far."""

    def take(self) -> Candidate | None:
        """The next candidate; None when there is none left.

        Raises:
            RuleExhausted: The bound was reached since the last `found`.
        """
        while self._batches is not None and not self._settled():
            batch = next(self._batches, None)
            if batch is None:
                self._batches = None
                break
            self._spend(batch.steps)
            for one in batch.found:
                heappush(self._pending, (one.order, next(self._tie), one))
            self._opens = batch.opens
        return heappop(self._pending)[2] if self._pending else None

    def found(self) -> None:
        """An occurrence came out: the bound of work counts from here again."""
        self._steps = 0

    def end_rule(self) -> None:
        """COUNT or UNTIL was reached: only RDATEs are left."""
        self._batches = None
        self._pending = [entry for entry in self._pending if not entry[2].from_rule]
        heapify(self._pending)

    def _settled(self) -> bool:
        if not self._pending or self._opens is None:
            return False
        opens = self._opens
        if opens.tzinfo is None:
            opens = self._opens = earliest(opens, self._zone)
        # Not one at that very instant: the rule may still name it, and then counts it.
        return self._pending[0][0][0] < opens

    def _spend(self, steps: int) -> None:
        self._steps += steps
        self.total += steps
        if self._steps > self._max_steps:
            raise RuleExhausted(self._part, self._max_steps)

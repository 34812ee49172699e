"""Finds what ended failed or expired and still stands so, oldest first, in bounded steps.

    hours of the range ─▶ rows of the list that fit ─▶ does the ledger agree? ─▶ found

A step looks into so many hours and at so many rows at most, so it may answer nothing and where to
go on. What was delivered meanwhile, or is being tried again, is left out: the ledger decides.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from reminders.buckets import hour_of
from reminders.model.ended import Ended, EndedPlace, stands
from reminders.model.ledger import LedgerRow
from reminders.platform import Platform
from reminders.ports import Store

HOUR = timedelta(hours=1)
MOST_HOURS = 96
"""In one step. Each is a few small queries."""
MOST_ROWS = 5_000
"""In one step, whether they fit the filter or not."""
PAGE = 500
AT_ONCE = 32
"""Rows of the ledger that are read at the same time."""


class EndedFilter(Struct, frozen=True, kw_only=True):
    """Which of them. Empty strings: any."""

    namespace: str
    start: datetime
    end: datetime
    """Ended at `start` or later, and before `end`."""
    status: str = ""
    reason: str = ""
    endpoint_id: str = ""
    target: str = ""

    def fits(self, ended: Ended) -> bool:
        """Whether it is wanted."""
        return (
            self.start <= ended.ended_at < self.end
            and self.status in ("", ended.status)
            and self.reason in ("", ended.reason)
            and self.endpoint_id in ("", ended.endpoint_id)
            and self.target in ("", ended.target)
        )


class FoundEnded(Struct, frozen=True, kw_only=True):
    """One that stands."""

    ended: Ended
    row: LedgerRow
    number: int
    """Its place among those of the step that fit the filter: the same for a repeat of the step."""


class EndedStep(Struct, frozen=True, kw_only=True):
    """What one step came to."""

    found: tuple[FoundEnded, ...]
    fitting: int
    """How many fitted the filter; the others of them do not stand any more."""
    through: EndedPlace | None
    """Where to go on, strictly after it. None: that was all."""


class EndedList:
    """Reads it."""

    def __init__(self, platform: Platform) -> None:
        self._store: Store = platform.store
        self._reading = asyncio.Semaphore(AT_ONCE)

    async def step(self, wanted: EndedFilter, *, after: EndedPlace | None, limit: int) -> EndedStep:
        """At most `limit` that fit, strictly after a place."""
        fitting, through = await self._fitting(wanted, after, limit)
        rows = await asyncio.gather(*(self._row(one) for one in fitting))
        found = tuple(
            FoundEnded(ended=ended, row=row, number=number)
            for number, (ended, row) in enumerate(zip(fitting, rows, strict=True))
            if row is not None and stands(ended, row)
        )
        return EndedStep(found=found, fitting=len(fitting), through=through)

    async def _row(self, ended: Ended) -> LedgerRow | None:
        async with self._reading:
            return await self._store.ledger.read(
                ended.reminder_id, ended.occurrence_id, ended.channel_id, ended.target
            )

    async def _fitting(
        self, wanted: EndedFilter, after: EndedPlace | None, limit: int
    ) -> tuple[Sequence[Ended], EndedPlace | None]:
        found: list[Ended] = []
        place = after if after is not None else EndedPlace(wanted.start - timedelta(microseconds=1))
        place = max(place, EndedPlace(wanted.start - timedelta(microseconds=1)))
        hour, seen = hour_of(place.ended_at), 0
        last = hour + MOST_HOURS * HOUR
        while hour < wanted.end:
            if hour >= last or seen >= MOST_ROWS:
                return found, place
            page = await self._store.ended.page(
                wanted.namespace, hour, after=_within(place, hour), limit=PAGE
            )
            for one in page:
                seen, place = seen + 1, one.place
                if wanted.fits(one):
                    found.append(one)
                    if len(found) == limit:
                        return found, place
            if len(page) < PAGE:
                hour += HOUR
                place = max(place, EndedPlace(hour - timedelta(microseconds=1), "\U0010ffff"))
        return found, None


def _within(place: EndedPlace, hour: datetime) -> EndedPlace | None:
    """Where to go on in that hour; None: from its start."""
    return place if hour_of(place.ended_at) == hour else None

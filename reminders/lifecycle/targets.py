"""What became of a topic's occurrence: its state by the counts, and its deliveries, page by page.

Whoever lists occurrences is answered by the counts alone. Deliveries are walked over in an order of
their own: the ledger's, newest occurrence first, and where that has the row of a fan-out, its
deliveries by bucket and subscriber. A walk stops after so many rows, whether they match or not, and
goes on from there in the next call.
"""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta

from msgspec import Struct

from reminders.lifecycle.endings import ended_by
from reminders.lifecycle.fanning import buckets_of
from reminders.model.fanout import Fanout
from reminders.model.ledger import DeliveryStatus, LedgerRow, OccurrenceStatus
from reminders.model.subscriber import bucket_of
from reminders.ports import Store

ROWS = 200
"""In one read."""
EXAMINED = 2_000
"""Rows that one call looks at."""


def fanout_status(fanout: Fanout) -> OccurrenceStatus:
    """Over all its deliveries. Some that were stopped, such as those who unsubscribed, do not make
    it fail.
    """
    counts = fanout.counts
    if not fanout.finished:
        return OccurrenceStatus.CLAIMED
    if fanout.why:
        return ended_by(fanout.why)
    if counts.failed:
        return OccurrenceStatus.FAILED
    if counts.stopped and not counts.taken:
        return OccurrenceStatus.CANCELLED
    return OccurrenceStatus.COMPLETED


def ends_about(fanout: Fanout) -> datetime | None:
    """When the last subscriber will have been told, by the rate of lately; None: nobody knows."""
    left = fanout.subscribers - fanout.passed
    if fanout.finished or fanout.counted_at is None or left <= 0 or fanout.per_second <= 0:
        return None
    seconds = left / fanout.per_second
    if seconds > timedelta(days=365).total_seconds():
        return None
    return fanout.counted_at + timedelta(seconds=seconds)


class Position(Struct, frozen=True, kw_only=True, array_like=True):
    """Behind which delivery a walk goes on."""

    occurrence_id: str
    channel_id: str
    target: str = ""
    bucket: int = -1
    """Of a subscriber; -1: the delivery is none of a fan-out."""


class Wanted(Struct, frozen=True, kw_only=True):
    """Which deliveries somebody asks for."""

    occurrence_id: str | None = None
    subscriber_id: str = ""
    """Only this one's; empty: everybody's."""
    statuses: frozenset[DeliveryStatus] = frozenset()
    """Only those that stand so; empty: all."""

    def fits(self, row: LedgerRow) -> bool:
        """Whether it is one of them."""
        return not self.statuses or row.delivery in self.statuses


class Walk:
    """Over the deliveries of a reminder."""

    def __init__(self, store: Store, reminder_id: str, wanted: Wanted) -> None:
        self._store = store
        self._reminder_id = reminder_id
        self._wanted = wanted

    async def page(
        self, after: Position | None, limit: int
    ) -> tuple[list[LedgerRow], Position | None]:
        """At most `limit`, and where to go on; None: that was all. There may be fewer, even none,
        with more to come: after so many rows that do not fit.
        """
        found: list[LedgerRow] = []
        last, examined = after, 0
        async for row, position in self._deliveries(after):
            examined += 1
            if self._wanted.fits(row):
                if len(found) == limit:
                    return found, last
                found.append(row)
            last = position
            if examined == EXAMINED:
                return found, last
        return found, None

    async def _deliveries(
        self, after: Position | None
    ) -> AsyncIterator[tuple[LedgerRow, Position]]:
        place: tuple[str, str, str] | None = None
        if after is not None:
            place = after.occurrence_id, after.channel_id, after.target
            if after.bucket >= 0:
                place = after.occurrence_id, "", ""
                async for found in self._targets(after.occurrence_id, after):
                    yield found
        while True:
            rows = await self._store.ledger.page(
                self._reminder_id,
                occurrence_id=self._wanted.occurrence_id,
                after=place,
                limit=ROWS,
            )
            for row in rows:
                occurrence_id = row.occurrence.occurrence_id
                place = occurrence_id, row.channel_id, row.target
                if row.fanout is not None:
                    async for found in self._targets(occurrence_id, None):
                        yield found
                elif row.delivery is not None and not self._wanted.subscriber_id:
                    yield row, Position(occurrence_id=occurrence_id, channel_id=row.channel_id)
            if len(rows) < ROWS:
                return

    async def _targets(
        self, occurrence_id: str, after: Position | None
    ) -> AsyncIterator[tuple[LedgerRow, Position]]:
        only = self._wanted.subscriber_id
        first = max(after.bucket, 0) if after is not None else 0
        for bucket in [bucket_of(only)] if only else buckets_of()[first:]:
            behind = (only, "") if only else ("", "")
            if after is not None and after.bucket == bucket:
                behind = after.target, after.channel_id
            while True:
                rows = await self._store.fanouts.targets(
                    self._reminder_id,
                    occurrence_id,
                    bucket,
                    after=behind,
                    through=only or None,
                    limit=ROWS,
                )
                for row in rows:
                    behind = row.target, row.channel_id
                    yield (
                        row,
                        Position(
                            occurrence_id=occurrence_id,
                            channel_id=row.channel_id,
                            target=row.target,
                            bucket=bucket,
                        ),
                    )
                if len(rows) < ROWS:
                    break

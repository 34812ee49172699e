"""Get, list and ledger. Reads never change a reminder, except that a change met half-way is
finished first.
"""

import base64
import binascii
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from itertools import groupby
from typing import TypeVar

import msgspec

from reminders.errors import InvalidRequest, NotFound, Violation
from reminders.lifecycle.requests import OccurrenceView, Page, View
from reminders.model.entry import DueEntry
from reminders.model.ledger import DeliveryStatus, LedgerRow, OccurrenceStatus
from reminders.model.record import Status, Stored
from reminders.platform import Platform
from reminders.ports import IndexRow

COUNTED = 10_000
"""Totals are exact up to this."""
OVERDUE = timedelta(hours=1)
"""How far back a list looks for what should have rung and did not."""
MAX_CHANNELS = 16

T = TypeVar("T")
Finish = Callable[[str], Awaitable[Stored | None]]


class Reads:
    """The use cases that only look."""

    def __init__(self, platform: Platform) -> None:
        self._store = platform.store
        self._clock = platform.clock

    async def stored(self, reminder_id: str) -> Stored | None:
        """The record as it is, changing or not."""
        return await self._store.records.read(reminder_id)

    async def owned(self, namespace: str, reminder_id: str) -> Stored:
        """As `stored`; somebody else's reads as not there."""
        stored = await self._store.records.read(reminder_id)
        if stored is None or stored.record.namespace != namespace:
            raise NotFound(reminder_id=reminder_id)
        return stored

    async def get(self, namespace: str, reminder_id: str, finish: Finish) -> View:
        """The reminder as callers see it."""
        stored = await self.owned(namespace, reminder_id)
        if stored.change is not None:
            stored = await finish(reminder_id) or stored
        return await self.view(stored)

    async def view(self, stored: Stored) -> View:
        """Derives what is ahead. Entries whose time has not come need no look at their rows."""
        record = stored.record
        if record.status is not Status.SCHEDULED:
            return View(record=record, status=record.status)
        now = self._clock.now()
        ahead = []
        unfinished = False
        for entry in stored.current:
            if entry.key.ring_at > now:
                ahead.append(entry)
                continue
            state = await self._store.due.read(entry.key)
            if state is None or state.settled:
                continue
            unfinished = True
            if state.handled_at is None:
                ahead.append(entry)
        status = Status.SCHEDULED if ahead or unfinished else Status.FIRED
        return View(record=record, status=status, ahead=tuple(ahead))

    # --- a user's pending reminders ---------------------------------------------------------------

    async def pending(
        self, namespace: str, user_id: str, *, limit: int, token: str
    ) -> tuple[Page[View], int, bool]:
        """Soonest first, with the number of reminders in all and whether that is cut."""
        after = _decode(token, IndexRow) if token else None
        start = self._clock.now() - OVERDUE
        views: list[View] = []
        while len(views) <= limit:
            rows = await self._store.users.page(
                namespace, user_id, start=start, after=after, limit=limit + 1
            )
            for row, view in await self._firsts(rows):
                if len(views) == limit:
                    total, capped = await self._total(namespace, user_id, start)
                    page = Page(items=tuple(views), next_token=_encode(after))
                    return page, total, capped
                views.append(view)
                after = row
            if len(rows) <= limit:
                break
            after = rows[-1]
        total, capped = await self._total(namespace, user_id, start)
        return Page(items=tuple(views)), total, capped

    async def _firsts(self, rows: list[IndexRow]) -> list[tuple[IndexRow, View]]:
        """Of each reminder only the row of its first occurrence ahead: it is listed once."""
        found = await self._store.records.read_many({row.reminder_id for row in rows})
        firsts = []
        for row in rows:
            stored = found.get(row.reminder_id)
            if stored is None:
                continue
            view = await self.view(stored)
            if view.ahead and view.ahead[0].key == row.key:
                firsts.append((row, view))
        return firsts

    async def _total(self, namespace: str, user_id: str, start: datetime) -> tuple[int, bool]:
        """Counts reminders, not occurrences: what is ahead by the index, what is overdue by its
        rows.
        """
        now = self._clock.now()
        ids: set[str] = set()
        after: IndexRow | None = None
        while len(ids) <= COUNTED:
            rows = await self._store.users.page(
                namespace, user_id, start=start, after=after, limit=2000
            )
            overdue = [row for row in rows if row.fire_at <= now]
            ids.update(row.reminder_id for row in rows if row.fire_at > now)
            ids.update(row.reminder_id for row, _ in await self._firsts(overdue))
            if len(rows) < 2000:
                return min(len(ids), COUNTED), len(ids) > COUNTED
            after = rows[-1]
        return COUNTED, True

    # --- the ledger -------------------------------------------------------------------------------

    async def occurrences(
        self, namespace: str, reminder_id: str, *, limit: int, token: str
    ) -> Page[OccurrenceView]:
        """Newest first: what is planned, then what happened."""
        stored = await self.owned(namespace, reminder_id)
        after = _decode(token, tuple[str, str, str]) if token else None
        rows = await self._store.ledger.page(
            reminder_id, after=after, limit=(limit + 1) * MAX_CHANNELS
        )
        views = [
            _occurrence_view(list(group))
            for _, group in groupby(rows, key=lambda row: row.occurrence.occurrence_id)
        ]
        if after is None:
            known = {view.occurrence.occurrence_id for view in views}
            ahead = (await self.view(stored)).ahead
            planned = [_planned_view(entry) for entry in reversed(ahead)]
            views = [v for v in planned if v.occurrence.occurrence_id not in known] + views
        if len(views) <= limit:
            return Page(items=tuple(views))
        shown = views[:limit]
        return Page(
            items=tuple(shown), next_token=_encode((shown[-1].occurrence.occurrence_id, "", ""))
        )

    async def deliveries(
        self, namespace: str, reminder_id: str, *, occurrence_id: str | None, limit: int, token: str
    ) -> Page[LedgerRow]:
        """Newest occurrence first, one row for each receiver tried."""
        await self.owned(namespace, reminder_id)
        after = _decode(token, tuple[str, str, str]) if token else None
        rows = await self._store.ledger.page(
            reminder_id, occurrence_id=occurrence_id, after=after, limit=limit + 1
        )
        shown = tuple(row for row in rows[:limit] if row.delivery is not None)
        if len(rows) <= limit:
            return Page(items=shown)
        last = rows[limit - 1]
        position = (last.occurrence.occurrence_id, last.channel_id, last.target)
        return Page(items=shown, next_token=_encode(position))


def _planned_view(entry: DueEntry) -> OccurrenceView:
    assert entry.occurrence is not None
    return OccurrenceView(
        namespace=entry.namespace,
        reminder_id=entry.reminder_id,
        version=entry.version,
        occurrence=entry.occurrence,
        status=OccurrenceStatus.PLANNED,
    )


def _occurrence_view(rows: list[LedgerRow]) -> OccurrenceView:
    first = rows[0]
    ended = next((row for row in rows if row.ended is not None), None)
    return OccurrenceView(
        namespace=first.namespace,
        reminder_id=first.reminder_id,
        version=first.reminder_version,
        occurrence=first.occurrence,
        status=ended.ended if ended and ended.ended else _status_of(rows),
        reason=next((row.reason for row in rows if row.reason), ""),
        claimed_at=next((row.claimed_at for row in rows if row.claimed_at), None),
        target_count=sum(row.delivery is not None for row in rows),
    )


def _status_of(rows: list[LedgerRow]) -> OccurrenceStatus:
    statuses = {row.delivery for row in rows if row.delivery is not None}
    if not all(status.terminal for status in statuses):
        return OccurrenceStatus.CLAIMED
    if statuses <= {DeliveryStatus.DELIVERED, DeliveryStatus.CONFIRMED}:
        return OccurrenceStatus.COMPLETED
    if statuses == {DeliveryStatus.CANCELLED}:
        return OccurrenceStatus.CANCELLED
    if statuses == {DeliveryStatus.EXPIRED}:
        return OccurrenceStatus.EXPIRED
    return OccurrenceStatus.FAILED


def _encode(position: object) -> str:
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(position)).decode().rstrip("=")


def _decode(token: str, kind: type[T]) -> T:
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        return msgspec.msgpack.decode(raw, type=kind)
    except (msgspec.DecodeError, binascii.Error, ValueError) as error:
        raise InvalidRequest(
            violations=[
                Violation(
                    field="page_token",
                    reason="VALUE_INVALID",
                    description="not a token of this list; leave it empty for the first page",
                )
            ]
        ) from error

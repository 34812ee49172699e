"""Get, list and ledger. Reads never change a reminder, except that a change met half-way is
finished first.
"""

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from itertools import groupby
from typing import TypeVar

import msgspec

from reminders.errors import InvalidRequest, NotFound, Violation
from reminders.lifecycle.grouping import Groups
from reminders.lifecycle.requests import OccurrenceView, Page, View
from reminders.lifecycle.targets import Position, Walk, Wanted, fanout_status
from reminders.model.entry import Occurrence
from reminders.model.ledger import DeliveryStatus, LedgerRow, OccurrenceStatus
from reminders.model.record import Record, Status, Stored
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
        self._groups = Groups(platform)

    async def owned(self, namespace: str, reminder_id: str) -> Stored:
        """As `stored`, and cancelled if its group was."""
        return await self._groups.seen(await self.stored(namespace, reminder_id))

    async def seen(self, stored: Stored) -> Stored:
        """Cancelled if its group was: see `Groups.seen`."""
        return await self._groups.seen(stored)

    async def finished(self, namespace: str, reminder_id: str, finish: Finish) -> Stored:
        """As `owned`, with a change that was met half-way at its end."""
        stored = await self.owned(namespace, reminder_id)
        if stored.change is None:
            return stored
        return await self._groups.seen(await finish(reminder_id) or stored)

    async def stored(self, namespace: str, reminder_id: str) -> Stored:
        """The record as it is, changing or not; somebody else's reads as not there."""
        stored = await self._store.records.read(reminder_id)
        if stored is None or stored.record.namespace != namespace:
            raise NotFound(reminder_id=reminder_id, namespace=namespace)
        return stored

    async def get(self, namespace: str, reminder_id: str, finish: Finish) -> View:
        """The reminder as callers see it."""
        stored = await self.stored(namespace, reminder_id)
        if stored.change is not None:
            stored = await finish(reminder_id) or stored
        return await self.view(stored)

    async def view(self, stored: Stored) -> View:
        """Derives what is ahead. Entries whose time has not come need no look at their rows."""
        return await self._view(await self._groups.seen(stored))

    async def _view(self, stored: Stored) -> View:
        record = stored.record
        if record.status is not Status.SCHEDULED:
            return View(record=record, status=record.status)
        now = self._clock.now()
        due = [entry for entry in stored.current if entry.key.ring_at <= now]
        states = await asyncio.gather(*(self._store.due.read(entry.key) for entry in due))
        unfinished = [state for state in states if state is not None and not state.settled]
        overdue = {state.entry.key for state in unfinished if state.handled_at is None}
        ahead = tuple(
            entry for entry in stored.current if entry.key.ring_at > now or entry.key in overdue
        )
        status = Status.SCHEDULED if ahead or unfinished else Status.FIRED
        return View(record=record, status=status, ahead=ahead)

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
            alive = await self._groups.alive(namespace, rows)
            for row, view in await self._firsts(alive, start):
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

    async def _firsts(self, rows: list[IndexRow], start: datetime) -> list[tuple[IndexRow, View]]:
        """Of each reminder only the row of its first occurrence in the list: it is listed once.

        Compared by name: an entry that was moved is indexed under its promise all the same.
        """
        found = await self._store.records.read_many({row.reminder_id for row in rows})
        derived = await asyncio.gather(*map(self._view, found.values()))
        views = dict(zip(found, derived, strict=True))
        return [
            (row, view)
            for row in rows
            if (view := views.get(row.reminder_id)) is not None
            and _first_name(view, start) == row.key.entry_id
        ]

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
            alive = await self._groups.alive(namespace, rows)
            overdue = [row for row in alive if row.fire_at <= now]
            ids.update(row.reminder_id for row in alive if row.fire_at > now)
            ids.update(row.reminder_id for row, _ in await self._firsts(overdue, start))
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
        views = {
            occurrence_id: occurrence_view(list(group))
            for occurrence_id, group in groupby(rows, key=lambda row: row.occurrence.occurrence_id)
        }
        for entry in (await self.view(stored)).ahead:
            assert entry.occurrence is not None
            planned = unrecorded_view(stored.record, entry.occurrence, version=entry.version)
            # an attempt may be on record while its entry is still open
            if after is None or entry.occurrence_id < after[0]:
                views.setdefault(entry.occurrence_id, planned)
        newest_first = sorted(views, reverse=True)
        shown = tuple(views[occurrence_id] for occurrence_id in newest_first[:limit])
        if len(newest_first) <= limit:
            return Page(items=shown)
        return Page(items=shown, next_token=_encode((newest_first[limit - 1], "", "")))

    async def deliveries(
        self, namespace: str, reminder_id: str, wanted: Wanted, *, limit: int, token: str
    ) -> Page[LedgerRow]:
        """Newest occurrence first, one row for each receiver tried."""
        await self.owned(namespace, reminder_id)
        after = _decode(token, Position) if token else None
        rows, position = await Walk(self._store, reminder_id, wanted).page(after, limit)
        return Page(items=tuple(rows), next_token=_encode(position) if position is not None else "")


def _first_name(view: View, start: datetime) -> str | None:
    names = (
        entry.key.entry_id
        for entry in view.ahead
        if entry.occurrence is not None and entry.occurrence.fire_at >= start
    )
    return next(names, None)


def unrecorded_view(
    record: Record,
    occurrence: Occurrence,
    *,
    version: int,
    status: OccurrenceStatus = OccurrenceStatus.PLANNED,
    reason: str = "",
) -> OccurrenceView:
    """Of an occurrence that has no row in the ledger."""
    return OccurrenceView(
        namespace=record.namespace,
        reminder_id=record.reminder_id,
        version=version,
        occurrence=occurrence,
        status=status,
        reason=reason,
        target_count=len(record.definition.channels),
    )


def occurrence_view(rows: list[LedgerRow]) -> OccurrenceView:
    """Of all the rows of one occurrence. What was skipped and rang later, by a backfill, is shown
    as it rang; a run of skipped ones stays on record with its first one.
    """
    of_topic = next((row for row in rows if row.fanout is not None), None)
    if of_topic is not None:
        return _fanout_view(of_topic)
    run = next((row for row in rows if row.skipped_through is not None), None)
    rows = [row for row in rows if row.delivery is not None] or rows
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
        skipped_through=run.skipped_through if run is not None else None,
        skipped_count=run.skipped_count if run is not None else 0,
    )


def _fanout_view(row: LedgerRow) -> OccurrenceView:
    """Of a topic's occurrence: its one row has the counts."""
    assert row.fanout is not None
    return OccurrenceView(
        namespace=row.namespace,
        reminder_id=row.reminder_id,
        version=row.reminder_version,
        occurrence=row.occurrence,
        status=row.ended or fanout_status(row.fanout),
        reason=row.reason or row.fanout.why,
        claimed_at=row.claimed_at,
        target_count=row.fanout.counts.targets,
        fanout=row.fanout,
        skipped_through=row.skipped_through,
        skipped_count=row.skipped_count,
    )


def _status_of(rows: list[LedgerRow]) -> OccurrenceStatus:
    statuses = {row.delivery for row in rows if row.delivery is not None}
    if not all(status.terminal for status in statuses):
        return OccurrenceStatus.CLAIMED
    if statuses == {DeliveryStatus.CANCELLED}:
        return OccurrenceStatus.CANCELLED
    statuses.discard(DeliveryStatus.CANCELLED)  # nobody wanted that one: no failure of the others
    if statuses <= {DeliveryStatus.DELIVERED, DeliveryStatus.CONFIRMED}:
        return OccurrenceStatus.COMPLETED
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

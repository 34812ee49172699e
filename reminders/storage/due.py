"""Due entries."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from reminders.buckets import MINUTE, minute_of
from reminders.model.codec import decode_entry
from reminders.model.entry import DueEntry, DueKey, EntryState, Fate, Kind, unreadable
from reminders.ports import Counts
from reminders.storage.access import Access
from reminders.storage.bridge import Row, translated
from reminders.storage.expiry import from_us, to_us

EXACT_PAGE = 2_000
"""Rows a page where counting needs a look at each."""


class CassandraDueEntries:
    """`reminders.ports.DueEntries`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def put(self, entries: Sequence[DueEntry], *, stamp: int) -> None:
        """Grouped with what others write, as all writes here."""
        rows = self._access.rows
        await self._access.steps.write((rows.due(e, stamp) for e in entries), "due.put")

    async def mark(self, keys: Sequence[DueKey], fate: Fate, *, stamp: int) -> None:
        """A cell of its own, which no insert touches."""
        rows = self._access.rows
        await self._access.steps.write((rows.fate(k, fate, stamp) for k in keys), "due.mark")

    async def handled(self, entries: Sequence[DueEntry], *, at: datetime) -> None:
        """Stamped `at`. The end of a change does not linger for company: its caller waits."""
        rows, access = self._access.rows, self._access
        writer = access.steps if any(e.kind is Kind.FINISH for e in entries) else access.outcomes
        await writer.write((rows.handled(e.key, at) for e in entries), "due.handled")

    async def expanded(self, entries: Sequence[DueEntry], *, at: datetime) -> None:
        """Stamped `at`."""
        rows = self._access.rows
        await self._access.outcomes.write(
            (rows.expanded(e.key, at) for e in entries), "due.expanded"
        )

    async def read(self, key: DueKey) -> EntryState | None:
        """One query."""
        with translated("due.read"):
            bound = self._access.prepared["due_read"].bind(
                key.minute, key.shard, to_us(key.ring_at), key.entry_id
            )
            rows = await self._access.bridge.run(bound)
        return _state(key, rows[0]) if rows and rows[0][0] is not None else None

    async def slice(
        self,
        minute: datetime,
        shard: int,
        *,
        after: DueKey | None = None,
        start: datetime | None = None,
        before: datetime | None = None,
        limit: int,
    ) -> list[EntryState]:
        """One query, unless rows without an entry are among the first `limit`."""
        lower, upper = _bounds(minute, after=after, start=start, before=before)
        found: list[EntryState] = []
        with translated("due.slice"):
            while len(found) < limit:
                wanted = limit - len(found)
                rows = await self._rows(minute, shard, lower, upper, wanted)
                found += [_state(_key(row, shard), row[2:]) for row in rows if row[2] is not None]
                if len(rows) < wanted:
                    break
                lower = rows[-1][:2]
        return found

    async def counts(
        self,
        minute: datetime,
        shard: int,
        *,
        start: datetime | None = None,
        before: datetime | None = None,
    ) -> Counts:
        """Aggregated by the server.

        An outcome whose entry is not there would stand for one that is open. So where there are
        more rows than entries, every row is looked at.
        """
        lower, upper = _bounds(minute, after=None, start=start, before=before)
        with translated("due.counts"):
            bound = self._access.prepared["due_counts"].bind(
                minute_of(minute), shard, *lower, upper
            )
            ((rows, entries, handled, recurring, expanded),) = await self._access.bridge.run(bound)
            if rows != entries:
                return await self._exact(minute, shard, lower, upper)
        return Counts(entries=entries, handled=handled, recurring=recurring, expanded=expanded)

    async def _exact(
        self, minute: datetime, shard: int, lower: tuple[Any, ...], upper: int
    ) -> Counts:
        entries = handled = recurring = expanded = 0
        while True:
            rows = await self._rows(minute, shard, lower, upper, EXACT_PAGE)
            states = [_state(_key(row, shard), row[2:]) for row in rows if row[2] is not None]
            entries += len(states)
            handled += sum(state.handled_at is not None for state in states)
            recurring += sum(state.entry.recurs for state in states)
            expanded += sum(state.expanded_at is not None for state in states)
            if len(rows) < EXACT_PAGE:
                break
            lower = rows[-1][:2]
        return Counts(entries=entries, handled=handled, recurring=recurring, expanded=expanded)

    async def _rows(
        self, minute: datetime, shard: int, lower: tuple[Any, ...], upper: int, limit: int
    ) -> list[Row]:
        statement = self._access.prepared["due_slice"]
        bound = statement.bind(minute_of(minute), shard, *lower, upper, limit)
        return await self._access.bridge.run(bound)


def _bounds(
    minute: datetime, *, after: DueKey | None, start: datetime | None, before: datetime | None
) -> tuple[tuple[int, str], int]:
    """The (ring_at_us, entry_id) to start strictly after, and the ring_at_us to end before.

    Every id is greater than the empty one, so (start, "") includes `start`.
    """
    first = minute_of(minute)
    lower = (to_us(first if start is None else start), "")
    if after is not None:
        lower = max(lower, (to_us(after.ring_at), after.entry_id))
    return lower, to_us(first + MINUTE if before is None else before)


def _key(row: Row, shard: int) -> DueKey:
    return DueKey(ring_at=from_us(row[0]), entry_id=row[1], shard=shard)


def _state(key: DueKey, row: Row) -> EntryState:
    raw, fate, handled_at_us, expanded_at_us = row
    try:
        entry = decode_entry(raw)
    except msgspec.DecodeError:  # of a newer release, or spoilt: the rest of the page still counts
        entry = unreadable(key)
    return EntryState(
        entry=entry,
        raw=raw,
        fate=None if fate is None else Fate(fate),
        handled_at=None if handled_at_us is None else from_us(handled_at_us),
        expanded_at=None if expanded_at_us is None else from_us(expanded_at_us),
    )

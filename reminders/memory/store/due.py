"""Due entries."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from datetime import datetime

from reminders.buckets import minute_of
from reminders.memory.store.cells import Cell
from reminders.memory.store.points import Hook, Points
from reminders.memory.store.stamps import stamp_of
from reminders.model.codec import encode
from reminders.model.entry import DueEntry, DueKey, EntryState, Fate, unreadable
from reminders.ports import Counts
from reminders.storage.layout import due_form

Place = tuple[datetime, str]
"""Within a partition: ring_at, entry_id."""


class _Row:
    """A due entry with its fate and outcomes; `entry` is empty where only those were written."""

    __slots__ = ("entry", "expanded", "fate", "handled", "raw")

    def __init__(self) -> None:
        self.entry: Cell[DueEntry] = Cell()
        self.raw: Cell[bytes] = Cell()
        self.fate: Cell[Fate] = Cell()
        self.handled: Cell[datetime] = Cell()
        self.expanded: Cell[datetime] = Cell()

    def state(self) -> EntryState | None:
        if self.entry.value is None or self.raw.value is None:
            return None
        return EntryState(
            entry=self.entry.value,
            raw=self.raw.value,
            fate=self.fate.value,
            handled_at=self.handled.value,
            expanded_at=self.expanded.value,
        )


class _Partition:
    """A minute of a shard."""

    __slots__ = ("places", "rows")

    def __init__(self) -> None:
        self.rows: dict[Place, _Row] = {}
        self.places: list[Place] = []

    def row(self, key: DueKey) -> _Row:
        place = (key.ring_at, key.entry_id)
        row = self.rows.get(place)
        if row is None:
            row = self.rows[place] = _Row()
            insort(self.places, place)
        return row

    def between(
        self, after: DueKey | None, start: datetime | None, before: datetime | None
    ) -> list[Place]:
        first, last = 0, len(self.places)
        if start is not None:
            first = bisect_left(self.places, (start, ""))
        if after is not None:
            first = max(first, bisect_right(self.places, (after.ring_at, after.entry_id)))
        if before is not None:
            last = bisect_left(self.places, (before, ""))
        return self.places[first:last]


class MemoryDueEntries(Points):
    """`reminders.ports.DueEntries`."""

    def __init__(self, hook: Hook | None) -> None:
        super().__init__(hook)
        self._partitions: dict[tuple[datetime, int], _Partition] = {}

    def _row(self, key: DueKey) -> _Row:
        partition = self._partitions.get((key.minute, key.shard))
        if partition is None:
            partition = self._partitions[key.minute, key.shard] = _Partition()
        return partition.row(key)

    def write(self, entry: DueEntry, stamp: int) -> None:
        """One entry, without a point."""
        stored = due_form(entry)
        raw = encode(stored)
        row = self._row(entry.key)
        row.entry.put(stored, stamp, raw)
        row.raw.put(raw, stamp, raw)

    def spoil(self, key: DueKey) -> None:
        """From now on nobody can decode the entry."""
        row = self._row(key)
        row.entry.value, row.raw.value = unreadable(key), b"\xc1"

    async def put(self, entries: Sequence[DueEntry], *, stamp: int) -> None:
        """At once."""
        await self._point("due.put")
        for entry in entries:
            self.write(entry, stamp)
        await self._point("due.put.done")

    async def mark(self, keys: Sequence[DueKey], fate: Fate, *, stamp: int) -> None:
        """At once."""
        await self._point("due.mark")
        for key in keys:
            self._row(key).fate.put(fate, stamp, fate.value)
        await self._point("due.mark.done")

    async def handled(self, entries: Sequence[DueEntry], *, at: datetime) -> None:
        """At once."""
        await self._point("due.handled")
        for entry in entries:
            self._row(entry.key).handled.put(at, stamp_of(at), b"")
        await self._point("due.handled.done")

    async def expanded(self, entries: Sequence[DueEntry], *, at: datetime) -> None:
        """At once."""
        await self._point("due.expanded")
        for entry in entries:
            self._row(entry.key).expanded.put(at, stamp_of(at), b"")
        await self._point("due.expanded.done")

    async def read(self, key: DueKey) -> EntryState | None:
        """One row."""
        await self._point("due.read")
        partition = self._partitions.get((key.minute, key.shard))
        row = partition.rows.get((key.ring_at, key.entry_id)) if partition else None
        return row.state() if row else None

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
        """By bisection."""
        await self._point("due.slice")
        partition = self._partitions.get((minute_of(minute), shard))
        found: list[EntryState] = []
        if partition is None:
            return found
        for place in partition.between(after, start, before):
            if len(found) == limit:
                break
            state = partition.rows[place].state()
            if state is not None:
                found.append(state)
        return found

    async def counts(
        self,
        minute: datetime,
        shard: int,
        *,
        start: datetime | None = None,
        before: datetime | None = None,
    ) -> Counts:
        """Looks at each."""
        await self._point("due.counts")
        partition = self._partitions.get((minute_of(minute), shard))
        places = partition.between(None, start, before) if partition else []
        rows = [partition.rows[place] for place in places] if partition else []
        rows = [row for row in rows if row.entry.value is not None]
        return Counts(
            entries=len(rows),
            handled=sum(row.handled.value is not None for row in rows),
            recurring=sum(row.entry.value is not None and row.entry.value.recurs for row in rows),
            expanded=sum(row.expanded.value is not None for row in rows),
        )

"""Deliveries of fan-outs."""

from bisect import bisect_right, insort
from collections.abc import Sequence
from datetime import datetime

from reminders.memory.store.cells import Cell
from reminders.memory.store.points import Hook, Points
from reminders.memory.store.stamps import stamp_of
from reminders.model.codec import encode
from reminders.model.fanout import PageCount, TargetCounts
from reminders.model.ledger import LedgerRow, counted
from reminders.model.subscriber import bucket_of

_LAST = "\U0010ffff"
"""Behind every channel id."""


class _Partition:
    """A bucket of an occurrence."""

    __slots__ = ("order", "rows")

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], Cell[LedgerRow]] = {}
        self.order: list[tuple[str, str]] = []


class MemoryFanouts(Points):
    """`reminders.ports.Fanouts`, and where the ledger puts rows with a target."""

    def __init__(self, hook: Hook | None) -> None:
        super().__init__(hook)
        self._partitions: dict[tuple[str, str, int], _Partition] = {}
        self._pages: dict[tuple[str, str], dict[tuple[int, int], Cell[PageCount]]] = {}

    def put(self, row: LedgerRow, stamp: int) -> None:
        """For the ledger."""
        name = row.reminder_id, row.occurrence.occurrence_id, bucket_of(row.target)
        partition = self._partitions.setdefault(name, _Partition())
        place = row.target, row.channel_id
        if place not in partition.rows:
            partition.rows[place] = Cell()
            insort(partition.order, place)
        partition.rows[place].put(row, stamp, encode(row))

    def find(
        self, reminder_id: str, occurrence_id: str, channel_id: str, target: str
    ) -> LedgerRow | None:
        """For the ledger."""
        partition = self._partitions.get((reminder_id, occurrence_id, bucket_of(target)))
        cell = partition.rows.get((target, channel_id)) if partition is not None else None
        return cell.value if cell is not None else None

    async def targets(
        self,
        reminder_id: str,
        occurrence_id: str,
        bucket: int,
        *,
        after: tuple[str, str] = ("", ""),
        through: str | None = None,
        limit: int,
    ) -> list[LedgerRow]:
        """By bisection."""
        await self._point("fanouts.targets")
        partition = self._partitions.get((reminder_id, occurrence_id, bucket))
        if partition is None:
            return []
        first = bisect_right(partition.order, after)
        end = len(partition.order)
        if through is not None:
            end = bisect_right(partition.order, (through, _LAST))
        rows = (partition.rows[place].value for place in partition.order[first:end][:limit])
        return [row for row in rows if row is not None]

    async def counts(self, reminder_id: str, occurrence_id: str, bucket: int) -> TargetCounts:
        """One by one."""
        await self._point("fanouts.counts")
        partition = self._partitions.get((reminder_id, occurrence_id, bucket))
        cells = partition.rows.values() if partition is not None else ()
        return counted(cell.value for cell in cells if cell.value is not None)

    async def record(
        self, reminder_id: str, occurrence_id: str, count: PageCount, *, at: datetime
    ) -> None:
        """At once."""
        await self._point("fanouts.record")
        pages = self._pages.setdefault((reminder_id, occurrence_id), {})
        cell = pages.setdefault((count.bucket, count.page), Cell())
        cell.put(count, stamp_of(at), encode(count))
        await self._point("fanouts.record.done")

    async def pages(self, reminder_id: str, occurrence_id: str) -> Sequence[PageCount]:
        """Sorted."""
        await self._point("fanouts.pages")
        pages = self._pages.get((reminder_id, occurrence_id), {})
        found = (pages[place].value for place in sorted(pages))
        return [count for count in found if count is not None]

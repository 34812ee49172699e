"""Deliveries of fan-outs."""

from collections.abc import Sequence
from datetime import datetime

from reminders.model.codec import decode_ledger_row, decode_page_count
from reminders.model.fanout import PageCount, TargetCounts
from reminders.model.ledger import LedgerRow
from reminders.storage.access import Access
from reminders.storage.bridge import translated

PAGES_AT_ONCE = 2_000


class CassandraFanouts:
    """`reminders.ports.Fanouts`."""

    def __init__(self, access: Access) -> None:
        self._access = access

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
        """One query."""
        name = "deliveries_page" if through is None else "deliveries_stretch"
        until = () if through is None else (through,)
        values = (reminder_id, occurrence_id, bucket, *after, *until, limit)
        with translated("fanouts.targets"):
            rows = await self._access.bridge.run(self._access.prepared[name].bind(*values))
        return [decode_ledger_row(row) for (row,) in rows]

    async def counts(self, reminder_id: str, occurrence_id: str, bucket: int) -> TargetCounts:
        """Aggregated by the server."""
        bound = self._access.prepared["deliveries_counts"].bind(reminder_id, occurrence_id, bucket)
        with translated("fanouts.counts"):
            ((rows, opened, taken, stopped),) = await self._access.bridge.run(bound)
        return TargetCounts(
            open=opened, taken=taken, stopped=stopped, failed=rows - opened - taken - stopped
        )

    async def record(
        self, reminder_id: str, occurrence_id: str, count: PageCount, *, at: datetime
    ) -> None:
        """Grouped with what others write."""
        row = self._access.rows.fanout_page(reminder_id, occurrence_id, count, at)
        await self._access.outcomes.write((row,), "fanouts.record")

    async def pages(self, reminder_id: str, occurrence_id: str) -> Sequence[PageCount]:
        """A query for each `PAGES_AT_ONCE`."""
        found: list[PageCount] = []
        after = (-1, 0)
        while True:
            values = (reminder_id, occurrence_id, *after, PAGES_AT_ONCE)
            with translated("fanouts.pages"):
                bound = self._access.prepared["fanout_pages"].bind(*values)
                rows = await self._access.bridge.run(bound)
            found += [decode_page_count(count) for (count,) in rows]
            if len(rows) < PAGES_AT_ONCE:
                return found
            after = (found[-1].bucket, found[-1].page)

"""What happened."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from reminders.model.codec import decode_ledger_row
from reminders.model.ledger import LedgerRow
from reminders.model.subscriber import bucket_of
from reminders.storage.access import Access
from reminders.storage.bridge import translated


class CassandraLedger:
    """`reminders.ports.Ledger`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def write(self, rows: Sequence[LedgerRow], *, at: datetime) -> None:
        """Grouped with what others write; stamped `at`."""
        make = self._access.rows.ledger
        await self._access.outcomes.write((make(row, at) for row in rows), "ledger.write")

    async def read(
        self, reminder_id: str, occurrence_id: str, channel_id: str = "", target: str = ""
    ) -> LedgerRow | None:
        """One query."""
        place: tuple[str | int, ...] = (reminder_id, occurrence_id, channel_id, target)
        statement = "ledger_read"
        if target:
            place = (reminder_id, occurrence_id, bucket_of(target), target, channel_id)
            statement = "delivery_read"
        rows = await self._rows(statement, *place)
        return rows[0] if rows else None

    async def page(
        self,
        reminder_id: str,
        *,
        occurrence_id: str | None = None,
        after: tuple[str, str, str] | None = None,
        limit: int,
    ) -> list[LedgerRow]:
        """One query."""
        if occurrence_id is None:
            if after is None:
                return await self._rows("ledger_page", reminder_id, limit)
            return await self._rows("ledger_page_after", reminder_id, *after, limit)
        if after is None or after[0] > occurrence_id:
            return await self._rows("ledger_occurrence", reminder_id, occurrence_id, limit)
        if after[0] < occurrence_id:
            return []
        return await self._rows("ledger_occurrence_after", reminder_id, *after, limit)

    async def _rows(self, statement: str, *values: Any) -> list[LedgerRow]:
        with translated(statement):
            rows = await self._access.bridge.run(self._access.prepared[statement].bind(*values))
        return [decode_ledger_row(row) for (row,) in rows if row is not None]

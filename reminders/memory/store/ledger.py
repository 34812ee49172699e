"""What happened."""

from collections.abc import Sequence
from datetime import datetime

from reminders.memory.store.cells import Cell
from reminders.memory.store.fanouts import MemoryFanouts
from reminders.memory.store.points import Hook, Points
from reminders.memory.store.stamps import stamp_of
from reminders.model.codec import encode
from reminders.model.ledger import LedgerRow

Place = tuple[str, str, str]
"""Within a reminder: occurrence, channel, target."""


def _place(row: LedgerRow) -> Place:
    return row.occurrence.occurrence_id, row.channel_id, row.target


class MemoryLedger(Points):
    """`reminders.ports.Ledger`."""

    def __init__(self, fanouts: MemoryFanouts, hook: Hook | None) -> None:
        """`fanouts`: where rows with a target go."""
        super().__init__(hook)
        self._fanouts = fanouts
        self._reminders: dict[str, dict[Place, Cell[LedgerRow]]] = {}

    async def write(self, rows: Sequence[LedgerRow], *, at: datetime) -> None:
        """At once."""
        await self._point("ledger.write")
        for row in rows:
            if row.target:
                self._fanouts.put(row, stamp_of(at))
                continue
            cells = self._reminders.setdefault(row.reminder_id, {})
            cells.setdefault(_place(row), Cell()).put(row, stamp_of(at), encode(row))
        await self._point("ledger.write.done")

    async def read(
        self, reminder_id: str, occurrence_id: str, channel_id: str = "", target: str = ""
    ) -> LedgerRow | None:
        """One row."""
        await self._point("ledger.read")
        if target:
            return self._fanouts.find(reminder_id, occurrence_id, channel_id, target)
        cell = self._reminders.get(reminder_id, {}).get((occurrence_id, channel_id, target))
        return cell.value if cell else None

    async def page(
        self,
        reminder_id: str,
        *,
        occurrence_id: str | None = None,
        after: Place | None = None,
        limit: int,
    ) -> list[LedgerRow]:
        """Sorts what the reminder has."""
        await self._point("ledger.page")
        cells = self._reminders.get(reminder_id, {})
        places = sorted(
            (
                place
                for place in cells
                if occurrence_id in (None, place[0]) and (after is None or place < after)
            ),
            reverse=True,
        )
        rows = [cells[place].value for place in places[:limit]]
        return [row for row in rows if row is not None]

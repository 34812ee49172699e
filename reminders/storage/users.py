"""Pending occurrences by user."""

from collections.abc import Sequence
from datetime import datetime

from reminders.model.entry import DueEntry, DueKey
from reminders.ports import IndexRow
from reminders.storage.access import Access
from reminders.storage.bridge import translated
from reminders.storage.expiry import from_us, to_us


class CassandraUserIndex:
    """`reminders.ports.UserIndex`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def add(self, entries: Sequence[DueEntry], user_id: str, *, stamp: int) -> None:
        """Grouped with what others write. Entries that are no occurrence have no row."""
        rows = self._access.rows
        added = (m for entry in entries for m in rows.indexed(entry, user_id, stamp))
        await self._access.steps.write(added, "users.add")

    async def remove(self, entries: Sequence[DueEntry], user_id: str, *, stamp: int) -> None:
        """Deletes whole rows, with a stamp."""
        rows = self._access.rows
        gone = (m for entry in entries for m in rows.unindexed(entry, user_id, stamp))
        await self._access.steps.write(gone, "users.remove")

    async def page(
        self,
        namespace: str,
        user_id: str,
        *,
        start: datetime,
        after: IndexRow | None = None,
        limit: int,
    ) -> list[IndexRow]:
        """One query."""
        lower = (to_us(start), "", "")  # every id is greater than the empty one
        if after is not None:
            lower = max(lower, (to_us(after.fire_at), after.reminder_id, after.key.entry_id))
        with translated("users.page"):
            bound = self._access.prepared["user_page"].bind(namespace, user_id, *lower, limit)
            rows = await self._access.bridge.run(bound)
        return [
            IndexRow(
                fire_at=from_us(fire_at_us),
                reminder_id=reminder_id,
                key=DueKey(ring_at=from_us(ring_at_us), entry_id=entry_id, shard=shard),
                group_id=group_id,
                record_created_at=None if created_us is None else from_us(created_us),
            )
            for fire_at_us, reminder_id, entry_id, ring_at_us, shard, group_id, created_us in rows
        ]

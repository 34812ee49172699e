"""Pending occurrences by user."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from datetime import datetime

from reminders.memory.store.cells import Cell
from reminders.memory.store.points import Hook, Points
from reminders.model.codec import encode
from reminders.model.entry import DueEntry
from reminders.ports import IndexRow

Place = tuple[datetime, str, str]
"""Within a user: fire_at, reminder_id, entry_id."""


class _User:
    """A partition."""

    __slots__ = ("places", "rows")

    def __init__(self) -> None:
        self.rows: dict[Place, Cell[IndexRow]] = {}
        self.places: list[Place] = []

    def row(self, place: Place) -> Cell[IndexRow]:
        row = self.rows.get(place)
        if row is None:
            row = self.rows[place] = Cell()
            insort(self.places, place)
        return row


class MemoryUserIndex(Points):
    """`reminders.ports.UserIndex`."""

    def __init__(self, hook: Hook | None) -> None:
        super().__init__(hook)
        self._users: dict[tuple[str, str], _User] = {}

    def _row(self, entry: DueEntry, user_id: str) -> Cell[IndexRow] | None:
        if entry.occurrence is None:
            return None
        user = self._users.setdefault((entry.namespace, user_id), _User())
        return user.row((entry.occurrence.fire_at, entry.reminder_id, entry.key.entry_id))

    def write(self, entry: DueEntry, user_id: str, stamp: int) -> None:
        """One row, without a point."""
        row = self._row(entry, user_id)
        if row is not None and entry.occurrence is not None:
            grouped = entry.group_id is not None
            value = IndexRow(
                fire_at=entry.occurrence.fire_at,
                reminder_id=entry.reminder_id,
                key=entry.key,
                group_id=entry.group_id,
                record_created_at=entry.record_created_at if grouped else None,
            )
            row.put(value, stamp, encode(value))

    async def add(self, entries: Sequence[DueEntry], user_id: str, *, stamp: int) -> None:
        """At once. Entries that are no occurrence have no row."""
        await self._point("users.add")
        for entry in entries:
            self.write(entry, user_id, stamp)
        await self._point("users.add.done")

    async def remove(self, entries: Sequence[DueEntry], user_id: str, *, stamp: int) -> None:
        """At once."""
        await self._point("users.remove")
        for entry in entries:
            row = self._row(entry, user_id)
            if row is not None:
                row.delete(stamp)
        await self._point("users.remove.done")

    async def page(
        self,
        namespace: str,
        user_id: str,
        *,
        start: datetime,
        after: IndexRow | None = None,
        limit: int,
    ) -> list[IndexRow]:
        """By bisection."""
        await self._point("users.page")
        user = self._users.get((namespace, user_id))
        found: list[IndexRow] = []
        if user is None:
            return found
        first = bisect_left(user.places, (start, "", ""))
        if after is not None:
            place = (after.fire_at, after.reminder_id, after.key.entry_id)
            first = max(first, bisect_right(user.places, place))
        for place in user.places[first:]:
            if len(found) == limit:
                break
            row = user.rows[place].value
            if row is not None:
                found.append(row)
        return found

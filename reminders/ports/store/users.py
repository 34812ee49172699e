"""What is pending, by user."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from reminders.model.entry import DueEntry, DueKey


class IndexRow(Struct, frozen=True, kw_only=True, order=True, omit_defaults=True):
    """One pending occurrence of a user."""

    fire_at: datetime
    reminder_id: str
    key: DueKey
    group_id: str | None = None
    record_created_at: datetime | None = None
    """Set with a group: what its fence is compared with."""


class UserIndex(Protocol):
    """Pending occurrences by user, soonest first. A row leaves by itself after its fire.

    For `user_id` stands `Definition.audience`: a topic is filed as a user no caller can name.
    """

    async def add(self, entries: Sequence[DueEntry], user_id: str, *, stamp: int) -> None:
        """Writes rows; repeating is safe. Those of a new reminder `Records.create` writes."""

    async def remove(self, entries: Sequence[DueEntry], user_id: str, *, stamp: int) -> None:
        """Deletes rows; a late `add` with a smaller stamp does not bring them back."""

    async def page(
        self,
        namespace: str,
        user_id: str,
        *,
        start: datetime,
        after: IndexRow | None = None,
        limit: int,
    ) -> list[IndexRow]:
        """At most `limit` rows with `fire_at >= start`, strictly after `after`."""

"""What waits to ring, and how much of it is settled."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from reminders.model.entry import DueEntry, DueKey, EntryState, Fate


class Counts(Struct, frozen=True, kw_only=True):
    """What a stretch of a partition holds."""

    entries: int
    handled: int
    recurring: int
    expanded: int

    @property
    def settled(self) -> bool:
        """True: nothing in it is open. False: look closer, a void entry counts as open here."""
        return self.handled == self.entries and self.expanded >= self.recurring


class DueEntries(Protocol):
    """The partitions of due entries, keyed by (UTC minute of ring_at, shard).

    One that this process can't decode is read as `Kind.UNREADABLE`.
    """

    async def put(self, entries: Sequence[DueEntry], *, stamp: int) -> None:
        """Writes entries. Never touches fate and outcomes, so a late repeat undoes nothing."""

    async def mark(self, keys: Sequence[DueKey], fate: Fate, *, stamp: int) -> None:
        """Sets the fate, whether the entry is there yet or not."""

    async def handled(self, entries: Sequence[DueEntry], *, at: datetime) -> None:
        """Records that nothing is left to send for these."""

    async def expanded(self, entries: Sequence[DueEntry], *, at: datetime) -> None:
        """Records that the occurrence after these is written."""

    async def read(self, key: DueKey) -> EntryState | None:
        """One entry; None if it is not there, or only its fate."""

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
        """At most `limit` entries in order of (ring_at, entry_id), strictly after `after`, with
        `start <= ring_at < before`. Fewer than `limit`: that was all.
        """

    async def counts(
        self,
        minute: datetime,
        shard: int,
        *,
        start: datetime | None = None,
        before: datetime | None = None,
    ) -> Counts:
        """Counts `start <= ring_at < before` without moving the rows."""

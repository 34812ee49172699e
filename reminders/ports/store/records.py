"""What a reminder is: its record, its live entries, the change in progress."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from reminders.model.entry import DueEntry
from reminders.model.record import Change, NewReminder, Record, Stored


class Records(Protocol):
    """Records and their live entries: one partition for each reminder."""

    async def create(self, reminders: Sequence[NewReminder]) -> None:
        """Writes records, live entries, due entries and index rows, stamped `record.stamp`.

        Not atomic over the tables: after an error any part may be there. Repeating writes equal
        bytes.
        """

    async def read(self, reminder_id: str) -> Stored | None:
        """The record with its newest live entries (at least four) and the change in progress."""

    async def beside(self, reminder_id: str) -> tuple[DueEntry, ...]:
        """The live entries of triggers, of every version, newest first. `read` may leave them out:
        they stand behind all that the schedule names.
        """

    async def read_many(self, reminder_ids: Iterable[str]) -> Mapping[str, Stored]:
        """As `read`; missing ones are left out."""

    async def begin(self, record: Record, change: Change) -> bool:
        """Atomically replaces the record's version `record.version - 1` that has no change in
        progress.

        False if it is another version, gone, or changing. Linearizable; after a lost answer it
        finds out by `change.request_id` before it answers.
        """

    async def end(self, record: Record, change: Change) -> bool:
        """Atomically replaces the record at `change.version` and clears `change`, if it stands
        there still.

        False if somebody else ended it first: then read what they recorded.
        """

    async def add_live(self, entries: Sequence[DueEntry], *, stamp: int) -> None:
        """Writes live entries; repeating is safe. Acknowledged before their due entries are
        written.
        """

    async def drop_live(self, reminder_id: str, entry_ids: Iterable[str], *, stamp: int) -> None:
        """Deletes live entries."""

    async def body(self, reminder_id: str, entry_id: str) -> bytes | None:
        """The body of an entry that was too large to stand in its due entry."""

    async def scan(self, after: int | None, *, limit: int) -> "Scanned":
        """About `limit` records strictly after a position, in an order of the store's own; None:
        from the first one.

        Every record that is there all the while comes once in a walk; one that is made or leaves
        meanwhile may or may not come. For operations that look at every record, not for services.
        """


class Scanned(Struct, frozen=True, kw_only=True):
    """A page of a walk over all records."""

    found: tuple[Stored, ...]
    """As `Records.read` gives them."""
    through: int | None
    """Where to go on: from -2^63 to 2^63 - 1, spread evenly over the records. None: that was
    all."""

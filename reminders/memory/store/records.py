"""Records and live entries."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from reminders.memory.store.cells import BY_CONSENSUS, Cell
from reminders.memory.store.due import MemoryDueEntries
from reminders.memory.store.points import Hook, Points
from reminders.memory.store.users import MemoryUserIndex
from reminders.model.codec import encode
from reminders.model.entry import DueEntry
from reminders.model.record import Change, NewReminder, Record, Stored
from reminders.ports import Scanned
from reminders.storage.layout import bare, body_by_reference, triggered

LIVE_READ = 4
"""As many rows as Cassandra's read brings: with fewer in all, it has seen the triggers' as well."""


class _Live:
    """A live entry."""

    __slots__ = ("body", "entry")

    def __init__(self) -> None:
        self.entry: Cell[DueEntry] = Cell()
        self.body: Cell[bytes] = Cell()


class _Reminder:
    """A partition."""

    __slots__ = ("change", "consensus", "live", "record")

    def __init__(self) -> None:
        self.record: Cell[Record] = Cell()
        self.change: Change | None = None
        self.consensus = BY_CONSENSUS
        self.live: dict[str, _Live] = {}

    def decide(self, record: Record, change: Change | None) -> None:
        """As an LWT writes: whatever was written plainly before or after, this wins."""
        self.consensus += 1
        self.record.put(record, self.consensus, b"")
        self.change = change

    def put_live(self, entry: DueEntry, stamp: int) -> None:
        live = self.live.setdefault(entry.key.entry_id, _Live())
        stripped = bare(entry)
        live.entry.put(stripped, stamp, encode(stripped))
        if body_by_reference(entry):
            live.body.put(entry.body, stamp, entry.body)

    def stored(self) -> Stored | None:
        if self.record.value is None:
            return None
        entries, beside = self.entries()
        return Stored(
            record=self.record.value,
            live=entries,
            change=self.change,
            beside=beside if len(entries) + len(beside) < LIVE_READ else None,
        )

    def entries(self) -> tuple[tuple[DueEntry, ...], tuple[DueEntry, ...]]:
        """The schedule's live entries and those of triggers."""
        found = [live.entry.value for live in self.live.values() if live.entry.value]
        found.sort(key=lambda entry: entry.key.entry_id, reverse=True)
        return (
            tuple(entry for entry in found if not triggered(entry)),
            tuple(entry for entry in found if triggered(entry)),
        )


class MemoryRecords(Points):
    """`reminders.ports.Records`."""

    def __init__(self, due: MemoryDueEntries, users: MemoryUserIndex, hook: Hook | None) -> None:
        super().__init__(hook)
        self._due = due
        self._users = users
        self._reminders: dict[str, _Reminder] = {}

    def _reminder(self, reminder_id: str) -> _Reminder:
        return self._reminders.setdefault(reminder_id, _Reminder())

    async def create(self, reminders: Sequence[NewReminder]) -> None:
        """Table by table, with a point between."""
        await self._point("records.create")
        for new in reminders:
            record, reminder = new.record, self._reminder(new.record.reminder_id)
            reminder.record.put(record, record.stamp, encode(record))
            for entry in new.entries:
                reminder.put_live(entry, record.stamp)
        await self._point("records.create.due")
        for new in reminders:
            for entry in new.entries:
                self._due.write(entry, new.record.stamp)
        await self._point("records.create.users")
        for new in reminders:
            for entry in new.entries:
                self._users.write(entry, new.record.definition.audience, new.record.stamp)
        await self._point("records.create.done")

    async def read(self, reminder_id: str) -> Stored | None:
        """All live entries that there are."""
        await self._point("records.read")
        reminder = self._reminders.get(reminder_id)
        return None if reminder is None else reminder.stored()

    async def beside(self, reminder_id: str) -> tuple[DueEntry, ...]:
        """All that there are."""
        await self._point("records.beside")
        reminder = self._reminders.get(reminder_id)
        return reminder.entries()[1] if reminder is not None else ()

    async def read_many(self, reminder_ids: Iterable[str]) -> Mapping[str, Stored]:
        """In the order asked."""
        await self._point("records.read_many")
        found = {i: self._reminders[i].stored() for i in reminder_ids if i in self._reminders}
        return {reminder_id: stored for reminder_id, stored in found.items() if stored}

    async def begin(self, record: Record, change: Change) -> bool:
        """Compares and sets."""
        await self._point("records.begin")
        reminder = self._reminders.get(record.reminder_id)
        stands = reminder.record.value if reminder else None
        begun = (
            reminder is not None
            and stands is not None
            and stands.version == record.version - 1
            and reminder.change is None
        )
        if begun and reminder is not None:
            reminder.decide(record, change)
        repeated = reminder is not None and reminder.change == change
        await self._point("records.begin.done")
        return begun or repeated

    async def end(self, record: Record, change: Change) -> bool:
        """Compares and sets."""
        await self._point("records.end")
        reminder = self._reminders.get(record.reminder_id)
        stands = reminder.record.value if reminder else None
        ended = (
            reminder is not None
            and stands is not None
            and stands.version == change.version
            and reminder.change is not None
            and reminder.change.request_id == change.request_id
        )
        if ended and reminder is not None:
            reminder.decide(record, None)
        await self._point("records.end.done")
        return ended

    async def add_live(self, entries: Sequence[DueEntry], *, stamp: int) -> None:
        """At once."""
        await self._point("records.add_live")
        for entry in entries:
            self._reminder(entry.reminder_id).put_live(entry, stamp)
        await self._point("records.add_live.done")

    async def drop_live(self, reminder_id: str, entry_ids: Iterable[str], *, stamp: int) -> None:
        """At once."""
        await self._point("records.drop_live")
        reminder = self._reminder(reminder_id)
        for entry_id in entry_ids:
            live = reminder.live.setdefault(entry_id, _Live())
            live.entry.delete(stamp)
            live.body.delete(stamp)
        await self._point("records.drop_live.done")

    async def body(self, reminder_id: str, entry_id: str) -> bytes | None:
        """Only large ones are kept apart."""
        await self._point("records.body")
        reminder = self._reminders.get(reminder_id)
        live = reminder.live.get(entry_id) if reminder else None
        return live.body.value if live else None

    async def scan(self, after: int | None, *, limit: int) -> Scanned:
        """In the order of a hash of the ids, as Cassandra does it."""
        await self._point("records.scan")
        places = {_place(reminder_id): one for reminder_id, one in self._reminders.items()}
        ahead = sorted(place for place in places if after is None or place > after)
        page = ahead[:limit]
        stored = (places[place].stored() for place in page)
        return Scanned(
            found=tuple(one for one in stored if one is not None),
            through=page[-1] if len(ahead) > limit else None,
        )


def _place(reminder_id: str) -> int:
    digest = hashlib.blake2b(reminder_id.encode(), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)

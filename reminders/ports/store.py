"""What Cassandra is asked for: the truth."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from reminders.model.ended import Ended, EndedPlace
from reminders.model.endpoint import Endpoint
from reminders.model.entry import DueEntry, DueKey, EntryState, Fate
from reminders.model.ledger import LedgerRow
from reminders.model.recipient import Recipient
from reminders.model.record import Change, DedupClaim, NewReminder, Record, Stored
from reminders.model.subscriber import Secret, Subscriber
from reminders.ports.fanouts import Fanouts


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
        finds out
        by `change.request_id` before it answers.
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


class Ledger(Protocol):
    """What happened, one row for each (occurrence, channel, target).

    Rows with a target, a subscriber's, are written and read here; `Fanouts` pages over them.
    """

    async def write(self, rows: Sequence[LedgerRow], *, at: datetime) -> None:
        """Replaces rows whole; the later `at` wins."""

    async def read(
        self, reminder_id: str, occurrence_id: str, channel_id: str = "", target: str = ""
    ) -> LedgerRow | None:
        """One row."""

    async def page(
        self,
        reminder_id: str,
        *,
        occurrence_id: str | None = None,
        after: tuple[str, str, str] | None = None,
        limit: int,
    ) -> list[LedgerRow]:
        """At most `limit` rows without a target, newest occurrence first, then by channel
        descending; strictly after `after` = (occurrence_id, channel_id, target) in that order.
        """


class EndedDeliveries(Protocol):
    """What ended `failed` or `expired`, by namespace and UTC hour, oldest first. It leaves as the
    ledger does, which decides whether a row still stands (`model.ended.stands`).
    """

    async def add(self, ended: Sequence[Ended]) -> None:
        """Writes rows; repeating is safe."""

    async def page(
        self, namespace: str, hour: datetime, *, after: EndedPlace | None = None, limit: int
    ) -> list[Ended]:
        """At most `limit` of an hour in the order of their places, strictly after `after`, which
        lies in that hour. Fewer than `limit`: that was all.
        """


class Endpoints(Protocol):
    """Endpoints that fail, failed lately or are disabled; the others have no row."""

    async def read(self, namespace: str, endpoint_id: str) -> Endpoint | None:
        """As it stands."""

    async def save(self, endpoint: Endpoint) -> bool:
        """Atomically replaces the version before `endpoint.version`, or nothing where that is 1;
        False if another version stands there. Linearizable.

        After an error it may have been saved, now or later: read, and decide anew. One that is not
        disabled leaves some months after its last change.
        """

    async def show(self, endpoint: Endpoint) -> None:
        """Puts a version into the list of those in trouble; a newer one stays."""

    async def hide(self, endpoint: Endpoint) -> None:
        """Takes it out of the list, as of a version; a newer one stays."""

    async def page(
        self,
        bucket: int,
        *,
        namespace: str | None = None,
        after: tuple[str, str] | None = None,
        limit: int,
    ) -> list[Endpoint]:
        """At most `limit` of the list in order of (namespace, endpoint_id), strictly after `after`,
        of one of its `ENDPOINT_BUCKETS` buckets. `namespace`: only that one's. Fewer than `limit`:
        that was all.
        """


class DedupKeys(Protocol):
    """Who owns a caller's key."""

    async def claim(self, claims: Sequence[DedupClaim]) -> list[DedupClaim]:
        """For each, the claim that stands: its own if it was the first, else the earlier one.

        Linearizable for a key. Two claims of one key within a call: the first wins.
        """

    async def find(self, namespace: str, key: str) -> DedupClaim | None:
        """The claim that stands, if any did when this began."""


class Progress(Protocol):
    """How far each shard is settled."""

    async def read(self) -> Mapping[int, datetime]:
        """`settled_through` by shard: every minute before it needs no more looking at."""

    async def advance(self, shard: int, settled_through: datetime) -> None:
        """Moves it forward; a smaller value than the stored one changes nothing."""


class Fences(Protocol):
    """Groups that were cancelled, by (namespace, group_id)."""

    async def put(self, namespace: str, group_id: str, cancelled_at: datetime) -> None:
        """Makes everything of the group void whose record was created up to `cancelled_at`; a
        smaller value than the stored one changes nothing.
        """

    async def read(self, groups: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], datetime]:
        """`cancelled_at` of those that were cancelled; the others are left out."""


class Sweeps(Protocol):
    """How far operations that walk over all records have come, by their names."""

    async def read(self, name: str) -> bytes | None:
        """What was saved last."""

    async def save(self, name: str, state: bytes, *, expected: bytes | None) -> bool:
        """Atomically replaces `expected`; False if something else stands there. Linearizable.

        After an error it may have been saved, now or later: read, and decide anew.
        """


class Recipients(Protocol):
    """Where users are reached: one row for each (namespace, user_id), which holds all of a user."""

    async def read(self, namespace: str, user_id: str) -> Recipient | None:
        """The record as it stands."""

    async def put(self, recipient: Recipient, *, expected: int | None) -> bool:
        """Atomically replaces the record of version `expected` (None: there is none); False if
        another one stands there. Linearizable.

        After an error it may have been written, now or later; repeated with the same arguments it
        answers True if its own try had been.
        """

    async def delete(self, namespace: str, user_id: str, *, expected: int) -> bool:
        """Atomically takes away the record of version `expected`; False if another one stands
        there. True also where there is none. Linearizable.
        """


class Subscribers(Protocol):
    """Who is told what a topic says, by (namespace, topic_id) in `SUBSCRIBER_BUCKETS` partitions.

    Definition, pause and each secret are cells of their own: writing one never undoes another.
    """

    async def put(self, subscribers: Sequence[Subscriber]) -> None:
        """Replaces the definitions whole, each stamped with its own `stamp`, and adds the secrets
        that they bring; others stay. The pause is not written: that is `pause`'s.

        Not atomic over several.
        """

    async def add_secret(
        self, subscriber: Subscriber, secret: Secret, *, gone: Sequence[Secret] = ()
    ) -> None:
        """Adds one, stamped with its own `stamp`, and takes away those that are `gone`."""

    async def pause(self, subscriber: Subscriber, *, paused: bool, stamp: int) -> None:
        """Sets or clears its pause, and `pause_stamp`."""

    async def delete(
        self, namespace: str, topic_id: str, subscriber_id: str, *, stamp: int
    ) -> None:
        """Takes away all of it that was written up to `stamp`."""

    async def read(self, namespace: str, topic_id: str, subscriber_id: str) -> Subscriber | None:
        """One of them."""

    async def read_many(
        self, namespace: str, topic_id: str, subscriber_ids: Collection[str]
    ) -> Mapping[str, Subscriber]:
        """By id; those that are not there are left out."""

    async def page(
        self, namespace: str, topic_id: str, bucket: int, *, after: str | None = None, limit: int
    ) -> list[Subscriber]:
        """At most `limit` of a bucket in order of `subscriber_id`, strictly after `after`, paused
        ones included. Fewer than `limit`: that was all.
        """

    async def count(self, namespace: str, topic_id: str) -> int:
        """How many there are, paused ones included. Its cost grows with them: not for every fire
        of a huge topic.
        """


class Store(Protocol):
    """All tables."""

    @property
    def records(self) -> Records:
        """Records and their live entries."""

    @property
    def due(self) -> DueEntries:
        """What waits to ring."""

    @property
    def users(self) -> UserIndex:
        """Pending occurrences by user."""

    @property
    def ledger(self) -> Ledger:
        """What happened."""

    @property
    def ended(self) -> EndedDeliveries:
        """What ended without having arrived."""

    @property
    def endpoints(self) -> Endpoints:
        """Which endpoints fail or are disabled."""

    @property
    def fanouts(self) -> Fanouts:
        """Deliveries to the subscribers of topics."""

    @property
    def dedup(self) -> DedupKeys:
        """Callers' keys."""

    @property
    def progress(self) -> Progress:
        """How far each shard is settled."""

    @property
    def fences(self) -> Fences:
        """Which groups were cancelled."""

    @property
    def sweeps(self) -> Sweeps:
        """How far walks over all records have come."""

    @property
    def recipients(self) -> Recipients:
        """Where users are reached."""

    @property
    def subscribers(self) -> Subscribers:
        """Who is told what a topic says."""

    async def ping(self) -> None:
        """Returns if it answers."""

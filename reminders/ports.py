"""What the services need from the world, as small protocols.

Two sets of adapters implement them, the real ones (`storage`, `coordination`) and `memory`; one
contract
suite (`tests/contract`) runs against both. The wording here is the contract.

Store ports raise `StoreUnavailable`, coordination ports `CoordinationUnavailable`, and nothing else
for a
server that is down, slow or short of replicas. After such an error a write may or may not have been
made,
now or later; repeating it with the same arguments is safe. `stamp` is the write's timestamp in µs:
of two
writes to one cell the larger stamp wins, at equal stamps a deletion, else the larger value.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Protocol

from msgspec import Struct

from reminders.model.entry import DueEntry, DueKey, EntryState, Fate, Kind
from reminders.model.ledger import LedgerRow
from reminders.model.record import Change, DedupClaim, NewReminder, Record, Stored


class Clock(Protocol):
    """The reference clock (R-CLK). Never goes back within a process."""

    def now(self) -> datetime:
        """Aware UTC, by the reference server."""

    def in_bounds(self) -> bool:
        """Whether the process may act: sampled lately, and local drift at most 100 ms."""

    async def sleep_until(self, at: datetime) -> None:
        """Returns once `now() >= at`, not before."""


# --- the store ------------------------------------------------------------------------------------


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
    """Pending occurrences by user, soonest first. A row leaves by itself after its fire."""

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
    """What happened, one row for each (occurrence, channel, target)."""

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
        """At most `limit` rows, newest occurrence first, then by channel and target descending;
        strictly after
        `after` = (occurrence_id, channel_id, target) in that order.
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

    async def ping(self) -> None:
        """Returns if it answers."""


# --- coordination ---------------------------------------------------------------------------------


class LeaseAnswer(IntEnum):
    """What the server said about a lease."""

    HELD = 1
    """Yours, for a lease's life from when you asked."""
    LOST = 0
    """Somebody else's, or nobody's."""
    MOVED = -1
    """Another server than the shard's home, or one that lost its data: drop everything, acquire
    anew."""


class Leases(Protocol):
    """One holder for each shard; a token is drawn anew for each acquisition."""

    async def acquire(self, shard: int, token: str) -> LeaseAnswer:
        """Takes a free lease and makes this server the shard's home. Never answers MOVED."""

    async def renew(self, tokens: Mapping[int, str]) -> Mapping[int, LeaseAnswer]:
        """Prolongs each; the life counts from the server's receipt."""

    async def release(self, shard: int, token: str) -> None:
        """Gives it up if it is still ours."""

    async def holder(self, shard: int) -> str | None:
        """The token that holds it now."""

    async def beat(self, member: str) -> Sequence[str]:
        """Says that this member lives (for a lease's life) and answers all that do, sorted."""

    async def leave(self, member: str) -> None:
        """Says that it no longer wants shards."""


class ClaimAnswer(IntEnum):
    """What became of one entry of a claim."""

    CLAIMED = 1
    """Handed on by this call."""
    DUPLICATE = 0
    """Claimed before; its job is under way."""
    READDED = 2
    """Claimed before, but its job was gone: handed on again, to be rechecked."""
    EARLY = -1
    """Its time has not come by the server's TIME."""
    VOID = -2
    """Its reminder was changed or its group cancelled since this copy was read: read it again."""
    STALE = -3
    """The copy is older than voids live: read it again."""


class Copy(Struct, frozen=True, kw_only=True):
    """An entry in a scanner's hands."""

    state: EntryState
    read_at: datetime
    """When reading began, by the reference clock; for a hint, the writer's clock before its write.
    """
    recheck: bool = False
    """The receiver must look into the ledger first. Also lets a gone job be added again."""

    @property
    def voidable(self) -> bool:
        """Whether a void stops it. What a change marked as claimed rings: its caller was told so;
        everything but a first send looks at the record before it goes out."""
        return self.state.entry.kind is Kind.OCCURRENCE and self.state.fate is not Fate.CLAIMED


class Revocation(Struct, frozen=True, kw_only=True):
    """What `revoke` found."""

    claimed: frozenset[str]
    """The dedupe ids among those asked that were claimed before."""
    known_since: datetime | None
    """The server has been the shard's home since then, by its own clock, and lost nothing:
    `claimed` may lack only what was claimed before that. None: it is not the home, or lost its
    data."""
    server_now: datetime

    @property
    def moved(self) -> bool:
        """`claimed` may lack some, whenever they were claimed."""
        return self.known_since is None


class Claims(Protocol):
    """At most one first claim for each dedupe id, and the revocation that stops it. Each call is
    atomic
    for each entry.
    """

    async def claim(
        self, shard: int, token: str, copies: Sequence[Copy]
    ) -> Sequence[ClaimAnswer] | LeaseAnswer:
        """Claims what is due: records the dedupe id and hands the entry to the `jobs` stream, and
        to
        `fires` if it recurs. LOST or MOVED instead: nothing was claimed.
        """

    async def refire(self, shard: int, token: str, states: Sequence[EntryState]) -> LeaseAnswer:
        """Hands entries to `fires` again."""

    async def revoke(
        self, shard: int, reminder_id: str, *, through_version: int, entries: Sequence[DueEntry]
    ) -> Revocation:
        """From now on, entries of the reminder up to this version are void; answers which of
        `entries` were
        claimed before. Sets the void also when MOVED.
        """

    async def claimed(self, shard: int, entries: Sequence[DueEntry]) -> Revocation:
        """As `revoke` answers, of any reminders' entries; makes nothing void."""

    async def fence(
        self, shards: Sequence[int], namespace: str, group_id: str, cancelled_at: datetime
    ) -> None:
        """From now on, and as long as a void lives, first claims of the group's entries whose
        record was created up to `cancelled_at` are void on these shards. A smaller value than the
        one that stands changes nothing. Its cost depends on nothing but the number of shards.
        Fails as a whole: then some shards may have it.
        """


class Job(Struct, frozen=True, kw_only=True):
    """One message of a stream."""

    shard: int
    job_id: str
    raw: bytes
    """Encoded `DueEntry`."""
    recheck: bool
    claimed_at: datetime
    deliveries: int = 1
    """How often it was given to a consumer, this time included."""


class JobStream(Protocol):
    """A hand-off of every shard's claimed entries to a group of consumers, at least once.

    There are two: `jobs` for dispatchers and `fires` for expanders.
    """

    async def read(
        self, consumer: str, shards: Sequence[int], *, count: int, wait: timedelta
    ) -> list[Job]:
        """New messages, at most about `count` for each shard; waits up to `wait` for the first.
        Makes what it
        needs where a stream is missing.
        """

    async def reclaim(
        self, consumer: str, shards: Sequence[int], *, idle: timedelta, count: int
    ) -> list[Job]:
        """Messages that some consumer got and left for longer than `idle`."""

    async def touch(self, consumer: str, jobs: Sequence[Job]) -> None:
        """Says that these are still being worked on: their idle time begins anew."""

    async def done(self, jobs: Sequence[Job]) -> None:
        """Acknowledges and removes them, atomically for each shard."""

    async def lengths(self, shards: Sequence[int]) -> Mapping[int, int]:
        """How many messages each shard holds, under way ones included."""


class Hints(Protocol):
    """Tells the scanner of entries that were written for a time it may have read already. May lose
    some:
    the trailing scan finds those.
    """

    async def announce(self, entries: Sequence[DueEntry], *, written_from: datetime) -> None:
        """Tell of entries; `written_from` is the writer's clock before its write began."""

    async def last(self, shard: int) -> str:
        """Where the shard's hints end now: tail from there."""

    async def tail(
        self, after: Mapping[int, str], *, wait: timedelta
    ) -> Mapping[int, Sequence[tuple[str, bytes, datetime]]]:
        """By shard, what came after the ids given: (id, encoded entry, written_from)."""


class Coordination(Protocol):
    """All of it."""

    @property
    def leases(self) -> Leases:
        """Who leads which shard."""

    @property
    def claims(self) -> Claims:
        """Who rings what."""

    @property
    def jobs(self) -> JobStream:
        """Claimed entries, for dispatchers."""

    @property
    def fires(self) -> JobStream:
        """Claimed entries that recur, for expanders."""

    @property
    def hints(self) -> Hints:
        """Entries written for a time that may have been read."""

    async def ping(self) -> None:
        """Returns if it answers."""

"""What Redis is asked for: who leads, who rings, and the hand-off; all of it can be rebuilt."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Protocol

from msgspec import Struct

from reminders.model.entry import DueEntry, EntryState, Fate, Kind


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
    """Its time is further ahead than asked for, by the server's TIME."""
    VOID = -2
    """Its reminder was changed or its group cancelled since this copy was read: read it again."""
    STALE = -3
    """The copy is older than voids live: read it again."""


class Copy(Struct, frozen=True, kw_only=True, gc=False):
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
        everything but a first send looks at the record before it goes out.
        """
        return self.state.entry.kind is Kind.OCCURRENCE and self.state.fate is not Fate.CLAIMED


class Revocation(Struct, frozen=True, kw_only=True, gc=False):
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
        self,
        shard: int,
        token: str,
        copies: Sequence[Copy],
        *,
        ahead: timedelta = timedelta(0),
    ) -> Sequence[ClaimAnswer] | LeaseAnswer:
        """Claims what is due, or will be within `ahead`: records the dedupe id and hands the entry
        to the `jobs` stream, and to `fires` if it recurs. LOST or MOVED instead: nothing was
        claimed.
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


class Job(Struct, frozen=True, kw_only=True, gc=False):
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

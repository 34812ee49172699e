"""What waits to ring. Everything that waits is a due entry: an occurrence, a retry, and so on."""

from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct

from reminders.model.definition import CatchUp, Channel, Retry


class Origin(StrEnum):
    """Why an occurrence is."""

    SCHEDULE = "schedule"
    """The reminder's time or rule names it."""
    TRIGGER = "trigger"
    """Somebody asked for one ring now, beside the schedule."""
    BACKFILL = "backfill"
    """The rule names it; somebody asked for it after its time."""


class Occurrence(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """One promised ringing, from the local intent to the instant."""

    occurrence_id: str
    """Local intent as a sortable key, unique within the reminder (`recurrence.occurrence_key`)."""
    nominal_local: datetime
    planned_local: datetime
    fold: int = 0
    zone: str
    planned_at: datetime
    """The instant of `planned_local`."""
    fire_at: datetime
    """`planned_at` plus jitter: the promise that lateness is measured against."""
    zone_data: str
    """IANA release that computed the instants."""
    ordinal: int = 1
    """How many occurrences the rule had emitted with this one: the cursor for COUNT."""
    note: str | None = None
    """Which policy moved it, if one did."""
    holiday_data: str = ""
    """Edition of the `holidays` package that its day was computed with; empty where the definition
    uses no holiday calendar."""
    origin: Origin = Origin.SCHEDULE


class DueKey(Struct, frozen=True, kw_only=True, array_like=True, order=True, gc=False):
    """Where a due entry lives: in partition (UTC minute of ring_at, shard)."""

    ring_at: datetime
    entry_id: str
    shard: int

    @property
    def minute(self) -> datetime:
        """The UTC minute whose partition holds the entry."""
        return self.ring_at.replace(second=0, microsecond=0)


class Kind(StrEnum):
    """What rings."""

    OCCURRENCE = "occurrence"
    """A first send to every channel of an occurrence."""
    RETRY = "retry"
    """Another attempt for one channel of an occurrence."""
    PARKED = "parked"
    """A job that could not start in time and waits again."""
    FINISH = "finish"
    """A change that may have stopped half-way: somebody completes it."""
    BACKFILL = "backfill"
    """A page of a backfill: somebody writes the entries of its occurrences, and the next page."""
    UNREADABLE = "unreadable"
    """Stands for a stored entry that this process can't decode; never stored."""
    BACKFILLED = "backfilled"
    """A first send of an occurrence long after its time. It has no live entry: like a retry, it is
    sent after a look at the record and the ledger."""
    REPLAY = "replay"
    """One channel of an occurrence again, after it had ended. It has no live entry either."""
    FANOUT = "fanout"
    """A page of a fan-out: some of a topic's subscribers are told, and the next page is written."""
    TALLY = "tally"
    """Somebody counts how far a fan-out has come."""


class Replay(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Why a delivery that had ended is tried again."""

    replay_id: str
    asked_at: datetime
    """Its age counts from here."""
    after: int
    """How many attempts there had been: those before do not use up `max_attempts`."""
    stood: str
    """How the delivery had ended; a replay that fails does not undo a success."""
    forced: bool = False
    """Also where it was acknowledged, or the reminder cancelled or paused."""


class Leg(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One channel of an occurrence, at its n-th attempt."""

    channel_id: str
    target: str = ""
    """Subscriber of a topic; empty for a user's reminder."""
    attempt: int
    """The attempt that this entry will make, from 1."""
    replay: Replay | None = None


class Body(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """What delivering needs beyond the entry itself; the same for all entries of a version."""

    user_id: str
    channels: tuple[Channel, ...]
    template_id: str | None = None
    params_json: str = "{}"
    retry: Retry = Retry()
    expire_after: timedelta | None = None
    """For a one-shot: how late it may still ring. None for a rule, whose `catch_up` decides."""
    catch_up: CatchUp = CatchUp.LATEST
    catch_up_max_age: timedelta = timedelta(hours=1)
    topic_id: str = ""
    """Whose subscribers are told; then `user_id` and `channels` are empty."""
    labels: tuple[tuple[str, str], ...] = ()
    """Of a topic's reminder: what its subscribers' filters look at."""
    only_subscriber: str = ""
    """Of a test send: this subscriber alone is told, whatever its filter and pause."""


class BackfillPage(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """What is left of a backfill: the body of a `backfill` entry."""

    backfill_id: str
    page: int
    """From 1."""
    start: datetime
    """Occurrences planned at this instant or later."""
    end: datetime
    """And before this one."""
    previous: datetime | None = None
    """When the one before the first was planned: jitter keeps its distance."""


class FanoutPage(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Some of those whom an occurrence of a topic's reminder is for."""

    bucket: int = 0
    """Which partition of the subscribers, or of the deliveries; 0 for a tally."""
    page: int = 1
    """From 1; of a tally 0."""
    after: str = ""
    """Subscribers strictly after this id."""
    replay: Replay | None = None
    """Not the subscribers, but deliveries that had ended and that nobody took, again; `after` and
    `stood` of the replay are of each delivery. Of a tally: one of a replay."""


class DueEntry(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """All that firing needs: one cell, handed on as it is, so that it never mixes versions."""

    key: DueKey
    kind: Kind
    namespace: str
    reminder_id: str
    version: int
    """The reminder's version that wrote it."""
    occurrence: Occurrence | None
    """None for `finish` and `backfill`."""
    next_at: datetime | None = None
    """When the rule's next occurrence fires: from then on this one is superseded under LATEST."""
    recurs: bool = False
    """Whether firing it must be followed by an expansion."""
    record_created_at: datetime
    """What a group fence is compared with."""
    group_id: str | None = None
    leg: Leg | None = None
    """Set for `retry` and for a parked retry."""
    parked: int = 0
    """How often the job was parked."""
    body: bytes = b""
    """Encoded `Body`, or `BackfillPage` for `backfill`; empty for `finish` and `tally`, and where
    it is too big to be inline (then it stands in the live entry of the same id; that of a
    backfilled one, a replay or a page is made of the record)."""
    page: FanoutPage | None = None
    """Set for `fanout` and `tally`."""

    @property
    def replay(self) -> Replay | None:
        """The replay that it is part of."""
        of = self.leg if self.leg is not None else self.page
        return of.replay if of is not None else None

    @property
    def occurrence_id(self) -> str:
        """Empty where the entry is of no occurrence."""
        return self.occurrence.occurrence_id if self.occurrence is not None else ""

    @property
    def dedupe_id(self) -> str:
        """What may be claimed once: the occurrence, leg or attempt, whatever version or place."""
        if self.occurrence is None or self.page is not None:
            return self.key.entry_id
        name = f"{self.reminder_id}.{self.occurrence.occurrence_id}"
        if self.leg is not None:
            name += f"/{self.leg.channel_id}/{self.leg.target}#{self.leg.attempt}"
        return f"{name}!{self.parked}" if self.parked else name

    @property
    def promised_at(self) -> datetime:
        """The time whose minute the dedupe key is filed under; never where the entry was put."""
        # A page of a fan-out is one of its occurrence, wherever whoever repeats puts it.
        of_occurrence = (Kind.OCCURRENCE, Kind.BACKFILLED, Kind.FANOUT, Kind.TALLY)
        if self.occurrence is None or self.kind not in of_occurrence:
            return self.key.ring_at
        return self.occurrence.fire_at


class Fate(StrEnum):
    """What a change decided about an entry. `CLAIMED` is stamped later than `VOID`, so it wins."""

    VOID = "void"
    CLAIMED = "claimed"


class EntryState(Struct, frozen=True, kw_only=True, gc=False):
    """A due entry as it was read, with what has become of it."""

    entry: DueEntry
    raw: bytes
    """The entry as stored: handed on as it is."""
    fate: Fate | None = None
    handled_at: datetime | None = None
    expanded_at: datetime | None = None

    @property
    def settled(self) -> bool:
        """Nothing is left to do, whatever the fate says."""
        return self.handled_at is not None and (
            not self.entry.recurs or self.expanded_at is not None
        )


def unreadable(key: DueKey) -> DueEntry:
    """What is known of an entry that can't be decoded: where it lies, and what its id tells."""
    return DueEntry(
        key=key,
        kind=Kind.UNREADABLE,
        namespace="",
        reminder_id=key.entry_id.partition(".")[0],
        version=0,
        occurrence=None,
        record_created_at=key.ring_at,
    )

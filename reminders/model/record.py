"""What is kept of a reminder."""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from reminders.model.definition import Definition
from reminders.model.entry import DueEntry, DueKey, Occurrence
from reminders.model.ledger import LedgerRow


class Status(StrEnum):
    """What the record says. `fired` is derived by readers: scheduled with nothing ahead."""

    SCHEDULED = "scheduled"
    PAUSED = "paused"
    FIRED = "fired"
    CANCELLED = "cancelled"
    FAILED = "failed"


class OccurrenceAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What a change found out about one live occurrence."""

    occurrence_id: str
    planned_at: datetime
    was_fired: bool
    stopped: int = 0
    """Of its deliveries, those that waited for another attempt, or for a place, and were stopped by
    a cancel."""


class Outcome(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """How a change ended; a repeat of its request id answers this."""

    request_id: str
    action: str
    """What was asked for: `lifecycle.actions.Name`."""
    content_hash: bytes
    """Of the request, to tell a retry from a misuse of its id."""
    version: int
    applied: bool
    """False where the change was refused because the occurrence had fired."""
    answers: tuple[OccurrenceAnswer, ...] = ()
    stopped: int = 0
    """Deliveries that a cancel stopped, of occurrences that had fired: at least so many."""


class Change(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A change in progress, complete enough for anybody to finish it."""

    action: str
    request_id: str
    """The caller's, or one drawn for this change: tells our own LWT after a lost answer."""
    content_hash: bytes
    version: int
    stamp: int
    """Of what the change writes, µs: void = stamp, claimed = stamp + 1."""
    previous: "Record"
    """Restored when the change is refused."""
    revoked: tuple[DueEntry, ...]
    """Live entries of the old version, without bodies."""
    planned: tuple[DueEntry, ...]
    """Entries of the new version, complete."""
    finish: DueKey
    """The entry that makes somebody come back."""
    keeps_schedule: bool = False
    """The new version goes on with the same rule or time: what rang of it is left out, and COUNT
    counts on. False: another schedule, counted anew."""
    rows: tuple[LedgerRow, ...] = ()
    """What will not ring by this change, for the ledger; those that had fired are left out."""


class Record(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One version of a reminder, as the static columns of its partition hold it."""

    namespace: str
    reminder_id: str
    version: int
    status: Status
    definition: Definition
    created_at: datetime
    updated_at: datetime
    """When this version was made: what `after` and "next 09:00" were computed from."""
    stamp: int
    """Of the plain writes of this version, µs since 1970."""
    pause_reason: str = ""
    outcomes: tuple[Outcome, ...] = ()
    """Of the last changes, newest first."""
    emitted: Occurrence | None = None
    """The furthest local intent that versions before this one emitted: a rule, also another one in
    another zone, goes on strictly after it."""
    silenced: tuple[DueEntry, ...] = ()
    """While it is paused: what was ahead, without bodies, soonest first. Nothing of it is on disk
    elsewhere, so nothing of it can ring."""
    stopped: bool = False
    """A one-shot that was cancelled after it had fired: it stays `fired`, and sends no more."""

    @property
    def over(self) -> Status | None:
        """How it ended, if nothing more is sent, whatever waits or is asked for: only a forced
        replay is.
        """
        if self.stopped:
            return Status.CANCELLED
        return self.status if self.status in (Status.CANCELLED, Status.FAILED) else None


class Stored(Struct, frozen=True, kw_only=True, gc=False):
    """A record as it was read, with its live entries and the change in progress, if any."""

    record: Record
    live: tuple[DueEntry, ...] = ()
    """Without bodies, by entry id, newest first; entries of older versions may be among them. Those
    of triggers are not: they are no part of the schedule."""
    change: Change | None = None
    beside: tuple[DueEntry, ...] | None = None
    """Live entries of triggers, of every version, newest first. None: not read, see
    `Records.beside`."""

    @property
    def current(self) -> tuple[DueEntry, ...]:
        """Live entries of the record's own version, soonest first."""
        entries = [entry for entry in self.live if entry.version == self.record.version]
        return tuple(sorted(entries, key=lambda entry: entry.key))


class NewReminder(Struct, frozen=True, kw_only=True, gc=False):
    """All that a create writes."""

    record: Record
    entries: tuple[DueEntry, ...]
    """Complete, soonest first."""


class DedupClaim(Struct, frozen=True, kw_only=True, gc=False):
    """A caller's key and the reminder it stands for."""

    namespace: str
    key: str
    """Prefixed by its kind: `key:` a dedup_key, `request:` a request_id."""
    reminder_id: str
    content_hash: bytes
    created_at: datetime
    """What a repeat of "in 2 hours" is computed from."""
    stamp: int
    """Of the creation's plain writes; a repeat reuses it."""
    expires_at: datetime | None = None
    """When the record may leave; None: it stays."""

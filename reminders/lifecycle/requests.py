"""What goes into the use cases and comes out of them."""

from datetime import datetime
from typing import Generic, TypeVar

from msgspec import Struct

from reminders.errors import Violation
from reminders.model.definition import Definition
from reminders.model.entry import DueEntry, Occurrence
from reminders.model.fanout import Fanout
from reminders.model.ledger import OccurrenceStatus
from reminders.model.record import OccurrenceAnswer, Record, Status

T = TypeVar("T")


class CreateRequest(Struct, frozen=True, kw_only=True, gc=False):
    """One reminder to make, validated and normalized."""

    namespace: str
    definition: Definition
    request_id: str | None = None
    validate_only: bool = False
    too_late: tuple[Violation, ...] = ()
    """Refused for these, unless its key stands for a reminder: then it repeats what was in time, or
    what still had an address."""


class Call(Struct, frozen=True, kw_only=True):
    """Which reminder to change, and which call it is."""

    namespace: str
    reminder_id: str
    expected_version: int | None = None
    """Only this one; None: whatever it is."""
    request_id: str | None = None
    """The same for retries of this very call."""


class View(Struct, frozen=True, kw_only=True, gc=False):
    """A reminder as a caller sees it."""

    record: Record
    status: Status
    """Derived: `fired` where nothing is ahead."""
    ahead: tuple[DueEntry, ...] = ()
    """Planned occurrences that nobody handled yet, soonest first; without bodies."""


class Created(Struct, frozen=True, kw_only=True, gc=False):
    """The stored reminder."""

    view: View
    deduplicated: bool = False
    """An earlier call with the same key had made it."""


class Changed(Struct, frozen=True, kw_only=True):
    """How a change ended."""

    view: View
    was_fired: bool
    answers: tuple[OccurrenceAnswer, ...] = ()
    stopped: int = 0
    """Deliveries that a cancel stopped while they waited: at least so many."""


class OccurrenceView(Struct, frozen=True, kw_only=True):
    """An occurrence over all its deliveries."""

    namespace: str
    reminder_id: str
    version: int
    occurrence: Occurrence
    status: OccurrenceStatus
    reason: str = ""
    claimed_at: datetime | None = None
    target_count: int = 0
    skipped_through: Occurrence | None = None
    """Where a run of skipped ones begins here: its last one."""
    skipped_count: int = 0
    """How many such a run has; 0: so many that they were not counted."""
    fanout: Fanout | None = None
    """How far it has come, where it is a topic's."""


class Backfilled(Struct, frozen=True, kw_only=True):
    """What a backfill was asked to ring."""

    count: int
    capped: bool
    """There are more than `count`."""
    first: tuple[OccurrenceView, ...]


class Page(Struct, Generic[T], frozen=True, kw_only=True):
    """A part of a list; `next_token` is empty on the last one."""

    items: tuple[T, ...]
    next_token: str = ""

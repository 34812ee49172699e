"""What each change makes of a reminder: the next record, and what it plans. Pure.

The procedure around it (`changing`, `completing`) is the same for all of them: it makes void what
was ahead, finds out what had fired, and then writes what the action planned.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import msgspec

from reminders.lifecycle.editions import DataNewer, Editions, Standing, in_use, standing
from reminders.lifecycle.pausing import expired_one_shots, missed_of_rule
from reminders.lifecycle.planning import SCHEDULE, nothing_ahead
from reminders.lifecycle.recomputing import Moved, moved, taken_away
from reminders.lifecycle.recurrences import rule_refused
from reminders.lifecycle.replanning import Replanner
from reminders.model.definition import Definition, Policies, Recurring, Schedule
from reminders.model.entry import DueEntry, Occurrence
from reminders.model.ledger import LedgerRow
from reminders.model.record import Outcome, Record, Status
from reminders.recurrence import RecurrenceError


class Name(StrEnum):
    """As changes and outcomes are stored."""

    CANCEL = "cancel"
    RESCHEDULE = "reschedule"
    UPDATE = "update"
    PAUSE = "pause"
    RESUME = "resume"
    RECOMPUTE = "recompute"


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What a change finds."""

    record: Record
    ahead: tuple[DueEntry, ...]
    """Not known to have fired: its live entries, or what its pause silenced; soonest first."""
    emitted: tuple[Occurrence, ...]
    """What is past, of this version and, the furthest one, of those before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a change wants."""

    record: Record
    planned: tuple[DueEntry, ...] = ()
    keeps_schedule: bool = False
    rows: tuple[LedgerRow, ...] = ()
    """What will not ring by it, for the ledger."""
    moved: tuple[Moved, ...] = ()
    """Of a recompute."""


class Action(Protocol):
    """One kind of change, with what was asked for."""

    @property
    def name(self) -> Name:
        """Its stored name."""

    @property
    def content(self) -> object:
        """What tells a retry of a request id from its misuse."""

    @property
    def needs_unfired(self) -> bool:
        """Whether a one-shot that has fired is an error, or else an answer."""

    @property
    def stops(self) -> bool:
        """Whether it ends what waits of one that has fired: there it has something to do, once."""

    def repeats(self, record: Record, last: Outcome) -> bool:
        """Whether the record is, by its last change, as this would make it."""

    def plan(self, before: Before, new: Record, replanner: Replanner) -> Plan | None:
        """`new`: the old record as the next version, made now. None: there is nothing to change.

        Raises `InvalidRequest`; nothing is written then.
        """


@dataclass(frozen=True, slots=True)
class Cancel:
    """Ends it."""

    name = Name.CANCEL
    content = None
    needs_unfired = False
    stops = True

    def repeats(self, record: Record, last: Outcome) -> bool:
        """Of a cancelled one: what the cancel found out."""
        return last.action == self.name and (record.status is Status.CANCELLED or record.stopped)

    def plan(self, before: Before, new: Record, replanner: Replanner) -> Plan:
        """Nothing follows."""
        del before, replanner
        return Plan(record=_running(new, Status.CANCELLED))


@dataclass(frozen=True, slots=True)
class Reschedule:
    """Another time or rule, from now on; COUNT counts from here. A paused one stays paused."""

    schedule: Schedule
    name = Name.RESCHEDULE
    needs_unfired = True
    stops = False

    @property
    def content(self) -> Schedule:
        """The schedule."""
        return self.schedule

    def repeats(self, record: Record, last: Outcome) -> bool:
        """Never: "in an hour" again is an hour from now."""
        del record, last
        return False

    def plan(self, before: Before, new: Record, replanner: Replanner) -> Plan:
        """A rule begins strictly after what was emitted before it."""
        definition = msgspec.structs.replace(new.definition, schedule=self.schedule)
        new = msgspec.structs.replace(new, definition=definition)
        return Plan(record=new, planned=replanner.first(new, before.emitted))


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Other content. A paused one stays paused."""

    edit: Callable[[Definition], Definition]
    """The new definition of the stored one. Raises `InvalidRequest`."""
    content: bytes
    """What was asked for, in bytes that are equal for a retry."""
    reschedules: bool
    """Whether the schedule is among what was asked for."""
    name = Name.UPDATE
    needs_unfired = True
    stops = False

    def repeats(self, record: Record, last: Outcome) -> bool:
        """Only by its request id."""
        del record, last
        return False

    def plan(self, before: Before, new: Record, replanner: Replanner) -> Plan:
        """As much as possible stays as it was promised: see `replanning`."""
        old = before.record.definition
        definition = self.edit(old)
        new = msgspec.structs.replace(new, definition=definition)
        same = isinstance(old.schedule, Recurring) and definition.schedule == old.schedule
        if self.reschedules and not same:
            return Plan(record=new, planned=replanner.first(new, before.emitted))
        if _calendar(definition.policies) == _calendar(old.policies):
            planned = replanner.reissued(new, before.ahead)
        else:
            planned = replanner.again(
                new, before.record, before.ahead, before.emitted, overdue=True
            )
            if before.ahead and not planned:
                raise nothing_ahead()
        return Plan(record=new, planned=planned, keeps_schedule=True)


@dataclass(frozen=True, slots=True)
class Pause:
    """Silent until resumed. Of a paused one: another reason."""

    reason: str
    name = Name.PAUSE
    needs_unfired = False
    stops = False

    @property
    def content(self) -> str:
        """The reason."""
        return self.reason

    def repeats(self, record: Record, last: Outcome) -> bool:
        """Paused for this reason, or refused because it had fired."""
        paused = record.status is Status.PAUSED and record.pause_reason == self.reason
        return last.action == self.name and (paused or not last.applied)

    def plan(self, before: Before, new: Record, replanner: Replanner) -> Plan:
        """What was ahead is kept in the record."""
        new = msgspec.structs.replace(new, status=Status.PAUSED, pause_reason=self.reason)
        return Plan(record=new, planned=replanner.reissued(new, before.ahead), keeps_schedule=True)


@dataclass(frozen=True, slots=True)
class Resume:
    """Rings again. Of one that is not paused nothing changes."""

    name = Name.RESUME
    content = None
    needs_unfired = False
    stops = False

    def repeats(self, record: Record, last: Outcome) -> bool:
        """What is not paused any more has nothing to change."""
        del record, last
        return False

    def plan(self, before: Before, new: Record, replanner: Replanner) -> Plan | None:
        """A rule goes on with what lies ahead; what fell into the pause is skipped and not counted
        for COUNT. A one-shot rings now if its time has passed, unless it has expired.
        """
        if before.record.status is not Status.PAUSED:
            return None
        new = _running(new, Status.SCHEDULED)
        planned = replanner.again(new, before.record, before.ahead, before.emitted, overdue=False)
        if not isinstance(new.definition.schedule, Recurring):
            gone = taken_away(new, before.ahead, planned)
            planned, expired = expired_one_shots(new, planned)
            return Plan(record=new, planned=planned, keeps_schedule=True, rows=(*gone, *expired))
        try:
            rows = missed_of_rule(new, before.ahead)
        except RecurrenceError as error:
            raise rule_refused(error, new.definition.schedule, SCHEDULE) from error
        return Plan(record=new, planned=planned, keeps_schedule=True, rows=rows)


@dataclass(frozen=True, slots=True)
class Recompute:
    """What is ahead, by our zone and holiday data, where that moves anything."""

    name = Name.RECOMPUTE
    content = None
    needs_unfired = False
    stops = False

    def repeats(self, record: Record, last: Outcome) -> bool:
        """Computing again finds out."""
        del record, last
        return False

    def plan(self, before: Before, new: Record, replanner: Replanner) -> Plan | None:
        """Raises `DataNewer`, `EditionUnknown`."""
        if before.record.status is not Status.SCHEDULED or not before.ahead:
            return None
        _refuse_newer(before)
        planned = replanner.again(new, before.record, before.ahead, before.emitted, overdue=True)
        found = moved(new, before.ahead, planned)
        if not found:
            return None
        return Plan(
            record=new,
            planned=planned,
            keeps_schedule=True,
            rows=taken_away(new, before.ahead, planned),
            moved=found,
        )


def _running(record: Record, status: Status) -> Record:
    return msgspec.structs.replace(record, status=status, pause_reason="", silenced=())


def _calendar(policies: Policies) -> tuple[object, ...]:
    """What decides about instants."""
    return (
        policies.gap,
        policies.overlap,
        policies.missing_day,
        policies.holiday_calendar,
        policies.jitter,
    )


def _refuse_newer(before: Before) -> None:
    ours = in_use()
    for entry in before.ahead:
        occurrence = entry.occurrence
        if occurrence is None:
            continue
        if standing(before.record.definition, occurrence, ours) is Standing.NEWER:
            stored = Editions(zones=occurrence.zone_data, holidays=occurrence.holiday_data)
            raise DataNewer(stored=stored, ours=ours)

"""What a reminder's occurrences should have done, from the versions that the store took
(`History.editions`), from what each change answered, and from what was asked for beside the
schedule.

For each occurrence:

    must       a version, a trigger or a backfill promised it, and no change answered "not fired"
    may        near a change's moment, or of a call that nobody answered: both are right
    not fired  so it was answered, and forbidden unless it was promised again

A version that goes on with the schedule of the one before it (an update of something else, newer
zone data) promises what that one promised and had not rung, also what was due by then.
"""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from reminders.lifecycle.occurrences import jittered, once, record_series
from reminders.model.definition import Recurring
from reminders.model.entry import Occurrence
from reminders.model.record import Outcome, Record, Status
from tests.simulation.history import BASE, Edition, Refilled
from tests.simulation.plan import Plan
from tests.simulation.process import MICROSECOND
from tests.simulation.wishes import NewZoneData

if TYPE_CHECKING:
    from tests.simulation.world import World

ASKED_FOR = 64
"""Occurrences of a rule that are computed at first."""
GOING_ON = ("update", "recompute")
"""Changes that keep the schedule, if it is the same as before."""


class Expected(Struct):
    """By occurrence id."""

    must: dict[str, Occurrence] = field(default_factory=dict)
    may: set[str] = field(default_factory=set)
    not_fired: set[str] = field(default_factory=set)
    asked_again: set[str] = field(default_factory=set)
    """Of those that must: that they were skipped before is no excuse."""

    @property
    def allowed(self) -> set[str]:
        """What may have rung."""
        return self.must.keys() | self.may


class Expectations:
    """Of one run, at its end."""

    def __init__(self, world: "World", rest: datetime) -> None:
        self._editions_of_zones = world.editions
        self._shifts = shifts(world.plan)
        self._history = world.history
        self._rest = rest
        """What was due before must be settled."""
        self._now = world.now()

    def of(self, reminder_id: str) -> Expected:
        """All of a reminder."""
        editions = self._history.editions[reminder_id]
        found = []
        for shift_s in self._shifts:
            with self._editions_of_zones.as_of(shift_s):
                found.append(self._of_schedule(editions))
        expected = _both(found)
        self._triggered(reminder_id, editions, expected)
        self._with_group(editions[0].record, expected)
        if editions[0].record.definition.topic_id and len(editions) > 1:
            # A change ends a fan-out at its next page: who was told by then, nobody knows.
            expected.may |= expected.must.keys()
            expected.must.clear()
        self._backfilled(reminder_id, editions, expected)
        return expected

    # --- the schedule -----------------------------------------------------------------------------

    def _of_schedule(self, editions: list[Edition]) -> Expected:
        expected = Expected()
        ended = [each for each in editions if each.ended]
        before: Record | None = None
        made_by, vague = ended[0].record, False
        for edition, following in zip(ended, [*ended[1:], None], strict=True):
            record = edition.record
            goes_on = before is not None and _goes_on(before, record)
            if not goes_on:
                made_by, vague = record, False
            before = record
            if record.status is not Status.SCHEDULED:
                continue
            vague = vague or _vague(record)
            into = Expected() if vague else expected
            occurrences = self._occurrences(made_by, counted=not vague)
            if goes_on:
                occurrences = _ahead(record, occurrences)
            self._of_edition(record, occurrences, following, into)
            if vague:
                expected.may |= into.allowed
                expected.not_fired |= into.not_fired
        return expected

    def _of_edition(
        self,
        record: Record,
        occurrences: list[Occurrence],
        following: Edition | None,
        expected: Expected,
    ) -> None:
        if record.version > 1 and _outcome(record).action == "resume":
            # What is overdue then, the catch-up policy or the pause may have taken away.
            overdue = [each for each in occurrences if each.fire_at <= record.updated_at]
            expected.may |= {each.occurrence_id for each in overdue}
            occurrences = occurrences[len(overdue) :]
        if following is None:
            self._in_force(occurrences, expected)
        else:
            self._until_changed(occurrences, following, expected)

    def _in_force(self, occurrences: list[Occurrence], expected: Expected) -> None:
        for each in occurrences:
            if each.fire_at < self._rest:
                expected.must[each.occurrence_id] = each
            else:
                expected.may.add(each.occurrence_id)

    def _until_changed(
        self, occurrences: list[Occurrence], following: Edition, expected: Expected
    ) -> None:
        beside = self._history.triggered.get(following.record.reminder_id, {})
        answers = [a for a in _outcome(following.record).answers if a.occurrence_id not in beside]
        fired = {answer.occurrence_id: answer.was_fired for answer in answers}
        last = max((answer.planned_at for answer in answers), default=None)
        changed_at = BASE + MICROSECOND * following.at_us
        for each in occurrences:
            name = each.occurrence_id
            if fired.get(name) is False:
                expected.not_fired.add(name)
                expected.must.pop(name, None)
            elif fired.get(name) or (last is not None and each.planned_at < last):
                expected.must[name] = each
            elif each.fire_at <= changed_at:
                expected.may.add(name)  # settled by then, so nobody was asked about it

    def _occurrences(self, record: Record, *, counted: bool) -> list[Occurrence]:
        schedule = record.definition.schedule
        if not isinstance(schedule, Recurring):
            return once(record)
        if not counted:
            endless = replace(schedule, max_occurrences=None)
            record = replace(record, definition=replace(record.definition, schedule=endless))
        series, asked_for = record_series(record), ASKED_FOR
        first = series.first_after(record.updated_at)
        while True:
            planned = series.next(first, asked_for)
            if len(planned) < asked_for or planned[-1].instant > self._now:
                return jittered(record, planned, None)
            asked_for *= 4

    # --- beside it --------------------------------------------------------------------------------

    def _triggered(self, reminder_id: str, editions: list[Edition], expected: Expected) -> None:
        """One that was acknowledged rings, unless a change answered that it does not."""
        acknowledged = {
            each.occurrence_id for each in self._history.triggers if each.reminder_id == reminder_id
        }
        told = {
            answer.occurrence_id: answer.was_fired
            for edition in editions
            if edition.ended and edition.record.version > 1
            for answer in _outcome(edition.record).answers
        }
        for name, occurrence in self._history.triggered.get(reminder_id, {}).items():
            if told.get(name) is False:
                expected.not_fired.add(name)
            elif name in acknowledged or told.get(name):
                expected.must[name] = occurrence
            else:
                expected.may.add(name)

    def _backfilled(self, reminder_id: str, editions: list[Edition], expected: Expected) -> None:
        """What was acknowledged rings, unless a change ended it."""
        grouped = editions[0].record.definition.group_id in self._history.group_ends
        for asked in self._history.backfills:
            if asked.reminder_id != reminder_id:
                continue
            written = self._history.backfilled.get(reminder_id, {})
            expected.may |= {name for name, each in written.items() if _inside(asked, each)}
            if grouped or any(edition.at_us >= asked.asked_us for edition in editions):
                expected.may |= {each.occurrence_id for each in asked.named}
                continue
            for each in asked.named:
                expected.must[each.occurrence_id] = each
                expected.asked_again.add(each.occurrence_id)

    def _with_group(self, record: Record, expected: Expected) -> None:
        """What was cancelled with its group rings no more; around the call, both are right."""
        end = self._history.group_ends.get(record.definition.group_id or "")
        if end is None or (end.cancelled_at and record.created_at > end.cancelled_at):
            return
        asked_at = BASE + MICROSECOND * end.asked_us
        beside = self._history.triggered.get(record.reminder_id, {})
        for name, each in list(expected.must.items()):
            if name in beside:
                del expected.must[name]
                expected.may.add(name)
            elif end.answered_us and each.fire_at > BASE + MICROSECOND * end.answered_us:
                del expected.must[name]
                expected.not_fired.add(name)
            elif each.fire_at > asked_at or self._history.troubles:
                del expected.must[name]
                expected.may.add(name)


def shifts(plan: Plan) -> tuple[int, ...]:
    """By which zone data a run may have computed."""
    return (0, *(item.shift_s for item in plan.items if isinstance(item, NewZoneData)))


def _both(found: list[Expected]) -> Expected:
    """Of several computations: what must by all, what may by any."""
    first, *others = found
    if not others:
        return first
    must = {
        name: each
        for name, each in first.must.items()
        if all(name in other.must for other in others)
    }
    may = set().union(*(each.allowed for each in found)) - must.keys()
    not_fired = set().union(*(each.not_fired for each in found))
    return Expected(must=must, may=may, not_fired=not_fired)


def _goes_on(before: Record, record: Record) -> bool:
    """Whether a version has the schedule of the one before it."""
    return (
        _outcome(record).action in GOING_ON
        and before.status is Status.SCHEDULED
        and before.definition.schedule == record.definition.schedule
    )


def _ahead(record: Record, occurrences: list[Occurrence]) -> list[Occurrence]:
    """What a version that goes on still has to ring, of all there are."""
    answers = {answer.occurrence_id: answer.was_fired for answer in _outcome(record).answers}
    return [
        each
        for each in occurrences
        if each.fire_at > record.updated_at or answers.get(each.occurrence_id) is False
    ]


def _inside(asked: Refilled, occurrence: Occurrence) -> bool:
    """Whether a backfill was about it."""
    before = asked.before
    if before is None and asked.answered_us is not None:
        before = BASE + MICROSECOND * asked.answered_us + timedelta(seconds=1)
    return asked.start <= occurrence.planned_at and (
        before is None or occurrence.planned_at < before
    )


def _vague(record: Record) -> bool:
    """Whether nobody here knows which occurrences of a version remain.

    What a pause swallowed is not counted. And where Redis had lost its data, what lay ahead counts
    as fired by then: the new rule begins after it.
    """
    if record.version == 1:
        return False
    outcome, schedule = _outcome(record), record.definition.schedule
    if isinstance(schedule, Recurring) and schedule.max_occurrences and outcome.action == "resume":
        return True
    return any(each.was_fired and each.planned_at > record.updated_at for each in outcome.answers)


def _outcome(record: Record) -> Outcome:
    """Of the change that made this version."""
    return next(each for each in record.outcomes if each.version == record.version)

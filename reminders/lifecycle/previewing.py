"""Preview: what a schedule would do, and where which policy acts. Pure: no store and no clock.

What is previewed is a reminder that is created at one instant, `PreviewRequest.after`. A create's
occurrences are computed by the same functions, so the two agree.

The work is bounded, whatever the rule (`bounded`). What a policy leaves out is told as well
(`left_out`).
"""

from datetime import datetime, timedelta

import msgspec
from msgspec import Struct

from reminders.lifecycle.bounded import BoundedPlan
from reminders.lifecycle.editions import uses_holidays
from reminders.lifecycle.left_out import as_skipped, left_out, moved_by
from reminders.lifecycle.occurrences import calendar_policies, once, series_of
from reminders.lifecycle.problems import Problems, Reason
from reminders.lifecycle.recurrences import rule_refused
from reminders.model.definition import After, Definition, LocalTime, Policies, Recurring, Schedule
from reminders.model.entry import Occurrence
from reminders.model.record import Record, Status
from reminders.recurrence import (
    CalendarPolicies,
    Cursor,
    Gap,
    Planned,
    RecurrenceError,
    Series,
    Work,
    holiday_data_version,
    zone_data_version,
)
from reminders.recurrence.wording import in_words, offset_text, policy_word

DEFAULT_COUNT = 10
MAX_COUNT = 1_000
"""Occurrences of one preview, and left-out ones."""
PREVIEW_STEPS = 200_000
"""Steps of work after which a preview stops, for the plan and for what is left out each; 2–6 µs a
step."""

_MS = timedelta(milliseconds=1)


class PreviewRequest(Struct, frozen=True, kw_only=True):
    """A schedule in its normal form, and which part of it to show."""

    schedule: Schedule
    policies: Policies = Policies()
    after: datetime | None = None
    """Aware, in whole milliseconds: as if it were created then; what comes strictly after. None: a
    recurrence from its start, anything else as if created now."""
    count: int = DEFAULT_COUNT


class Previewed(Struct, frozen=True, kw_only=True):
    """One occurrence."""

    occurrence_id: str
    nominal: datetime
    """Naive: what the rule named; for a missing day, on the month's last day."""
    local: datetime
    """Naive: after the policies."""
    fold: int
    zone: str
    instant: datetime
    """Aware, UTC."""
    policy: str = ""
    """Which policies acted: stable words such as `gap_next_valid`, separated by commas."""
    note: str = ""
    """The same in words."""

    @property
    def offset(self) -> str:
        """What the zone is ahead of UTC then: `+02:00`."""
        return offset_text(self.local - self.instant.replace(tzinfo=None))


class LeftOut(Struct, frozen=True, kw_only=True):
    """One that the rule names and a policy leaves out."""

    occurrence_id: str
    nominal: datetime
    zone: str
    instant: datetime
    """Aware, UTC: about when it would have been, for the order among the others."""
    policy: str
    note: str


class Preview(Struct, frozen=True, kw_only=True):
    """The answer."""

    occurrences: tuple[Previewed, ...]
    """Soonest first; fewer than asked for where the schedule ends, or where `stopped` says why."""
    left_out: tuple[LeftOut, ...] = ()
    """Up to the last of `occurrences`, or to the schedule's end; soonest first."""
    stopped: str = ""
    """Why the search was given up before the end; empty if it was not."""
    zone_data: str
    """IANA release."""
    holiday_data: str = ""
    """Edition of the `holidays` package; empty where no holiday calendar decides."""


def read_count(count: int, field: str, problems: Problems) -> int:
    """How many to show; 0 is the default."""
    if not 0 <= count <= MAX_COUNT:
        problems.add(
            field, Reason.VALUE_INVALID, f"must be from 1 to {MAX_COUNT}, or 0 for {DEFAULT_COUNT}"
        )
    return count or DEFAULT_COUNT


def preview(request: PreviewRequest, now: datetime) -> Preview:
    """What the schedule would do.

    Raises:
        InvalidRequest: No such rule can be computed, or it found nothing within the bound of work.
            Fields begin at `schedule`.
    """
    if isinstance(request.schedule, Recurring):
        try:
            return _recurring(request, request.schedule, now)
        except RecurrenceError as error:
            raise rule_refused(error, request.schedule) from error
    return _once(request, now)


def _once(request: PreviewRequest, now: datetime) -> Preview:
    policies = request.policies
    found = _planned_once(request, policies, now)
    skipped: list[Planned] = []
    if isinstance(request.schedule, LocalTime) and policies.gap is Gap.SKIP:
        moved = msgspec.structs.replace(policies, gap=Gap.SHIFT_FORWARD)
        shifted = _planned_once(request, moved, now)
        skipped = [as_skipped(one, "gap") for one in shifted if moved_by(one, "gap")]
    return _answer(found[: request.count], skipped, calendar_policies(policies))


def _planned_once(request: PreviewRequest, policies: Policies, now: datetime) -> list[Planned]:
    """What depends on the time of the create is ahead of it by itself; other times may be past."""
    after = request.after
    relative = isinstance(request.schedule, After)
    occurrences = once(_record(request.schedule, policies, after or now))
    return [
        _as_planned(one)
        for one in occurrences
        if relative or after is None or one.planned_at > after
    ]


def _recurring(request: PreviewRequest, schedule: Recurring, now: datetime) -> Preview:
    base = request.after or now
    definition = _definition(schedule, request.policies)
    series = series_of(definition, created_at=base)
    cursor = Cursor()
    if request.after is not None or schedule.start_local is None:
        cursor = series.first_after(base + _MS)
    plan = BoundedPlan(series, cursor, steps=PREVIEW_STEPS, work=Work())
    found = plan.take(request.count)
    until = _left_out_until(series, found, ended=plan.ended)
    skipped = left_out(series, cursor, until=until, limit=MAX_COUNT, steps=PREVIEW_STEPS)
    return _answer(
        found,
        skipped,
        series.policies,
        stopped=plan.stopped,
        holiday_data=holiday_data_version() if uses_holidays(definition) else "",
    )


def _left_out_until(series: Series, found: list[Planned], *, ended: bool) -> datetime | None:
    """Where to stop looking for what was left out; None: where the series ends by itself."""
    for one in found:
        if series.max_occurrences is not None and one.cursor.emitted >= series.max_occurrences:
            return one.instant
    return None if ended or not found else found[-1].instant


def _answer(
    found: list[Planned],
    skipped: list[Planned],
    policies: CalendarPolicies,
    *,
    stopped: str = "",
    holiday_data: str = "",
) -> Preview:
    return Preview(
        occurrences=tuple(
            Previewed(
                occurrence_id=one.key,
                nominal=one.nominal,
                local=one.local,
                fold=one.fold,
                zone=one.zone,
                instant=one.instant,
                policy=policy_word(one.note),
                note=in_words(one, policies),
            )
            for one in found
        ),
        left_out=tuple(
            LeftOut(
                occurrence_id=one.key,
                nominal=one.nominal,
                zone=one.zone,
                instant=one.instant,
                policy=policy_word(one.note),
                note=in_words(one, policies),
            )
            for one in skipped
        ),
        stopped=stopped,
        zone_data=zone_data_version(),
        holiday_data=holiday_data,
    )


def _as_planned(occurrence: Occurrence) -> Planned:
    return Planned(
        key=occurrence.occurrence_id,
        nominal=occurrence.nominal_local,
        local=occurrence.planned_local,
        fold=occurrence.fold,
        zone=occurrence.zone,
        instant=occurrence.planned_at,
        note=occurrence.note,
        cursor=Cursor(),
    )


def _definition(schedule: Schedule, policies: Policies) -> Definition:
    return Definition(user_id="", schedule=schedule, policies=policies, channels=())


def _record(schedule: Schedule, policies: Policies, created_at: datetime) -> Record:
    return Record(
        namespace="",
        reminder_id="",
        version=1,
        status=Status.SCHEDULED,
        definition=_definition(schedule, policies),
        created_at=created_at,
        updated_at=created_at,
        stamp=0,
    )

"""From a definition to its occurrences: local times, policies, jitter. Pure, without a clock."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

from reminders.lifecycle.editions import uses_holidays
from reminders.model.definition import After, At, Definition, LocalTime, Policies, Recurring
from reminders.model.entry import Occurrence
from reminders.model.record import Record
from reminders.recurrence import (
    CalendarPolicies,
    Cron,
    Cursor,
    Localized,
    Planned,
    Rule,
    Series,
    holiday_data_version,
    instant_key,
    jitter,
    localize,
    wall_clock,
    zone,
    zone_data_version,
)

_SEARCHED_DAYS = 10
"""For the next day on which a local time is ahead: yesterday's second pass, a skipped day, a gap.
"""


def instant_ms(at: datetime) -> datetime:
    """The first whole millisecond that is not before `at`: entries must not ring early."""
    excess = at.microsecond % 1000
    return at + timedelta(microseconds=1000 - excess) if excess else at


def series_of(definition: Definition, *, created_at: datetime) -> Series:
    """The series of a recurring definition. Raises `RecurrenceError` for the part that is wrong."""
    schedule, policies = definition.schedule, definition.policies
    assert isinstance(schedule, Recurring)
    start = schedule.start_local
    if start is None:
        start = created_at.astimezone(zone(schedule.zone)).replace(tzinfo=None, microsecond=0)
    return Series(
        rule=Rule.parse(schedule.rrule) if schedule.rrule else Cron.parse(schedule.cron or ""),
        start_local=start,
        zone=schedule.zone,
        exdates=schedule.exdates_local,
        rdates=schedule.rdates_local,
        max_occurrences=schedule.max_occurrences,
        until=schedule.until,
        policies=calendar_policies(policies),
    )


def calendar_policies(policies: Policies) -> CalendarPolicies:
    """Those that decide about instants."""
    return CalendarPolicies(
        gap=policies.gap,
        overlap=policies.overlap,
        missing_day=policies.missing_day,
        holiday_calendar=policies.holiday_calendar,
    )


def record_series(record: Record) -> Series:
    """The series of a recurring record."""
    return series_of(record.definition, created_at=record.created_at)


def cursor_of(series: Series, occurrence: Occurrence) -> Cursor:
    """Where a series goes on behind an occurrence, of this rule or of the one before it.

    By the local intent; of an elapsing rule by the instant, which is what it promises: newer zone
    data changes what clocks show then, and by the old reading it would ring again, or leave out.
    """
    cursor = Cursor.after(
        occurrence.occurrence_id,
        emitted=occurrence.ordinal,
        fold=occurrence.fold,
        planned=occurrence.planned_local,
    )
    if series.rule.elapses and occurrence.zone == series.zone:
        local, fold = wall_clock(occurrence.planned_at, zone(series.zone))
        cursor = replace(cursor, last_local=local, last_fold=fold, last_missing=0)
    return cursor


def elapses(definition: Definition) -> bool:
    """Whether a rule counts elapsed time: it promises instants, not what clocks show then."""
    schedule = definition.schedule
    if not isinstance(schedule, Recurring):
        return False
    if schedule.rrule:
        return Rule.parse(schedule.rrule).elapses
    return Cron.parse(schedule.cron or "").elapses


def place(series: Series, occurrence: Occurrence) -> datetime:
    """The instant where a series stands behind an occurrence, by today's zone data: `cursor_of`."""
    return series.position(cursor_of(series, occurrence)) or occurrence.planned_at


def furthest(series: Series, occurrences: Iterable[Occurrence]) -> Occurrence | None:
    """Of local intents that were emitted, by this rule or one before it, the one furthest on.

    What was asked for as an instant is no local intent, so it is left out.
    """
    local = [one for one in occurrences if not one.occurrence_id.endswith("Z")]
    return max(local, key=lambda one: place(series, one), default=None)


def cursor_behind(
    series: Series, since: datetime, emitted: Occurrence | None, counted: int
) -> Cursor:
    """The cursor to go on at or after `since`, and strictly after what was `emitted`, with so many
    counted until then.
    """
    cursor = series.first_after(since)
    if emitted is not None and place(series, emitted) >= since:
        cursor = cursor_of(series, emitted)
    return replace(cursor, emitted=counted)


def jittered(record: Record, planned: list[Planned], previous: datetime | None) -> list[Occurrence]:
    """Occurrences of a rule, each knowing its neighbours so that none passes another."""
    window = record.definition.policies.jitter
    holiday_data = holiday_data_version() if uses_holidays(record.definition) else ""
    occurrences = []
    for position, one in enumerate(planned):
        following = planned[position + 1].instant if position + 1 < len(planned) else None
        shift = jitter(
            record.reminder_id,
            one.key,
            window,
            instant=one.instant,
            previous=previous,
            following=following,
        )
        previous = one.instant
        occurrences.append(
            Occurrence(
                occurrence_id=one.key,
                nominal_local=one.nominal,
                planned_local=one.local,
                fold=one.fold,
                zone=one.zone,
                planned_at=one.instant,
                fire_at=_fire_at(record, one.instant, shift),
                zone_data=zone_data_version(),
                ordinal=one.cursor.emitted,
                note=one.note,
                holiday_data=holiday_data,
            )
        )
    return occurrences


def once(record: Record) -> list[Occurrence]:
    """The occurrences of a one-shot: one, or two where BOTH meets a repeated time."""
    return _once(record, _localized(record))


def once_again(record: Record, occurrences: Iterable[Occurrence]) -> list[Occurrence]:
    """The same intents of a one-shot by today's zone data and the record's policies; none where
    these skip it.
    """
    schedule, policies = record.definition.schedule, record.definition.policies
    if not isinstance(schedule, LocalTime):
        return _once(record, [_utc(one.planned_at) for one in occurrences])
    where = zone(schedule.zone)
    return _once(
        record,
        [
            found
            for local in dict.fromkeys(one.nominal_local for one in occurrences)
            for found in localize(local, where, gap=policies.gap, overlap=policies.overlap)
        ],
    )


def _once(record: Record, localized: Iterable[Localized]) -> list[Occurrence]:
    schedule = record.definition.schedule
    zone_name = schedule.zone if isinstance(schedule, LocalTime) else "UTC"
    occurrences = []
    for ordinal, one in enumerate(localized, start=1):
        local = isinstance(schedule, LocalTime)
        key = one.key if local else instant_key(one.instant)
        shift = jitter(
            record.reminder_id, key, record.definition.policies.jitter, instant=one.instant
        )
        occurrences.append(
            Occurrence(
                occurrence_id=key,
                nominal_local=one.nominal,
                planned_local=one.local,
                fold=one.fold,
                zone=zone_name,
                planned_at=one.instant,
                fire_at=_fire_at(record, one.instant, shift),
                zone_data=zone_data_version(),
                ordinal=ordinal,
                note=one.note,
            )
        )
    return occurrences


def _fire_at(record: Record, planned_at: datetime, shift: timedelta) -> datetime:
    """Jitter puts nothing before the version that promises it."""
    return max(planned_at + shift, min(planned_at, record.updated_at))


def _localized(record: Record) -> tuple[Localized, ...]:
    schedule, base = record.definition.schedule, record.updated_at
    policies = record.definition.policies
    if isinstance(schedule, At):
        return (_utc(schedule.instant),)
    if isinstance(schedule, After):
        return (_utc(base + schedule.delay),)
    assert isinstance(schedule, LocalTime)
    where = zone(schedule.zone)
    wall = time.fromisoformat(schedule.time)
    if schedule.date is not None:
        local = datetime.combine(datetime.fromisoformat(schedule.date), wall)
        return localize(local, where, gap=policies.gap, overlap=policies.overlap)
    day = base.astimezone(where).date() - timedelta(days=1)
    for _ in range(_SEARCHED_DAYS):
        local = datetime.combine(day, wall)
        found = localize(local, where, gap=policies.gap, overlap=policies.overlap)
        ahead = tuple(one for one in found if one.instant > base)
        if ahead:
            return ahead
        day += timedelta(days=1)
    return ()


def _utc(instant: datetime) -> Localized:
    at = instant_ms(instant.astimezone(UTC))
    local = at.replace(tzinfo=None)
    return Localized(nominal=local, local=local, fold=0, second_pass=False, instant=at, note=None)

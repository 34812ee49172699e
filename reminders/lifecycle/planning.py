"""From a definition to the entries that will ring. Pure: no I/O and no clock.

A rule has at most two materialized occurrences; each knows when the one after it fires (`next_at`),
which
is what makes it superseded under the catch-up policy LATEST.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, time, timedelta

import msgspec

from reminders.buckets import occurrence_entry_id, shard_of
from reminders.errors import InvalidRequest, Violation
from reminders.model.codec import encode
from reminders.model.definition import After, At, Definition, LocalTime, Recurring
from reminders.model.entry import Body, DueEntry, DueKey, Kind, Occurrence
from reminders.model.record import Record
from reminders.recurrence import (
    CalendarPolicies,
    Cron,
    Cursor,
    Localized,
    Planned,
    RecurrenceError,
    Rule,
    Series,
    jitter,
    localize,
    occurrence_key,
    zone,
    zone_data_version,
)

AHEAD = 2
"""Materialized occurrences of a rule."""
_SEARCHED_DAYS = 10
"""For the next day on which a local time is ahead: yesterday's second pass, a skipped day, a gap.
"""


def instant_ms(at: datetime) -> datetime:
    """The first whole millisecond that is not before `at`: entries must not ring early."""
    excess = at.microsecond % 1000
    return at + timedelta(microseconds=1000 - excess) if excess else at


class Planner:
    """Plans the entries of a record's version."""

    def __init__(self, *, shards: int) -> None:
        self._shards = shards

    def first(self, record: Record) -> tuple[DueEntry, ...]:
        """The entries of a new version, soonest first, with bodies.

        Computed from `record.updated_at` and zone data alone, so a repeat plans the same. Raises
        `InvalidRequest` if nothing lies ahead of it.
        """
        try:
            occurrences, following = self._occurrences(record)
        except RecurrenceError as error:
            raise _refused("RULE_INVALID", str(error)) from error
        if not occurrences:
            raise _refused(
                "NOTHING_AHEAD", "nothing of it lies ahead: give a time or a rule that does"
            )
        return self._entries(record, occurrences, following)

    def following(self, record: Record, live: Iterable[DueEntry]) -> tuple[DueEntry, ...]:
        """The one entry after the furthest of the live ones, whatever the clock says; empty where
        the rule
        ends.
        """
        if not isinstance(record.definition.schedule, Recurring):
            return ()
        series = _series(record)
        cursors = {_cursor(e.occurrence): e.occurrence for e in live if e.occurrence is not None}
        furthest = series.furthest(cursors)
        previous = cursors.get(furthest)
        planned = series.next(furthest, 2)
        before = previous.planned_at if previous is not None else None
        occurrences = _jittered(record, planned, before)
        return self._entries(record, occurrences[:1], occurrences[1:])

    def whole(self, record: Record, entry: DueEntry) -> DueEntry:
        """A live entry of the record's version with its body, as its due entry has it."""
        return msgspec.structs.replace(entry, body=encode(body_of(record.definition)))

    def _occurrences(self, record: Record) -> tuple[list[Occurrence], list[Occurrence]]:
        if not isinstance(record.definition.schedule, Recurring):
            return _once(record), []
        series = _series(record)
        planned = series.next(series.first_after(record.updated_at), AHEAD + 1)
        occurrences = _jittered(record, planned, None)
        return occurrences[:AHEAD], occurrences[AHEAD:]

    def _entries(
        self, record: Record, occurrences: Sequence[Occurrence], following: Sequence[Occurrence]
    ) -> tuple[DueEntry, ...]:
        """One for each; a time that has passed rings at the instant the version was made."""
        body = encode(body_of(record.definition))
        shard = shard_of(record.reminder_id, self._shards)
        recurring = isinstance(record.definition.schedule, Recurring)
        nexts = [one.fire_at for one in (*occurrences[1:], *following)] if recurring else []
        return tuple(
            DueEntry(
                key=DueKey(
                    ring_at=max(occurrence.fire_at, record.updated_at),
                    entry_id=occurrence_entry_id(
                        record.reminder_id, occurrence.occurrence_id, record.version
                    ),
                    shard=shard,
                ),
                kind=Kind.OCCURRENCE,
                namespace=record.namespace,
                reminder_id=record.reminder_id,
                version=record.version,
                occurrence=occurrence,
                next_at=nexts[position] if position < len(nexts) else None,
                recurs=position < len(nexts),
                record_created_at=record.created_at,
                group_id=record.definition.group_id,
                body=body,
            )
            for position, occurrence in enumerate(occurrences)
        )


def body_of(definition: Definition) -> Body:
    """What the dispatcher needs of a definition."""
    policies = definition.policies
    recurring = isinstance(definition.schedule, Recurring)
    return Body(
        user_id=definition.user_id,
        channels=definition.channels,
        template_id=definition.template_id,
        params_json=definition.params_json,
        retry=policies.retry,
        expire_after=None if recurring else policies.expire_after,
        catch_up=policies.catch_up,
        catch_up_max_age=policies.catch_up_max_age,
    )


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
        policies=CalendarPolicies(
            gap=policies.gap,
            overlap=policies.overlap,
            missing_day=policies.missing_day,
            holiday_calendar=policies.holiday_calendar,
        ),
    )


def _series(record: Record) -> Series:
    return series_of(record.definition, created_at=record.created_at)


def _cursor(occurrence: Occurrence) -> Cursor:
    return Cursor.after(occurrence.occurrence_id, emitted=occurrence.ordinal, fold=occurrence.fold)


def _jittered(
    record: Record, planned: list[Planned], previous: datetime | None
) -> list[Occurrence]:
    """Occurrences of a rule, each knowing its neighbours so that none passes another."""
    window = record.definition.policies.jitter
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
                fire_at=one.instant + shift,
                zone_data=zone_data_version(),
                ordinal=one.cursor.emitted,
                note=one.note,
            )
        )
    return occurrences


def _once(record: Record) -> list[Occurrence]:
    """The occurrences of a one-shot: one, or two where BOTH meets a repeated time."""
    schedule = record.definition.schedule
    zone_name = schedule.zone if isinstance(schedule, LocalTime) else "UTC"
    occurrences = []
    for ordinal, one in enumerate(_localized(record), start=1):
        key = occurrence_key(one.nominal, int(one.second_pass))
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
                fire_at=one.instant + shift,
                zone_data=zone_data_version(),
                ordinal=ordinal,
                note=one.note,
            )
        )
    return occurrences


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


def _refused(reason: str, description: str) -> InvalidRequest:
    return InvalidRequest(
        violations=[Violation(field="reminder.schedule", reason=reason, description=description)]
    )

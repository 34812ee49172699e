"""From a definition to the entries that will ring. Pure: no I/O and no clock.

A rule has at most two materialized occurrences; each knows when the one after it fires (`next_at`),
which is what makes it superseded under the catch-up policy LATEST.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import msgspec

from reminders.buckets import occurrence_entry_id, shard_of
from reminders.errors import InvalidRequest, Violation
from reminders.lifecycle.aside import TakesLong
from reminders.lifecycle.occurrences import (
    cursor_behind,
    cursor_of,
    furthest,
    instant_ms,
    jittered,
    once,
    record_series,
    series_of,
)
from reminders.lifecycle.recurrences import rule_refused
from reminders.model.codec import encode
from reminders.model.definition import Definition, Recurring
from reminders.model.entry import Body, DueEntry, DueKey, Kind, Occurrence
from reminders.model.record import Record
from reminders.recurrence import (
    MAX_STEPS,
    Cursor,
    Planned,
    RecurrenceError,
    RuleExhausted,
    Series,
    Work,
)

__all__ = ["AHEAD", "Planner", "body_of", "instant_ms", "series_of"]

AHEAD = 2
"""Materialized occurrences of a rule."""
SCHEDULE = "reminder.schedule"
"""The field that a plan is about."""


class Planner:
    """Plans the entries of a record's version."""

    def __init__(self, *, shards: int) -> None:
        self._shards = shards

    def first(
        self, record: Record, emitted: Iterable[Occurrence] = (), *, steps: int = MAX_STEPS
    ) -> tuple[DueEntry, ...]:
        """The entries of a new schedule, soonest first, with bodies; a rule begins strictly after
        what was `emitted` before it.

        Computed from `record.updated_at` and zone data alone, so a repeat plans the same. Raises
        `InvalidRequest` if nothing lies ahead of it, and `TakesLong` if fewer `steps` of work for
        each occurrence than the series has by itself did not settle that.
        """
        try:
            occurrences, following = self._occurrences(record, emitted, steps)
        except RecurrenceError as error:
            raise rule_refused(error, record.definition.schedule, SCHEDULE) from error
        if not occurrences:
            raise nothing_ahead()
        return self.entries(record, occurrences, following)

    def following(self, record: Record, live: Iterable[DueEntry]) -> tuple[DueEntry, ...]:
        """The one entry after the furthest of the live ones, whatever the clock says; empty where
        the rule ends. Raises `RecurrenceError`.
        """
        occurrences = self.after(record, live, limit=2)
        return self.entries(record, occurrences[:1], occurrences[1:])

    def after(self, record: Record, live: Iterable[DueEntry], *, limit: int) -> list[Occurrence]:
        """The next occurrences after the furthest of the live ones. Raises `RecurrenceError`."""
        return self.behind(record, (e.occurrence for e in live if e.occurrence), limit=limit)

    def behind(
        self, record: Record, occurrences: Iterable[Occurrence], *, limit: int
    ) -> list[Occurrence]:
        """The next ones after the furthest of these, all of this rule. Raises `RecurrenceError`."""
        if not isinstance(record.definition.schedule, Recurring):
            return []
        series = record_series(record)
        cursors = {cursor_of(series, one): one for one in occurrences}
        furthest = series.furthest(cursors)
        previous = cursors.get(furthest)
        before = previous.planned_at if previous is not None else None
        return jittered(record, series.next(furthest, limit), before)

    def whole(self, record: Record, entry: DueEntry) -> DueEntry:
        """A live entry of the record's version with its body, as its due entry has it."""
        return msgspec.structs.replace(entry, body=encode(body_of(record.definition)))

    def entries(
        self, record: Record, occurrences: Sequence[Occurrence], following: Sequence[Occurrence]
    ) -> tuple[DueEntry, ...]:
        """One for each of `occurrences`; `following` are those after them, as far as known.

        A time that has passed rings at the instant the version was made.
        """
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

    def _occurrences(
        self, record: Record, emitted: Iterable[Occurrence], steps: int
    ) -> tuple[list[Occurrence], list[Occurrence]]:
        if not isinstance(record.definition.schedule, Recurring):
            return once(record), []
        series = record_series(record)
        cursor = cursor_behind(series, record.updated_at, furthest(series, emitted), counted=0)
        occurrences = jittered(record, _next(series, cursor, steps), None)
        return occurrences[:AHEAD], occurrences[AHEAD:]


def _next(series: Series, cursor: Cursor, steps: int) -> list[Planned]:
    """The first few. Raises `TakesLong` where a smaller bound of work may have cut them short."""
    if steps >= series.max_steps:
        return series.next(cursor, AHEAD + 1)
    work = Work()
    try:
        planned = replace(series, max_steps=steps).next(cursor, AHEAD + 1, work)
    except RuleExhausted as error:
        raise TakesLong from error
    if len(planned) <= AHEAD and work.steps > steps:
        raise TakesLong
    return planned


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
        topic_id=definition.topic_id,
        labels=definition.labels if definition.topic_id else (),
        only_subscriber=definition.only_subscriber,
    )


def nothing_ahead() -> InvalidRequest:
    """A schedule that would never ring."""
    return InvalidRequest(
        violations=[
            Violation(
                field=SCHEDULE,
                reason="NOTHING_AHEAD",
                description="nothing of it lies ahead: give a time or a rule that does",
            )
        ]
    )

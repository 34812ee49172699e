"""What a changed reminder rings: the same again, the same intents anew, or on from what rang. Pure.

| the change                     | planned                                     | COUNT      |
|--------------------------------|---------------------------------------------|------------|
| another schedule               | `first`: from now                           | from now   |
| other calendar policies, data  | `again`: the same local intents             | goes on    |
| payload, channels, …           | `reissued`: the very same occurrences       | goes on    |
| any, once it is known what rang| `onward`: strictly after that, topped up    | as planned |

The first three run before a change begins and stand in it; `onward` runs after its revocation, when
nothing of the old version can be claimed any more.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from reminders.buckets import occurrence_entry_id
from reminders.lifecycle.occurrences import (
    cursor_behind,
    furthest,
    jittered,
    once_again,
    place,
    record_series,
)
from reminders.lifecycle.planning import AHEAD, SCHEDULE, Planner, body_of
from reminders.lifecycle.recurrences import rule_refused
from reminders.model.codec import encode
from reminders.model.definition import Recurring
from reminders.model.entry import DueEntry, DueKey, Occurrence
from reminders.model.record import Record
from reminders.recurrence import MAX_STEPS, RecurrenceError


class Replanner:
    """Plans the entries of a version that follows another one."""

    def __init__(self, planner: Planner, *, steps: int = MAX_STEPS) -> None:
        """`steps`: as of `Planner.first`."""
        self._planner = planner
        self._steps = steps

    def first(self, record: Record, emitted: Iterable[Occurrence]) -> tuple[DueEntry, ...]:
        """See `Planner.first`."""
        return self._planner.first(record, emitted, steps=self._steps)

    def reissued(self, record: Record, ahead: Sequence[DueEntry]) -> tuple[DueEntry, ...]:
        """The same occurrences with the new version's body. What is overdue rings at once."""
        body = encode(body_of(record.definition))
        return tuple(
            msgspec.structs.replace(
                entry,
                key=DueKey(
                    ring_at=max(entry.occurrence.fire_at, record.updated_at),
                    entry_id=occurrence_entry_id(
                        record.reminder_id, entry.occurrence.occurrence_id, record.version
                    ),
                    shard=entry.key.shard,
                ),
                version=record.version,
                body=body,
            )
            for entry in ahead
            if entry.occurrence is not None
        )

    def again(
        self,
        record: Record,
        before: Record,
        ahead: Sequence[DueEntry],
        emitted: Iterable[Occurrence],
        *,
        overdue: bool,
    ) -> tuple[DueEntry, ...]:
        """The local intents of `ahead` by our data and the new policies, strictly after those
        emitted before them; with `overdue` also what has passed unclaimed, which rings at once.

        Raises `InvalidRequest` where the rule can't be computed.
        """
        if not isinstance(record.definition.schedule, Recurring):
            occurrences = once_again(record, _occurrences(ahead))
            return _without(self._planner.entries(record, occurrences, ()), emitted)
        if not ahead:
            return ()
        try:
            return self._rule_again(record, before, ahead, emitted, overdue=overdue)
        except RecurrenceError as error:
            raise rule_refused(error, record.definition.schedule, SCHEDULE) from error

    def _rule_again(
        self,
        record: Record,
        before: Record,
        ahead: Sequence[DueEntry],
        emitted: Iterable[Occurrence],
        *,
        overdue: bool,
    ) -> tuple[DueEntry, ...]:
        series = record_series(record)
        first = min(_occurrences(ahead), key=lambda one: place(series, one))
        since = record.updated_at
        if overdue:
            since = min(since, place(series, first))
        # of two that were claimed out of order the later one may be past before the earlier rings
        past = [one for one in emitted if place(series, one) < place(series, first)]
        last = furthest(series, past)
        counted = _counted_before(before, first, since, last)
        cursor = cursor_behind(series, since, last, counted)
        many = max(AHEAD, len(ahead))
        planned = series.next(cursor, many + 1)
        occurrences = jittered(record, planned, last.planned_at if last is not None else None)
        return self._planner.entries(record, occurrences[:many], occurrences[many:])

    # --- once it is known what rang -------------------------------------------------------------

    def onward(
        self,
        record: Record,
        planned: tuple[DueEntry, ...],
        emitted: Sequence[Occurrence],
        *,
        keeps_schedule: bool,
    ) -> tuple[DueEntry, ...]:
        """Of what was planned that which may ring beside what the old version `emitted`: one local
        occurrence rings once, also where the change put it at another instant, which a claim cannot
        notice. A rule is topped up with what follows, and goes on.

        A one-shot with another schedule was asked for by its time and rings, whatever is called the
        same.
        """
        recurring = isinstance(record.definition.schedule, Recurring)
        if not keeps_schedule and not recurring:
            return planned
        kept = _without(planned, emitted)
        if not recurring:
            return kept
        try:
            if keeps_schedule:
                return self._topped_up(record, kept, emitted)
            return self._behind(record, planned, emitted)
        except RecurrenceError:
            return kept  # its expander says so, and where it ends

    def furthest(self, record: Record, emitted: Sequence[Occurrence]) -> Occurrence | None:
        """See `occurrences.furthest`; under a record that may be no rule."""
        if isinstance(record.definition.schedule, Recurring):
            try:
                return furthest(record_series(record), emitted)
            except RecurrenceError:
                pass
        local = [one for one in emitted if not one.occurrence_id.endswith("Z")]
        return max(local, key=lambda one: (one.nominal_local, one.fold), default=None)

    def _topped_up(
        self, record: Record, kept: tuple[DueEntry, ...], emitted: Sequence[Occurrence]
    ) -> tuple[DueEntry, ...]:
        known = [*_occurrences(kept), *emitted]
        while len(kept) < AHEAD and known and (not kept or kept[-1].recurs):
            coming = self._planner.behind(record, known, limit=2)
            if not coming:
                break
            known.append(coming[0])
            kept += self._planner.entries(record, coming[:1], coming[1:])
        return kept

    def _behind(
        self, record: Record, planned: tuple[DueEntry, ...], emitted: Sequence[Occurrence]
    ) -> tuple[DueEntry, ...]:
        """Planned again where a claim came in between: then COUNT counts from there."""
        series = record_series(record)
        last = furthest(series, emitted)
        if last is None or all(
            place(series, one) > place(series, last) for one in _occurrences(planned)
        ):
            return _without(planned, emitted)
        cursor = cursor_behind(series, record.updated_at, last, counted=0)
        occurrences = jittered(record, series.next(cursor, AHEAD + 1), last.planned_at)
        entries = self._planner.entries(record, occurrences[:AHEAD], occurrences[AHEAD:])
        return _without(entries, emitted)


def _counted_before(
    before: Record, first: Occurrence, since: datetime, last: Occurrence | None
) -> int:
    """How many the rule had counted before `first`, and before `since`.

    An ordinal counts its own occurrence unless that is an RDATE, and what EXDATEs leave out in
    between; so the series says how far it counts from there to `first`.
    """
    series = record_series(before)
    start = cursor_behind(series, min(since, place(series, first)), last, counted=0)
    found = series.next(start, 1)
    own = found[0].cursor.emitted if found and found[0].key == first.occurrence_id else 1
    return max(0, first.ordinal - own)


def _without(planned: tuple[DueEntry, ...], emitted: Iterable[Occurrence]) -> tuple[DueEntry, ...]:
    rang = {one.occurrence_id for one in emitted}
    return tuple(e for e in planned if e.occurrence and e.occurrence.occurrence_id not in rang)


def _occurrences(entries: Iterable[DueEntry]) -> list[Occurrence]:
    return [entry.occurrence for entry in entries if entry.occurrence is not None]

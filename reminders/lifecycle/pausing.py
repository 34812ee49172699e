"""What fell into a pause and will not ring: one row in the ledger. Pure.

A rule is paused for weeks and may name an occurrence every second, so the run's end is not walked
to: halving the stretch behind its last known occurrence finds it in some forty steps.
"""

from datetime import datetime, timedelta

import msgspec

from reminders.lifecycle.endings import ended_row
from reminders.lifecycle.occurrences import cursor_of, jittered, place, record_series
from reminders.model.entry import DueEntry
from reminders.model.ledger import LedgerRow, OccurrenceStatus
from reminders.model.record import Record
from reminders.recurrence import Planned, Series

COUNTED = 1000
"""Of a longer run only the first and the last are on record, its count is 0; about 20 ms."""
PAUSED = "paused"
_MS = timedelta(milliseconds=1)


def missed_of_rule(record: Record, silenced: tuple[DueEntry, ...]) -> tuple[LedgerRow, ...]:
    """The row of what a rule named from the first silenced one until `record.updated_at`, if
    anything. Raises `RecurrenceError`.
    """
    first = silenced[0].occurrence if silenced else None
    until = record.updated_at
    if first is None:
        return ()
    series = record_series(record)
    if place(series, first) >= until:
        return ()
    run = [one for one in series.next(cursor_of(series, first), COUNTED) if one.instant < until]
    count = len(run) + 1
    last = run[-1] if run else None
    if last is not None and count > COUNTED:
        last, count = _last_before(series, last, until), 0
    through = jittered(record, [last], None)[0] if last is not None else first
    row = ended_row(record, first, OccurrenceStatus.SKIPPED, PAUSED)
    return (msgspec.structs.replace(row, skipped_through=through, skipped_count=count),)


def expired_one_shots(
    record: Record, planned: tuple[DueEntry, ...]
) -> tuple[tuple[DueEntry, ...], tuple[LedgerRow, ...]]:
    """Of a one-shot's entries those that still ring, and rows for those that are too late for it.

    What became due within the pause is promised anew, for now: its lateness and its retries count
    from there.
    """
    now = record.updated_at
    latest = record.definition.policies.expire_after
    rings, rows = [], []
    for entry in planned:
        occurrence = entry.occurrence
        assert occurrence is not None
        if now > occurrence.fire_at + latest:
            rows.append(ended_row(record, occurrence, OccurrenceStatus.EXPIRED, PAUSED))
            continue
        promised = msgspec.structs.replace(occurrence, fire_at=max(occurrence.fire_at, now))
        rings.append(msgspec.structs.replace(entry, occurrence=promised))
    return tuple(rings), tuple(rows)


def _last_before(series: Series, known: Planned, until: datetime) -> Planned:
    """The last occurrence before `until`; `known` is one."""
    high = until
    while high - known.instant > _MS:
        middle = known.instant + (high - known.instant) / 2
        found = series.next(series.first_after(middle), 1)
        if found and found[0].instant < high:
            known = found[0]
        else:
            high = middle
    return known

"""What a rule names in a past range, and the entries that ring it. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import msgspec

from reminders.buckets import backfill_entry_id, backfilled_entry_id
from reminders.lifecycle.occurrences import jittered, record_series
from reminders.lifecycle.planning import body_of
from reminders.model.codec import encode
from reminders.model.entry import (
    BackfillPage,
    DueEntry,
    DueKey,
    Kind,
    Occurrence,
    Origin,
)
from reminders.model.record import Record, Stored
from reminders.recurrence import Planned, Rule, RuleExhausted, Series

MILLISECOND = timedelta(milliseconds=1)


def named(stored: Stored, page: BackfillPage, chunk: int) -> Iterator[list[Planned]]:
    """What the rule names in a range, in chunks, none empty.

    COUNT was spent on what was planned since the reminder is there; so its end is the furthest
    live entry, and what lies before is not counted again. What is not planned yet is left alone:
    the expander passes there. Raises `RecurrenceError` if the rule can't be computed any more.
    """
    record = stored.record
    series = _uncounted(record_series(record))
    known = [entry.occurrence for entry in stored.current] + [record.emitted]
    through = max((one.planned_at for one in known if one), default=record.updated_at)
    before = min(page.end, through + MILLISECOND)
    cursor = series.first_after(page.start)
    while True:
        try:
            ahead = series.next(cursor, chunk)
        except RuleExhausted:  # nothing for so long that it would come after the range
            return
        inside = [one for one in ahead if one.instant < before]
        if inside:
            yield inside
        if len(inside) < chunk:
            return
        cursor = inside[-1].cursor


def _uncounted(series: Series) -> Series:
    rule = series.rule
    if isinstance(rule, Rule):
        rule = replace(rule, count=None)
    return replace(series, rule=rule, max_occurrences=None)


def backfilled(
    record: Record, planned: list[Planned], previous: datetime | None
) -> list[Occurrence]:
    """As they were promised. `previous`: when the one before the first was planned, if known."""
    return [
        msgspec.structs.replace(one, origin=Origin.BACKFILL)
        for one in jittered(record, planned, previous)
    ]


def page_entry(record: Record, page: BackfillPage, *, ring_at: datetime, shard: int) -> DueEntry:
    """The entry of a page. It is in no group: turning it looks at the record, as a finish does."""
    return DueEntry(
        key=DueKey(
            ring_at=ring_at,
            entry_id=backfill_entry_id(record.reminder_id, page.backfill_id, page.page),
            shard=shard,
        ),
        kind=Kind.BACKFILL,
        namespace=record.namespace,
        reminder_id=record.reminder_id,
        version=record.version,
        occurrence=None,
        record_created_at=record.created_at,
        body=encode(page),
    )


def backfilled_entries(
    record: Record, ringing: Sequence[Occurrence], *, begin: datetime, apart: timedelta, shard: int
) -> list[DueEntry]:
    """First sends of these, the first one at `begin`."""
    body = encode(body_of(record.definition))
    return [
        DueEntry(
            key=DueKey(
                ring_at=begin + number * apart,
                entry_id=backfilled_entry_id(record.reminder_id, one.occurrence_id, record.version),
                shard=shard,
            ),
            kind=Kind.BACKFILLED,
            namespace=record.namespace,
            reminder_id=record.reminder_id,
            version=record.version,
            occurrence=one,
            record_created_at=record.created_at,
            group_id=record.definition.group_id,
            body=body,
        )
        for number, one in enumerate(ringing)
    ]

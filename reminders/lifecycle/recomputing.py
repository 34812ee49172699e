"""What newer zone or holiday data does to what a reminder has ahead. Pure.

`Changes.recompute` is the use case; this is what it answers, and what the ledger says.
"""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from reminders.lifecycle.endings import ended_row
from reminders.lifecycle.occurrences import elapses
from reminders.model.entry import DueEntry, Occurrence
from reminders.model.ledger import LedgerRow, OccurrenceStatus
from reminders.model.record import Record

DATA_CHANGED = "data_changed"
"""Why an occurrence does not ring that newer data takes away, such as in a gap under SKIP."""


class Moved(Struct, frozen=True, kw_only=True):
    """One occurrence that our data puts elsewhere."""

    namespace: str
    reminder_id: str
    occurrence_id: str
    """The local intent: the same before and after."""
    planned_local: datetime
    """Naive. The promise: the local time that stays, or, where a policy acts, the one that is now
    kept."""
    zone: str
    old_instant: datetime
    """Of the promise, without jitter."""
    new_instant: datetime | None
    """None: the new data takes it away."""
    note: str = ""
    """Which policy acted, or why it is taken away."""


def moved(
    record: Record, ahead: Sequence[DueEntry], planned: Sequence[DueEntry]
) -> tuple[Moved, ...]:
    """What `planned`, by our data, has elsewhere than `ahead`, soonest first."""
    found = []
    for old, new in _pairs(record, ahead, planned):
        if new is not None and new.planned_at == old.planned_at:
            continue
        promised = new or old
        found.append(
            Moved(
                namespace=record.namespace,
                reminder_id=record.reminder_id,
                occurrence_id=old.occurrence_id,
                planned_local=promised.planned_local,
                zone=promised.zone,
                old_instant=old.planned_at,
                new_instant=new.planned_at if new is not None else None,
                note=(new.note or "") if new is not None else DATA_CHANGED,
            )
        )
    return tuple(found)


def taken_away(
    record: Record, ahead: Sequence[DueEntry], planned: Sequence[DueEntry]
) -> tuple[LedgerRow, ...]:
    """Rows for what our data no longer names."""
    return tuple(
        ended_row(record, old, OccurrenceStatus.SKIPPED, DATA_CHANGED)
        for old, new in _pairs(record, ahead, planned)
        if new is None
    )


def _pairs(
    record: Record, ahead: Sequence[DueEntry], planned: Sequence[DueEntry]
) -> list[tuple[Occurrence, Occurrence | None]]:
    """By local intent; of an elapsing rule, which promises instants, by these. Without those behind
    what was planned so far.
    """
    olds = [entry.occurrence for entry in ahead if entry.occurrence is not None]
    news = [entry.occurrence for entry in planned if entry.occurrence is not None]
    by_id = {one.occurrence_id: one for one in news}
    by_instant = {one.planned_at: one for one in news} if elapses(record.definition) else {}
    goes_on = bool(planned) and planned[-1].recurs
    pairs = []
    for old in olds:
        new = by_instant.get(old.planned_at) or by_id.get(old.occurrence_id)
        if new is not None or not goes_on or old.planned_at < news[-1].planned_at:
            pairs.append((old, new))
    return pairs

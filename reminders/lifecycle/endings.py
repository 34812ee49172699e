"""The ledger's row of an occurrence that ended without a delivery, and how ends are written."""

from collections.abc import Sequence
from datetime import datetime

from reminders.model.ended import listed
from reminders.model.entry import DueEntry, Occurrence
from reminders.model.ledger import LedgerRow, OccurrenceStatus
from reminders.model.record import Record
from reminders.ports import Store


def ended_row(
    of: DueEntry | Record,
    occurrence: Occurrence,
    ended: OccurrenceStatus,
    reason: str,
    *,
    claimed_at: datetime | None = None,
) -> LedgerRow:
    """Under the reminder and the version of `of`. `reason`: a stable word."""
    return LedgerRow(
        namespace=of.namespace,
        reminder_id=of.reminder_id,
        reminder_version=of.version,
        occurrence=occurrence,
        claimed_at=claimed_at,
        ended=ended,
        reason=reason,
    )


def ended_by(why: str) -> OccurrenceStatus:
    """What an occurrence is whose fan-out was stopped for that reason."""
    return OccurrenceStatus.EXPIRED if why == "expired" else OccurrenceStatus.CANCELLED


async def write_ends(store: Store, rows: Sequence[LedgerRow], *, at: datetime) -> None:
    """Ledger rows; those that failed or expired are listed first (`model.ended`)."""
    marked = [listed(row, at=at) for row in rows]
    found = [ended for _, ended in marked if ended is not None]
    if found:
        await store.ended.add(found)
    await store.ledger.write([row for row, _ in marked], at=at)

"""The ledger's row of an occurrence that ended without a delivery. Pure."""

from datetime import datetime

from reminders.model.entry import DueEntry, Occurrence
from reminders.model.ledger import LedgerRow, OccurrenceStatus
from reminders.model.record import Record


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

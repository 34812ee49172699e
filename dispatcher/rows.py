"""The ledger rows of a leg, from its first attempt to its end. Pure."""

from datetime import datetime

from msgspec.structs import replace

from dispatcher.channels.port import Outcome, Result
from dispatcher.decision import OUTCOME_UNKNOWN, spent
from dispatcher.retry import next_attempt_at, refusal
from dispatcher.work import LegWork
from reminders.model.ledger import Attempt, DeliveryStatus, LedgerRow

KEPT_ATTEMPTS = 20

_STATUS_OF = {
    "expired": DeliveryStatus.EXPIRED,
    "cancelled": DeliveryStatus.CANCELLED,
    "paused": DeliveryStatus.CANCELLED,
    "rescheduled": DeliveryStatus.CANCELLED,
    "orphan": DeliveryStatus.CANCELLED,
    "outdated": DeliveryStatus.CANCELLED,
}
"""How a leg ends, by the reason. Others: failed."""


def blank(leg: LegWork) -> LedgerRow:
    """Of a leg that the ledger does not know."""
    work = leg.work
    return LedgerRow(
        namespace=work.entry.namespace,
        reminder_id=work.entry.reminder_id,
        reminder_version=work.entry.version,
        occurrence=work.occurrence,
        claimed_at=work.job.claimed_at,
        channel_id=leg.channel.channel_id,
        target=leg.target,
        delivery_key=leg.delivery_key,
        delivery=DeliveryStatus.PENDING,
    )


def unknown(row: LedgerRow, number: int, at: datetime) -> LedgerRow:
    """Before a send that may be a repeat: the attempt whose outcome nobody saw."""
    attempt = Attempt(number=number, started_at=at, error_class=OUTCOME_UNKNOWN)
    return replace(
        row,
        delivery=DeliveryStatus.SENDING,
        attempts=(*row.attempts, attempt)[-KEPT_ATTEMPTS:],
        attempt_count=number,
        next_attempt_at=None,
    )


def ended(row: LedgerRow, reason: str) -> LedgerRow:
    """Of a leg that is given up without a further attempt."""
    status = _STATUS_OF.get(reason, DeliveryStatus.FAILED)
    return replace(row, delivery=status, reason=reason, next_attempt_at=None)


def attempted(
    leg: LegWork, row: LedgerRow, number: int, span: tuple[datetime, datetime], result: Result
) -> LedgerRow:
    """After an attempt that ran through `span`."""
    started_at, ended_at = span
    attempt = Attempt(
        number=number,
        started_at=started_at,
        duration=ended_at - started_at,
        status_code=result.status_code,
        error_class=result.error_class,
        excerpt=result.excerpt,
        outcome_unknown=result.outcome is Outcome.UNKNOWN,
    )
    row = replace(
        row,
        attempts=(*row.attempts, attempt)[-KEPT_ATTEMPTS:],
        attempt_count=number,
        provider_event_id=result.provider_event_id or row.provider_event_id,
        next_attempt_at=None,
    )
    if result.outcome is Outcome.OK:
        status = DeliveryStatus.CONFIRMED if result.acknowledged else DeliveryStatus.DELIVERED
        return replace(row, delivery=status, reason="", acknowledged=result.acknowledged)
    if result.outcome is Outcome.PERMANENT:
        return ended(row, result.error_class)
    again_at = next_attempt_at(leg.delivery_key, number, ended_at, result.retry_after)
    reason = refusal(
        leg.work.body, leg.work.occurrence, spent(row), again_at, claimed_at=row.claimed_at
    )
    if reason is None:
        return replace(row, delivery=DeliveryStatus.RETRYING, next_attempt_at=again_at)
    return ended(row, reason)

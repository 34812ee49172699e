"""The ledger rows of a leg, from its first attempt to its end; and the one of an occurrence that is
told to a topic's subscribers. Pure.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from dispatcher.channels.port import Outcome, Result
from dispatcher.decision import OUTCOME_UNKNOWN, spent
from dispatcher.retry import next_attempt_at, refusal
from dispatcher.work import LegWork, Work
from reminders.lifecycle.fanning import COUNT_AFTER
from reminders.model.definition import RETRY_SCHEDULE
from reminders.model.entry import DueEntry
from reminders.model.fanout import Fanout
from reminders.model.ledger import Attempt, DeliveryStatus, LedgerRow

KEPT_ATTEMPTS = 20

_STATUS_OF = {
    "expired": DeliveryStatus.EXPIRED,
    "cancelled": DeliveryStatus.CANCELLED,
    "paused": DeliveryStatus.CANCELLED,
    "rescheduled": DeliveryStatus.CANCELLED,
    "orphan": DeliveryStatus.CANCELLED,
    "outdated": DeliveryStatus.CANCELLED,
    "opted_out": DeliveryStatus.CANCELLED,
    "quiet_hours": DeliveryStatus.CANCELLED,
    "unsubscribed": DeliveryStatus.CANCELLED,
    "subscriber_paused": DeliveryStatus.CANCELLED,
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


def parked(leg: LegWork, row: LedgerRow, entry: DueEntry) -> LedgerRow | None:
    """Where the attempt waits, for a cancel and for people who ask. None: the row tells of
    something else by now.
    """
    waits = row.delivery in (DeliveryStatus.PENDING, DeliveryStatus.RETRYING)
    if not waits or row.attempt_count + 1 != leg.attempt:
        return None
    return replace(row, reason="", next_attempt_at=entry.key.ring_at, parked=entry.parked)


def waiting(leg: LegWork, row: LedgerRow, attempt: int, reason: str, until: datetime) -> LedgerRow:
    """Of a leg whose next attempt, that one, is put off by the receiver; it uses up nothing."""
    return replace(
        row,
        delivery=DeliveryStatus.RETRYING if row.attempts else DeliveryStatus.PENDING,
        attempt_count=attempt - 1,
        reason=reason,
        next_attempt_at=until,
        parked=leg.work.entry.parked + 1,
    )


def unknown(leg: LegWork, row: LedgerRow, number: int, at: datetime) -> LedgerRow:
    """Before a send that may be a repeat: the attempt whose outcome nobody saw."""
    attempt = Attempt(
        number=number, started_at=at, error_class=OUTCOME_UNKNOWN, replay=_replay_id(leg)
    )
    return replace(
        row,
        delivery=DeliveryStatus.SENDING,
        attempts=(*row.attempts, attempt)[-KEPT_ATTEMPTS:],
        attempt_count=number,
        reason="",
        next_attempt_at=None,
        parked=0,
    )


def ended(row: LedgerRow, reason: str, status: DeliveryStatus | None = None) -> LedgerRow:
    """Of a leg that is given up without a further attempt. `status`: None if the reason tells."""
    status = status or _STATUS_OF.get(reason, DeliveryStatus.FAILED)
    return replace(row, delivery=status, reason=reason, next_attempt_at=None, parked=0)


def given_up(
    leg: LegWork, row: LedgerRow, reason: str, status: DeliveryStatus | None = None
) -> LedgerRow:
    """As `ended`; but a delivery that was taken stays so, whatever becomes of its replay."""
    if leg.replay is not None:
        stood = DeliveryStatus(leg.replay.stood)
        if stood in (DeliveryStatus.DELIVERED, DeliveryStatus.CONFIRMED):
            return replace(row, delivery=stood, reason="", next_attempt_at=None, parked=0)
    return ended(row, reason, status)


def attempted(
    leg: LegWork,
    row: LedgerRow,
    number: int,
    span: tuple[datetime, datetime],
    result: Result,
    schedule: Sequence[timedelta] = RETRY_SCHEDULE,
) -> LedgerRow:
    """After an attempt that ran through `span`. `schedule`: where the reminder has none."""
    started_at, ended_at = span
    attempt = Attempt(
        number=number,
        started_at=started_at,
        duration=ended_at - started_at,
        status_code=result.status_code,
        error_class=result.error_class,
        excerpt=result.excerpt,
        outcome_unknown=result.outcome is Outcome.UNKNOWN,
        replay=_replay_id(leg),
    )
    row = replace(
        row,
        attempts=(*row.attempts, attempt)[-KEPT_ATTEMPTS:],
        attempt_count=number,
        provider_event_id=result.provider_event_id or row.provider_event_id,
        reason="",
        next_attempt_at=None,
        parked=0,
    )
    if result.outcome is Outcome.OK:
        status = DeliveryStatus.CONFIRMED if result.acknowledged else DeliveryStatus.DELIVERED
        acknowledged = result.acknowledged or row.acknowledged
        return replace(row, delivery=status, reason="", acknowledged=acknowledged)
    if result.outcome is Outcome.PERMANENT:
        # A provider's word may be one of ours: Twilio's for who texted STOP is `opted_out`.
        return given_up(leg, row, result.error_class, DeliveryStatus.FAILED)
    again_at = next_attempt_at(
        leg.delivery_key,
        number - leg.before,
        ended_at,
        result.retry_after,
        leg.work.body.retry.schedule or schedule,
    )
    reason = refusal(
        leg.work.body,
        leg.work.occurrence,
        spent(row, leg.before),
        again_at,
        claimed_at=row.claimed_at,
        replay=leg.replay,
    )
    if reason is None:
        return replace(row, delivery=DeliveryStatus.RETRYING, next_attempt_at=again_at)
    return given_up(leg, row, reason)


def fanned_out(work: Work, started_at: datetime, skipped: LedgerRow | None) -> LedgerRow:
    """Of an occurrence whose fan-out begins. `skipped`: what it said before a backfill."""
    return LedgerRow(
        namespace=work.entry.namespace,
        reminder_id=work.entry.reminder_id,
        reminder_version=work.entry.version,
        occurrence=work.occurrence,
        claimed_at=work.job.claimed_at,
        fanout=Fanout(
            topic_id=work.body.topic_id,
            only_subscriber=work.body.only_subscriber,
            started_at=started_at,
            next_at=started_at + COUNT_AFTER,
        ),
        skipped_through=skipped.skipped_through if skipped is not None else None,
        skipped_count=skipped.skipped_count if skipped is not None else 0,
    )


def _replay_id(leg: LegWork) -> str:
    return leg.replay.replay_id if leg.replay is not None else ""

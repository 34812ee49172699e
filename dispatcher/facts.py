"""What happened to a delivery: one frozen fact, for log, metrics and tests alike (R-OPS-2)."""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from dispatcher.channels import kind_of
from dispatcher.work import LegWork
from reminders.model.entry import Origin
from reminders.model.ledger import LedgerRow


class Event(StrEnum):
    """Constant names of log events."""

    ATTEMPTED = "delivery.attempted"
    """An attempt was made and its outcome is in the ledger."""
    OUTCOME_UNKNOWN = "delivery.outcome_unknown"
    """An earlier attempt may have reached the receiver; the next one may be a repeat."""
    SUPPRESSED = "delivery.suppressed"
    """A job for what was done already."""
    REQUEUED = "delivery.requeued"
    """A retry's entry was written again, after a crash."""
    PARKED = "delivery.parked"
    """Its destination could not be tried now: the reason is `TurnedAway`'s."""
    ENDED = "delivery.ended"
    """Given up without an attempt: cancelled, expired, too old, opted out."""
    WAITING = "delivery.waiting"
    """Put off until the receiver's quiet hours end; not an attempt."""
    POISONED = "delivery.poisoned"
    """It took processes down again and again. An alarm."""


class Fact(Struct, frozen=True, kw_only=True, gc=False):
    """One change of a delivery's state."""

    event: Event
    reminder_id: str
    occurrence_id: str
    channel_id: str
    channel_kind: str
    subscriber_id: str
    delivery_key: str
    attempt: int
    state: str
    """The delivery's status after it."""
    outcome: str = ""
    """Of an attempt."""
    status_code: int = 0
    error_class: str = ""
    reason: str = ""
    provider_event_id: str = ""
    queue_age_ms: float
    """From the claim to the attempt, or to this."""
    lateness_ms: float
    """From the promised time to the same."""
    duration_ms: float = 0.0
    next_attempt_at: datetime | None = None
    replay: bool = False
    """It is part of a replay."""
    deliveries: int = 1
    """How often the job was given to a dispatcher."""


def fact(  # noqa: PLR0913 - one place where a fact is made
    event: Event,
    leg: LegWork,
    at: datetime,
    *,
    row: LedgerRow | None,
    attempt: int,
    outcome: str = "",
    reason: str = "",
) -> Fact:
    """`at`: when the attempt began, or now; `row`: as it is in the ledger by now, with a reason of
    its own.
    """
    work = leg.work
    last = row.attempts[-1] if row is not None and row.attempts and outcome else None
    replayed = leg.replay is not None
    afterwards = replayed or work.occurrence.origin is Origin.BACKFILL  # late on purpose
    expected_at = work.job.claimed_at if afterwards else work.occurrence.fire_at
    return Fact(
        event=event,
        reminder_id=work.entry.reminder_id,
        occurrence_id=work.occurrence.occurrence_id,
        channel_id=leg.channel.channel_id,
        channel_kind=kind_of(leg.channel),
        subscriber_id=leg.target,
        delivery_key=leg.delivery_key,
        attempt=attempt,
        state=row.delivery if row is not None and row.delivery is not None else "pending",
        outcome=outcome,
        status_code=last.status_code if last else 0,
        error_class=last.error_class if last else "",
        reason=row.reason if row is not None else reason,
        provider_event_id=row.provider_event_id if row is not None else "",
        queue_age_ms=_ms(work.ready_at, at),
        lateness_ms=_ms(expected_at, at),
        duration_ms=round(last.duration.total_seconds() * 1000, 1) if last else 0.0,
        next_attempt_at=row.next_attempt_at if row is not None else None,
        replay=replayed,
        deliveries=work.job.deliveries,
    )


def put_off(said: Fact, until: datetime, at: datetime) -> Fact:
    """The same of a leg that its receiver had wait until then: that makes nothing late."""
    return replace(said, lateness_ms=_ms(until, at))


def _ms(start: datetime, end: datetime) -> float:
    return round((end - start).total_seconds() * 1000, 1)

"""What happened: one row for each (occurrence, channel, target), written from the fire on."""

from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct

from reminders.model.entry import Occurrence


class OccurrenceStatus(StrEnum):
    """Of an occurrence, over all its deliveries."""

    PLANNED = "planned"
    CLAIMED = "claimed"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class DeliveryStatus(StrEnum):
    """Of one delivery."""

    PENDING = "pending"
    SENDING = "sending"
    RETRYING = "retrying"
    DELIVERED = "delivered"
    CONFIRMED = "confirmed"
    BOUNCED = "bounced"
    FAILED = "failed"
    EXPIRED = "expired"
    CANCELLED = "cancelled"

    @property
    def terminal(self) -> bool:
        """Nothing more will be tried by itself."""
        return self not in (self.PENDING, self.SENDING, self.RETRYING)


class Attempt(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One try at a channel."""

    number: int
    started_at: datetime
    duration: timedelta = timedelta(0)
    status_code: int = 0
    error_class: str = ""
    """Empty if it went well; `outcome_unknown` where a crash hid the answer."""
    excerpt: str = ""
    outcome_unknown: bool = False
    """The answer was lost on its way: it may have been taken, and the next one be a repeat."""
    replay: str = ""
    """Id of the replay that it is part of; empty: of none."""


class LedgerRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A delivery, or (channel empty) an occurrence that had none."""

    namespace: str
    reminder_id: str
    reminder_version: int
    occurrence: Occurrence
    claimed_at: datetime | None = None
    channel_id: str = ""
    target: str = ""
    delivery_key: str = ""
    delivery: DeliveryStatus | None = None
    """None where the occurrence ended without any delivery; then `ended` says how."""
    ended: OccurrenceStatus | None = None
    reason: str = ""
    """Why it did not ring: a stable word."""
    attempts: tuple[Attempt, ...] = ()
    """Oldest first; the last 20."""
    attempt_count: int = 0
    provider_event_id: str = ""
    next_attempt_at: datetime | None = None
    acknowledged: bool = False
    skipped_through: Occurrence | None = None
    """Set where a whole run was skipped: its last one; `occurrence` is its first."""
    skipped_count: int = 0
    """How many such a run has; 0: so many that they were not counted."""

    @property
    def taken(self) -> bool:
        """Whether the receiver, or a relay for it, is known to have it."""
        return self.acknowledged or self.delivery in (
            DeliveryStatus.DELIVERED,
            DeliveryStatus.CONFIRMED,
        )

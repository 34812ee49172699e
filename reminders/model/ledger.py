"""What happened: one row for each (occurrence, channel, target), written from the fire on."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct

from reminders.model.entry import Occurrence
from reminders.model.fanout import Fanout, Standing, TargetCounts

Place = tuple[str, str, str, str]
"""Of a delivery: reminder, occurrence, channel, target (empty for a user's)."""


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


class Attempt(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
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


class LedgerRow(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
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
    ended_at: datetime | None = None
    """When it ended failed or expired: which row of the list of ended ones is its own."""
    fanout: Fanout | None = None
    """Of an occurrence whose deliveries are a topic's: they have rows of their own, by target."""
    parked: int = 0
    """How often the attempt that waits until `next_attempt_at` found no place in time, or was put
    off by quiet hours: the counter in the name of its due entry. 0: that is a retry's."""

    @property
    def place(self) -> "Place":
        """Its key."""
        return self.reminder_id, self.occurrence.occurrence_id, self.channel_id, self.target

    @property
    def standing(self) -> Standing:
        """Of a delivery."""
        if self.delivery is None or not self.delivery.terminal:
            return Standing.OPEN
        if self.delivery in (DeliveryStatus.DELIVERED, DeliveryStatus.CONFIRMED):
            return Standing.TAKEN
        if self.delivery in (DeliveryStatus.CANCELLED, DeliveryStatus.EXPIRED):
            return Standing.STOPPED
        return Standing.FAILED

    @property
    def rang(self) -> bool:
        """Whether somebody was to be told: a delivery, or a fan-out of them."""
        return self.delivery is not None or self.fanout is not None

    @property
    def taken(self) -> bool:
        """Whether the receiver, or a relay for it, is known to have it."""
        return self.acknowledged or self.delivery in (
            DeliveryStatus.DELIVERED,
            DeliveryStatus.CONFIRMED,
        )


def counted(rows: Iterable[LedgerRow]) -> TargetCounts:
    """How many of these deliveries stand how."""
    by = Counter(row.standing for row in rows)
    return TargetCounts(
        open=by[Standing.OPEN],
        taken=by[Standing.TAKEN],
        stopped=by[Standing.STOPPED],
        failed=by[Standing.FAILED],
    )

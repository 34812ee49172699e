"""A job in hand, decoded once."""

from datetime import datetime
from functools import cached_property

from msgspec import Struct

from reminders.delivery_key import delivery_key
from reminders.model.definition import Channel
from reminders.model.entry import Body, DueEntry, Kind, Leg, Occurrence, Replay
from reminders.model.ledger import LedgerRow, Place
from reminders.model.subscriber import Subscriber
from reminders.ports import Job


class Work(Struct, frozen=True, kw_only=True, gc=False):
    """A job that delivers."""

    job: Job
    entry: DueEntry
    occurrence: Occurrence
    raw_body: bytes
    """Encoded `body`: retries carry it on, unread."""
    body: Body

    @property
    def ready_at(self) -> datetime:
        """When it was handed over, or its time came, if that was later."""
        return max(self.job.claimed_at, self.entry.key.ring_at)

    @property
    def given_before(self) -> bool:
        """Somebody may have begun it already."""
        return self.job.recheck or self.job.deliveries > 1

    @property
    def first_hand(self) -> bool:
        """A first send that nobody can have begun: goes out without reading anything."""
        return self.entry.kind is Kind.OCCURRENCE and not self.given_before

    @property
    def fans_out(self) -> bool:
        """It is an occurrence of a topic's reminder: pages of its subscribers follow from it."""
        return bool(self.body.topic_id) and self.entry.leg is None and self.entry.page is None

    def legs(self) -> list[Leg]:
        """What is to be attempted: every channel of an occurrence, or the one leg of a retry."""
        if self.entry.leg is not None:
            return [self.entry.leg]
        return [Leg(channel_id=each.channel_id, attempt=1) for each in self.body.channels]

    def to(self, leg: Leg, channel: Channel, subscriber: Subscriber | None = None) -> "LegWork":
        """A leg of it, over that channel."""
        return LegWork(
            work=self,
            channel=channel,
            target=leg.target,
            attempt=leg.attempt,
            replay=leg.replay,
            subscriber=subscriber,
        )


class LegWork(Struct, frozen=True, kw_only=True, dict=True):
    """One leg of it."""

    work: Work
    channel: Channel
    target: str
    attempt: int
    """The attempt that the job is for."""
    replay: Replay | None = None
    subscriber: Subscriber | None = None
    """Whom it is for, where it is for a topic's subscriber who is still there."""
    stopped: str = ""
    """Why it must not be sent, whatever the record says: a stable word."""
    looked: bool = False
    """Somebody has looked into the ledger already, and `found` this."""
    found: LedgerRow | None = None
    locale: str = ""
    """Of the receiver, by the recipient record; empty: not known."""

    @property
    def place(self) -> Place:
        """Its key in the ledger."""
        entry, occurrence = self.work.entry, self.work.occurrence
        return entry.reminder_id, occurrence.occurrence_id, self.channel.channel_id, self.target

    @property
    def before(self) -> int:
        """How many attempts count no more: those before a replay."""
        return self.replay.after if self.replay is not None else 0

    @cached_property
    def delivery_key(self) -> str:
        """The same for all attempts."""
        return delivery_key(*self.place)

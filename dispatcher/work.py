"""A job in hand, decoded once."""

from functools import cached_property

from msgspec import Struct

from reminders.delivery_key import delivery_key
from reminders.model.definition import Channel
from reminders.model.entry import Body, DueEntry, Kind, Leg, Occurrence, Replay
from reminders.ports import Job


class Work(Struct, frozen=True, kw_only=True):
    """A job that delivers."""

    job: Job
    entry: DueEntry
    occurrence: Occurrence
    raw_body: bytes
    """Encoded `body`: retries carry it on, unread."""
    body: Body

    @property
    def given_before(self) -> bool:
        """Somebody may have begun it already."""
        return self.job.recheck or self.job.deliveries > 1

    @property
    def first_hand(self) -> bool:
        """A first send that nobody can have begun: goes out without reading anything."""
        return self.entry.kind is Kind.OCCURRENCE and not self.given_before

    def legs(self) -> list[Leg]:
        """What is to be attempted: every channel of an occurrence, or the one leg of a retry."""
        if self.entry.leg is not None:
            return [self.entry.leg]
        return [Leg(channel_id=each.channel_id, attempt=1) for each in self.body.channels]


class LegWork(Struct, frozen=True, kw_only=True, dict=True):
    """One leg of it."""

    work: Work
    channel: Channel
    target: str
    attempt: int
    """The attempt that the job is for."""
    replay: Replay | None = None

    @property
    def before(self) -> int:
        """How many attempts count no more: those before a replay."""
        return self.replay.after if self.replay is not None else 0

    @cached_property
    def delivery_key(self) -> str:
        """The same for all attempts."""
        entry = self.work.entry
        return delivery_key(
            entry.reminder_id,
            self.work.occurrence.occurrence_id,
            self.channel.channel_id,
            self.target,
        )

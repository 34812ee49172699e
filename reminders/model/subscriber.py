"""Who is told what a topic says: one subscriber, one endpoint."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from zlib import crc32

from msgspec import Struct

from reminders.model.definition import Channel

SUBSCRIBER_BUCKETS = 16
"""Partitions of a topic; a million subscribers are 62,500 rows in each."""


def bucket_of(subscriber_id: str) -> int:
    """Which of the partitions; a stable hash."""
    return crc32(subscriber_id.encode()) % SUBSCRIBER_BUCKETS


class Secret(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A signing secret of one webhook. Its `repr` hides it, so logs and errors can't show it.

    Written once and never changed: a rotation adds one, and how long the ones before it stay valid
    stands in the new one. So two rotations at once lose nothing, without a transaction.
    """

    secret_id: str
    """Unique within the subscriber; of a rotation with a request id, made of that."""
    value: str
    """As `reminders.signing_secrets` has it: `whsec_…`."""
    made_at: datetime
    overlap: timedelta = timedelta(0)
    """So long after `made_at` those before it are valid, at most."""
    stamp: int
    """Of the write, µs."""

    def __repr__(self) -> str:
        return f"Secret(secret_id={self.secret_id!r}, made_at={self.made_at.isoformat()}, hidden)"


class Subscriber(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One subscriber of a topic. Meanings and limits: `protos/tocsin/v1/topic_service.proto`."""

    namespace: str
    topic_id: str
    subscriber_id: str
    channel: Channel
    """Its endpoint; `channel_id` is the kind's name ("webhook", "email", …)."""
    secrets: tuple[Secret, ...] = ()
    """Of a webhook; newest first, also such as are not valid any more: see `valid_secrets`."""
    labels: dict[str, str] = {}
    """For lists; keys sorted."""
    filter: dict[str, str] = {}
    """It gets only reminders whose labels contain all of these; keys sorted."""
    time_zone: str = ""
    """IANA name; empty: the reminder's."""
    paused: bool = False
    created_at: datetime
    updated_at: datetime
    stamp: int
    """Of its last put, µs."""
    pause_stamp: int = 0
    """Of its last pause or resume, µs."""

    @property
    def last_stamp(self) -> int:
        """Of all that is there of it."""
        return max(self.stamp, self.pause_stamp, *(one.stamp for one in self.secrets))

    def wants(self, labels: Sequence[tuple[str, str]]) -> bool:
        """Whether its filter lets a reminder with these labels pass. Says nothing of a pause."""
        return not self.filter or self.filter.items() <= set(labels)

    def valid_until(self, secret: Secret) -> datetime | None:
        """When a secret ends, by the ones that are newer; None: it is the newest."""
        newer = self.secrets[: self.secrets.index(secret)]
        return min((one.made_at + one.overlap for one in newer), default=None)

    def valid_secrets(self, at: datetime) -> tuple[Secret, ...]:
        """What signs now: the newest, and those before it whose time is not over. Newest first."""
        ends = ((one, self.valid_until(one)) for one in self.secrets)
        return tuple(one for one, end in ends if end is None or at < end)


def newest_first(secrets: Sequence[Secret]) -> tuple[Secret, ...]:
    """In the order that `Subscriber.secrets` is in."""
    return tuple(sorted(secrets, key=lambda one: (one.made_at, one.secret_id), reverse=True))

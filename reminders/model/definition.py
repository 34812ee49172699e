"""What the caller asked for. Meanings, units and limits: `protos/tocsin/v1/reminder.proto`."""

from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct

from reminders.recurrence.policies import Gap, MissingDay, Overlap


class At(Struct, frozen=True, kw_only=True, array_like=True, tag="at", gc=False):
    """Once, at an instant."""

    instant: datetime


class After(Struct, frozen=True, kw_only=True, array_like=True, tag="after", gc=False):
    """Once, so long after the create or change that carried it was taken."""

    delay: timedelta


class LocalTime(Struct, frozen=True, kw_only=True, array_like=True, tag="local", gc=False):
    """Once, at a wall-clock time in a zone."""

    date: str | None
    """ISO date; None: the next day on which `time` is still ahead."""
    time: str
    """ISO time without an offset, seconds optional."""
    zone: str


class Recurring(Struct, frozen=True, kw_only=True, array_like=True, tag="recurring", gc=False):
    """Again and again, in local time. Exactly one of `rrule` and `cron` is set."""

    rrule: str | None = None
    cron: str | None = None
    start_local: datetime | None = None
    zone: str
    exdates_local: tuple[datetime, ...] = ()
    rdates_local: tuple[datetime, ...] = ()
    max_occurrences: int | None = None
    until: datetime | None = None


Schedule = At | After | LocalTime | Recurring


class CatchUp(StrEnum):
    """Which missed occurrences of a rule ring after downtime. The first is the default."""

    LATEST = "latest"
    ALL = "all"
    NONE = "none"


RETRY_SCHEDULE = (
    timedelta(0),
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=10),
)
"""The longest wait before each attempt, the first one included: 27 h 35 min in all."""


class Retry(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """How long one delivery is tried."""

    max_attempts: int = len(RETRY_SCHEDULE)
    max_age: timedelta = timedelta(hours=48)
    """No attempt starts later than this after the occurrence's time. It covers the schedule, also
    of an occurrence that rang most of a day late."""
    schedule: tuple[timedelta, ...] = ()
    """As `RETRY_SCHEDULE`, the last wait repeated; empty: the deployment's."""


class Policies(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """What happens with awkward dates, lateness and failure."""

    gap: Gap = Gap.NEXT_VALID
    overlap: Overlap = Overlap.EARLIER
    missing_day: MissingDay = MissingDay.SKIP
    holiday_calendar: str | None = None
    catch_up: CatchUp = CatchUp.LATEST
    catch_up_max_age: timedelta = timedelta(hours=1)
    expire_after: timedelta = timedelta(days=3)
    jitter: timedelta = timedelta(0)
    retry: Retry = Retry()


class Webhook(Struct, frozen=True, kw_only=True, array_like=True, tag="webhook", gc=False):
    """An HTTP POST of JSON."""

    url: str
    headers: dict[str, str] = {}
    secret_id: str | None = None


class Log(Struct, frozen=True, kw_only=True, array_like=True, tag="log", gc=False):
    """A line in the dispatcher's log."""


class Email(Struct, frozen=True, kw_only=True, array_like=True, tag="email", gc=False):
    """A message by SMTP. An empty `to`, here and below: that of the user's recipient record."""

    to: str
    subject: str | None = None


class Sms(Struct, frozen=True, kw_only=True, array_like=True, tag="sms", gc=False):
    """A short message; `to` is an E.164 number."""

    to: str


class PushProvider(StrEnum):
    """Whose device token it is."""

    FCM = "fcm"
    APNS = "apns"


class Push(Struct, frozen=True, kw_only=True, array_like=True, tag="push", gc=False):
    """A notification on a device."""

    to: str
    provider: PushProvider | None
    """Without `to`: which tokens of the record count; None: all."""


Target = Webhook | Log | Email | Sms | Push


class Channel(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """One way to the receiver; `channel_id` is unique within the reminder."""

    channel_id: str
    target: Target
    template_id: str | None = None


TOPIC_KEY = "\0topic:"
"""Begins what a topic's reminders are indexed under; a user id can't begin so (validation)."""


def audience_of(user_id: str, topic_id: str) -> str:
    """What the index of pending occurrences files it under: the user, or the topic."""
    return TOPIC_KEY + topic_id if topic_id else user_id


class Definition(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """Everything the caller decides.

    Equal content encodes to equal bytes, which is what `codec.content_hash` relies on: `labels` are
    sorted, and values go as arrays (msgspec leaves defaults out of maps by identity, not equality).
    """

    user_id: str
    schedule: Schedule
    policies: Policies = Policies()
    channels: tuple[Channel, ...]
    template_id: str | None = None
    params_json: str = "{}"
    """A JSON object with sorted keys, ready to be put into a request."""
    dedup_key: str | None = None
    group_id: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    topic_id: str = ""
    """Whose subscribers are told; then `user_id` is empty, and so are `channels`."""
    only_subscriber: str = ""
    """Set by a test send: goes to this subscriber of the topic alone, marked as a test."""

    @property
    def audience(self) -> str:
        """See `audience_of`."""
        return audience_of(self.user_id, self.topic_id)

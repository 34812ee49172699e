"""Where a user is reached, and when not. Meanings and limits: `recipient_service.proto`."""

from datetime import datetime, time
from enum import StrEnum

from msgspec import Struct

from reminders.model.definition import PushProvider


class PushAddress(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One device."""

    token: str
    provider: PushProvider


class QuietRule(StrEnum):
    """What becomes of a delivery that falls into quiet hours."""

    WAIT = "wait"
    """It is sent when they end."""
    DROP = "drop"
    """It is not sent."""


class QuietHours(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Every day from `start` to before `end`, local times in the record's zone, to the minute.

    An `end` that is not after `start` lies on the next day.
    """

    start: time
    end: time
    rule: QuietRule = QuietRule.WAIT


class OptOut(StrEnum):
    """The kinds of channel that a person can refuse: names as in `dispatcher.channels.kind_of`."""

    EMAIL = "email"
    SMS = "sms"
    PUSH = "push"


class Recipient(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Everything that is kept of a user: one row, so that erasing it erases the user."""

    namespace: str
    user_id: str
    version: int
    """When it was written, µs since 1970, larger than the one before: so it never comes again,
    also after a delete."""
    email: str = ""
    sms: str = ""
    """E.164."""
    push: tuple[PushAddress, ...] = ()
    """The device to be used goes first."""
    time_zone: str = ""
    """IANA name; set where there are quiet hours."""
    locale: str = ""
    """BCP 47, in its normal spelling, such as `fr-CA`."""
    opt_outs: tuple[OptOut, ...] = ()
    """Sorted."""
    quiet_hours: QuietHours | None = None
    created_at: datetime
    updated_at: datetime

    def token_of(self, provider: PushProvider | None) -> PushAddress | None:
        """The first device, of that provider if one is named."""
        return next((one for one in self.push if provider in (None, one.provider)), None)

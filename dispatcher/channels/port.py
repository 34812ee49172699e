"""What a channel is to the dispatcher: one attempt in, one result out.

Every provider's answer is one of five outcomes:

| outcome      | it was              | then                                                       |
|--------------|---------------------|------------------------------------------------------------|
| ok           | taken               | done                                                       |
| transient    | not taken, for now  | tried again, not before `retry_after`                      |
| rate_limited | not taken, too many | the same; counted by itself                                |
| permanent    | not taken, for good | the delivery ends as `failed`, with the error class        |
| unknown      | sent, and perhaps   | tried again under the same delivery key, and marked in the |
|              | taken               | ledger: the next attempt may be a repeat                   |

An unknown outcome is one whose answer was lost after the request, or part of it, had left. It uses
up an attempt like any other failure; only a crash of ours does not. What fails because of our own
credentials is transient (`provider_auth`): the receiver has no part in it, and who operates Tocsin
can put it right before the attempts are used up.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from reminders.model.definition import Channel
from reminders.model.entry import Occurrence
from reminders.model.subscriber import Subscriber
from reminders.recurrence import ZoneError, zone

EXCERPT_BYTES = 1024
"""Of an answer, in UTF-8, are kept."""
ATTEMPT_TIMEOUT = timedelta(seconds=8)
"""Of a whole attempt, name resolution included (R-DEL-5)."""


class Outcome(StrEnum):
    """How an attempt ended."""

    OK = "ok"
    TRANSIENT = "transient"
    """Trying again may help."""
    RATE_LIMITED = "rate_limited"
    """Trying again later will: there were too many."""
    PERMANENT = "permanent"
    """Trying again would end the same."""
    UNKNOWN = "unknown"
    """It may have been taken; trying again may repeat it, under the same delivery key."""


class Outgoing(Struct, frozen=True, kw_only=True, gc=False):
    """One attempt at one channel."""

    delivery_key: str
    """The same for all attempts: what the receiver deduplicates by."""
    channel: Channel
    namespace: str
    reminder_id: str
    occurrence: Occurrence
    attempt: int
    user_id: str
    template_id: str | None
    params_json: str
    """A JSON object, ready to be embedded."""
    replay: bool = False
    """Somebody asked for it again, after it had ended: the receiver may be told."""
    subscriber: Subscriber | None = None
    """Whom it is for, where it is a topic's: its secrets sign, its zone is told."""
    test: bool = False
    """A test send, which the receiver may be told."""
    locale: str = ""
    """Of the receiver, such as `fr-CA`; empty: `locale` of the params, if there is one."""

    @property
    def subscriber_local(self) -> datetime | None:
        """What the subscriber's clock shows when it was planned for; None: it has no zone."""
        if self.subscriber is None or not self.subscriber.time_zone:
            return None
        try:
            where = zone(self.subscriber.time_zone)
        except ZoneError:  # of newer zone data than ours
            return None
        return self.occurrence.planned_at.astimezone(where).replace(tzinfo=None)


class Result(Struct, frozen=True, kw_only=True, gc=False):
    """How it went."""

    outcome: Outcome
    acknowledged: bool = False
    """The receiver said that it has it, rather than only a relay."""
    status_code: int = 0
    error_class: str = ""
    """A stable word such as `timeout` or `http_429`; empty if it went well."""
    excerpt: str = ""
    """The start of the answer, printable, at most `EXCERPT_BYTES`."""
    provider_event_id: str = ""
    retry_after: timedelta | None = None
    """What the receiver asked for, counted from the end of the attempt."""


class Destination(Struct, frozen=True, kw_only=True, gc=False):
    """Who is burdened by an attempt. `dispatcher.standing` says what is limited by what."""

    name: str = ""
    """A host or a provider: attempts at it are limited together. Empty: nobody is burdened."""
    endpoint: str = ""
    """One of several at it, each with a fate of its own; nothing secret."""
    provider: bool = False
    """The operator's own choice, and not some customer's server."""


NOBODY = Destination()


class ChannelSender(Protocol):
    """Sends by one kind of channel. Bounded in time by itself; used by many tasks at once."""

    def destination(self, channel: Channel) -> Destination:
        """Who is burdened by it."""

    async def send(self, outgoing: Outgoing) -> Result:
        """Makes one attempt. What goes wrong is in the result; a raise is a bug."""


def printable(text: str) -> str:
    """The start of a text, whole characters of it, fit for logs and the ledger: control characters
    become spaces.
    """
    text = text[:EXCERPT_BYTES]
    if not text.isprintable():
        text = "".join(character if character.isprintable() else " " for character in text)
    if text.isascii():
        return text
    return text.encode()[:EXCERPT_BYTES].decode(errors="ignore")

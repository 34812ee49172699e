"""The ways to a receiver.

`port`      start here: what a channel is, and the five outcomes.
`webhook`   an HTTP POST by `dispatcher.http1`; `guard` keeps it away from private networks,
            `signing` signs it.
`email`     SMTP, over the connections of `smtp`.
`sms`       by `twilio`, or by any API that takes JSON (`sms_http`).
`push`      by `fcm` (HTTP v1) or `apns` (HTTP/2).
`log`       a line in the log.
`templates`, `messages`  what people read.
`http`, `provider`       answers of HTTP, and of providers' APIs.
`masking`   no credential is ever kept.
`opening`   all of them, as configured.

A new kind is one module here, one target in the model and one entry in `opening`.
"""

from collections.abc import Mapping

from dispatcher.channels.port import (
    NOBODY,
    ChannelSender,
    Destination,
    Outcome,
    Outgoing,
    Result,
)
from reminders.model.definition import Channel, Email, Log, Push, Sms, Webhook

Senders = Mapping[str, ChannelSender]
"""By kind: `webhook`, `log`, …"""

_KINDS = {Webhook: "webhook", Log: "log", Email: "email", Sms: "sms", Push: "push"}


def kind_of(channel: Channel) -> str:
    """The name of the channel's kind, as metrics and `Senders` use it."""
    return _KINDS[type(channel.target)]


__all__ = [
    "NOBODY",
    "ChannelSender",
    "Destination",
    "Outcome",
    "Outgoing",
    "Result",
    "Senders",
    "kind_of",
]

"""The ways to a receiver.

`port`     what a channel is: `ChannelSender`, `Outgoing` → `Result`.
`webhook`  an HTTP POST by aiohttp; `guard` keeps it away from private networks.
`log`      a line in the log.

A new kind is one module here and one entry in the mapping that the process wires.
"""

from collections.abc import Mapping

from dispatcher.channels.port import ChannelSender, Outcome, Outgoing, Result
from reminders.model.definition import Channel, Log, Webhook

Senders = Mapping[str, ChannelSender]
"""By kind: `webhook`, `log`, …"""

_KINDS = {Webhook: "webhook", Log: "log"}


def kind_of(channel: Channel) -> str:
    """The name of the channel's kind, as metrics and `Senders` use it."""
    return _KINDS[type(channel.target)]


__all__ = ["ChannelSender", "Outcome", "Outgoing", "Result", "Senders", "kind_of"]

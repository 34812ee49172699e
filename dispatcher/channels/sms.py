"""The SMS channel: one text to one number, through a provider.

Until receipts are read, `delivered` means that the provider took it. A text is sent as it is; what
is too long for the provider is refused by it, and ends as `failed`.
"""

from typing import Protocol

import aiohttp

from dispatcher.channels.http import failure
from dispatcher.channels.masking import Mask
from dispatcher.channels.messages import message_of
from dispatcher.channels.port import Destination, Outgoing, Result
from dispatcher.channels.provider import refused
from dispatcher.channels.templates import NO_TEMPLATES, TemplateError, Templates
from reminders.addresses import phone_problem
from reminders.model.definition import Channel, Sms


class SmsProvider(Protocol):
    """Whose API is called."""

    name: str
    """Who is burdened: attempts at one are limited together."""

    async def send(self, to: str, text: str, delivery_key: str) -> Result:
        """One text. Raises what `failure` understands."""


class SmsSender:
    """Sends through one provider."""

    def __init__(
        self, provider: SmsProvider, mask: Mask, *, templates: Templates = NO_TEMPLATES
    ) -> None:
        self._provider = provider
        self._mask = mask
        self._templates = templates

    def destination(self, channel: Channel) -> Destination:
        """The provider."""
        _target(channel)
        return Destination(name=self._provider.name, provider=True)

    async def send(self, outgoing: Outgoing) -> Result:
        """One text."""
        to = _target(outgoing.channel).to
        problem = phone_problem(to)
        if problem is not None:
            return refused("address_invalid", problem)
        try:
            message = await message_of(self._templates, outgoing, "sms")
        except TemplateError as error:
            return error.result
        try:
            return await self._provider.send(to, message.text, outgoing.delivery_key)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            return failure(error, self._mask)


def _target(channel: Channel) -> Sms:
    if not isinstance(channel.target, Sms):
        raise TypeError(f"not an SMS: {type(channel.target).__name__}")
    return channel.target

"""The push channel: a notification on one device, by FCM or APNs.

    title and text as people read them, and for the app: eventId (the delivery key), reminderId,
    occurrenceId, payload (the params as JSON text)

Neither service deduplicates, but both replace what has the same name on the screen: that name is
the delivery key, so a repeat replaces the first ring instead of standing beside it.
"""

from collections.abc import Mapping
from typing import Protocol

import msgspec

from dispatcher.channels.messages import Message, message_of
from dispatcher.channels.port import Destination, Outcome, Outgoing, Result
from dispatcher.channels.provider import refused
from dispatcher.channels.templates import NO_TEMPLATES, TemplateError, Templates
from reminders.addresses import token_problem
from reminders.model.definition import Channel, Push, PushProvider


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """To one device."""

    token: str
    message: Message
    delivery_key: str
    data: Mapping[str, str]
    """For the app."""


class PushService(Protocol):
    """FCM or APNs."""

    async def send(self, notification: Notification) -> Result:
        """One notification. What goes wrong is in the result."""


class PushSender:
    """Sends through the provider that a channel names."""

    def __init__(
        self,
        services: Mapping[PushProvider, PushService],
        *,
        templates: Templates = NO_TEMPLATES,
    ) -> None:
        self._services = services
        self._templates = templates

    def destination(self, channel: Channel) -> Destination:
        """The provider."""
        return Destination(name=_provider(_target(channel)).value, provider=True)

    async def send(self, outgoing: Outgoing) -> Result:
        """One notification."""
        target = _target(outgoing.channel)
        provider = _provider(target)
        service = self._services.get(provider)
        if service is None:
            return Result(outcome=Outcome.PERMANENT, error_class="channel_unavailable")
        problem = token_problem(target.to, provider)
        if problem is not None:
            return refused("address_invalid", problem)
        try:
            message = await message_of(self._templates, outgoing, "push")
        except TemplateError as error:
            return error.result
        data = {
            "eventId": outgoing.delivery_key,
            "reminderId": outgoing.reminder_id,
            "occurrenceId": outgoing.occurrence.occurrence_id,
            "payload": outgoing.params_json,
        }
        return await service.send(
            Notification(
                token=target.to,
                message=message,
                delivery_key=outgoing.delivery_key,
                data=data,
            )
        )


def _target(channel: Channel) -> Push:
    if not isinstance(channel.target, Push):
        raise TypeError(f"not a push: {type(channel.target).__name__}")
    return channel.target


def _provider(target: Push) -> PushProvider:
    """Of the token, which is there by now."""
    if target.provider is None:
        raise TypeError("a push without a token")
    return target.provider

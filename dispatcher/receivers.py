"""Whom the legs of a job are for: the channels of a user's reminder, or a topic's subscriber.

A subscriber is read when it is told, so a retry goes to the endpoint that it has by then, signed
with its present secrets; under the channel id of the first attempt, which is part of the key. One
who was removed, or paused, gets nothing more.
"""

from msgspec.structs import replace

from dispatcher.insistence import Insistence
from dispatcher.work import LegWork, Work
from reminders.model.definition import Channel, Log
from reminders.model.entry import Leg
from reminders.model.subscriber import Subscriber
from reminders.platform import Platform

UNSUBSCRIBED = "unsubscribed"
PAUSED = "subscriber_paused"


class Receivers:
    """Finds them."""

    def __init__(self, platform: Platform) -> None:
        self._subscribers = platform.store.subscribers
        self._insist = Insistence(platform.clock)

    async def legs(self, work: Work) -> list[LegWork]:
        """Of a job that is no page. Raises `LookupError` where its body has no such channel."""
        if work.entry.leg is not None and work.entry.leg.target:
            leg = work.entry.leg
            found = await self._insist(
                self._subscribers.read, work.entry.namespace, work.body.topic_id, leg.target
            )
            return [subscribed(work, leg, found)]
        channels = {each.channel_id: each for each in work.body.channels}
        return [work.to(leg, channels[leg.channel_id]) for leg in work.legs()]


def subscribed(work: Work, leg: Leg, subscriber: Subscriber | None) -> LegWork:
    """A leg to a subscriber, as it is now."""
    if subscriber is None:
        gone = work.to(leg, Channel(channel_id=leg.channel_id, target=Log()))
        return replace(gone, stopped=UNSUBSCRIBED)
    channel = replace(subscriber.channel, channel_id=leg.channel_id)
    found = work.to(leg, channel, subscriber)
    paused = subscriber.paused and not work.body.only_subscriber
    return replace(found, stopped=PAUSED) if paused else found

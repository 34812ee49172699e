"""The people who are reminded: they answer as the plan says, and remember what arrived."""

import asyncio
import random
from datetime import timedelta
from typing import TYPE_CHECKING

from dispatcher.channels.port import Destination, Outcome, Outgoing, Result
from reminders.model.definition import Channel, Webhook
from tests.simulation.history import Sending
from tests.simulation.process import Process, wake

if TYPE_CHECKING:
    from tests.simulation.world import World

SECOND_US = 1_000_000
TIME_OUT_US = 10 * SECOND_US
SLOW_US = 8 * SECOND_US
RETRY_AFTER = timedelta(seconds=7)

_ANSWERS = {
    200: Result(outcome=Outcome.OK, acknowledged=True, status_code=200),
    429: Result(
        outcome=Outcome.TRANSIENT,
        status_code=429,
        error_class="http_429",
        retry_after=RETRY_AFTER,
    ),
    500: Result(outcome=Outcome.TRANSIENT, status_code=500, error_class="http_500"),
    0: Result(outcome=Outcome.TRANSIENT, error_class="timeout"),
}


class Receivers:
    """All of them; how each behaves now."""

    def __init__(self, world: "World", seed: int) -> None:
        self._world = world
        self._rng = random.Random(f"receivers {seed}")
        self.modes: dict[str, str] = {}

    def sender_for(self, process: Process) -> "Sender":
        """A process's way to them."""
        return Sender(self, process)

    async def deliver(self, process: Process, outgoing: Outgoing) -> Result:
        """One attempt."""
        world, loop = self._world, self._world.loop
        sending = Sending(
            at_us=loop.now_us,
            at=world.reference_now(),
            process=process.name,
            key=outgoing.delivery_key,
            reminder_id=outgoing.reminder_id,
            occurrence_id=outgoing.occurrence.occurrence_id,
            fire_at=outgoing.occurrence.fire_at,
            channel_id=outgoing.channel.channel_id,
            target=outgoing.subscriber.subscriber_id if outgoing.subscriber else "",
            attempt=outgoing.attempt,
        )
        world.judge.sending(process, sending)
        mode = self.modes.get(name_of(outgoing.channel), "")
        way_us = self._rng.randrange(2_000, 40_000)
        takes_us = self._rng.randrange(5_000, 60_000) + (SLOW_US if mode == "slow" else 0)
        if mode in ("never", "refuses"):
            takes_us = TIME_OUT_US
        if mode != "refuses":
            loop.at(loop.now_us + way_us, self._arrive, sending)
        answered: asyncio.Future[None] = asyncio.Future(loop=loop)
        loop.at(loop.now_us + max(way_us, takes_us), wake, answered)
        await answered
        sending.answered = {"429": 429, "500": 500, "never": 0, "refuses": 0}.get(mode, 200)
        return _ANSWERS[sending.answered]

    def _arrive(self, sending: Sending) -> None:
        sending.arrived = True
        self._world.tell(sending.channel_id, f"got {sending.key[:12]} {sending.occurrence_id}")


class Sender:
    """Implements `ChannelSender` for one process."""

    def __init__(self, receivers: Receivers, process: Process) -> None:
        self._receivers = receivers
        self._process = process

    def destination(self, channel: Channel) -> Destination:
        """The receiver."""
        return Destination(name=name_of(channel))

    async def send(self, outgoing: Outgoing) -> Result:
        """Unless the process is dead."""
        if not self._process.alive:
            raise asyncio.CancelledError
        return await self._receivers.deliver(self._process, outgoing)


def name_of(channel: Channel) -> str:
    """A receiver's name is its URL."""
    assert isinstance(channel.target, Webhook)
    return channel.target.url

"""A test send through all services: one subscriber hears it, and its caller hears the outcome."""

import asyncio
from datetime import timedelta

import pytest

from dispatcher.channels.port import Outcome, Result
from reminders.lifecycle.subscriber_puts import Asked
from reminders.lifecycle.trials import Trial
from reminders.model.definition import Channel, Log
from reminders.model.ledger import DeliveryStatus
from tests.unit.lifecycle.world import NOON, SECOND, World
from tests.unit.whole.harness import Receiver, everything


@pytest.fixture
async def world() -> World:
    """At noon, with one shard that nobody leads yet."""
    return World()


TRIAL = Trial(namespace="ns", topic_id="t", subscriber_id="s1", wait=10 * SECOND)


async def subscribe(world: World, *names: str) -> None:
    """With a filter that nothing passes."""
    log = Channel(channel_id="log", target=Log())
    await world.reminders.subscribing.put(
        [
            Asked(namespace="ns", topic_id="t", subscriber_id=name, channel=log, filter={"no": "x"})
            for name in names
        ]
    )


async def tried(world: World, receiver: Receiver) -> list[str]:
    """Sends a test; who heard it."""
    sending = asyncio.create_task(world.reminders.trials.send(TRIAL))
    await world.clock.run_until(NOON + 5 * SECOND)
    found = await sending
    assert found.finished
    (outgoing,) = receiver.attempts
    assert outgoing.test
    assert found.reminder_id == outgoing.reminder_id
    assert found.occurrence_id == outgoing.occurrence.occurrence_id
    assert found.delivery is not None
    assert found.delivery.delivery_key == outgoing.delivery_key
    said = found.delivery.delivery
    assert said is not None
    return [outgoing.subscriber.subscriber_id if outgoing.subscriber else "", said.value]


async def test_one_subscriber_hears_a_test_though_it_is_paused(world: World) -> None:
    """And though its filter lets nothing pass; nobody else does."""
    await subscribe(world, "s1", "s2")
    await world.reminders.subscribing.set_paused("ns", "t", "s1", paused=True)
    async with everything(world) as receiver:
        assert await tried(world, receiver) == ["s1", DeliveryStatus.CONFIRMED.value]


async def test_a_test_that_fails_for_now_is_not_tried_again(world: World) -> None:
    """Its caller is waiting."""
    await subscribe(world, "s1")
    async with everything(world) as receiver:
        receiver.answer = lambda _: Result(
            outcome=Outcome.TRANSIENT, error_class="http_503", status_code=503
        )
        assert await tried(world, receiver) == ["s1", DeliveryStatus.FAILED.value]
        await world.clock.run_until(NOON + timedelta(hours=1))
        assert len(receiver.attempts) == 1

"""Test sends: a reminder for one subscriber, and what became of it."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from reminders.errors import KeyConflict, SubscriberNotFound
from reminders.lifecycle.subscriber_puts import Asked
from reminders.lifecycle.trials import Trial, Tried
from reminders.model.codec import decode_body
from reminders.model.definition import Channel, Webhook
from reminders.model.entry import DueEntry
from reminders.model.ledger import DeliveryStatus, LedgerRow, OccurrenceStatus
from tests.unit.lifecycle.world import NOON, SECOND, World, behind_the_scenes

WEBHOOK = Channel(channel_id="webhook", target=Webhook(url="https://example.com/hook"))


def trial(**changes: Any) -> Trial:
    """Of s1."""
    values = {"namespace": "ns", "topic_id": "t", "subscriber_id": "s1", "wait": 10 * SECOND}
    return Trial(**{**values, **changes})


@pytest.fixture
async def subscribed(world: World) -> World:
    """With one subscriber."""
    await world.reminders.subscribing.put(
        [Asked(namespace="ns", topic_id="t", subscriber_id="s1", channel=WEBHOOK)]
    )
    return world


async def due(world: World) -> list[DueEntry]:
    """What waits to ring at noon."""
    with behind_the_scenes():
        states = await world.store.due.slice(NOON, 0, limit=10)
    return [state.entry for state in states]


async def outcome(world: World, entry: DueEntry, status: DeliveryStatus) -> LedgerRow:
    """What a dispatcher would write."""
    assert entry.occurrence is not None
    row = LedgerRow(
        namespace="ns",
        reminder_id=entry.reminder_id,
        reminder_version=1,
        occurrence=entry.occurrence,
        channel_id="webhook",
        target="s1",
        delivery=status,
    )
    with behind_the_scenes():
        await world.store.ledger.write([row], at=world.clock.now())
    return row


async def test_a_test_is_a_reminder_for_that_subscriber_alone(subscribed: World) -> None:
    """It rings now, is tried once, and its outcome is the answer."""
    asked = trial(params_json='{"a":1}', template_id="hello")
    sending = asyncio.create_task(subscribed.reminders.trials.send(asked))
    await subscribed.clock.until_sleeping()
    (entry,) = await due(subscribed)
    body = decode_body(entry.body)
    assert (body.topic_id, body.only_subscriber, body.user_id) == ("t", "s1", "")
    assert (body.channels, body.retry.max_attempts) == ((), 1)
    assert (body.params_json, body.template_id) == ('{"a":1}', "hello")
    await outcome(subscribed, entry, DeliveryStatus.SENDING)
    subscribed.clock.advance(SECOND)
    await subscribed.clock.until_sleeping()
    row = await outcome(subscribed, entry, DeliveryStatus.DELIVERED)
    subscribed.clock.advance(SECOND)
    assert await sending == Tried(
        reminder_id=entry.reminder_id,
        occurrence_id=entry.occurrence_id,
        delivery=row,
        finished=True,
    )


async def test_the_wait_is_bounded(subscribed: World) -> None:
    """Nothing happened by then: the ids say where to look."""
    sending = asyncio.create_task(subscribed.reminders.trials.send(trial(wait=2 * SECOND)))
    await subscribed.clock.until_sleeping()
    await subscribed.clock.run_until(NOON + 2 * SECOND)
    found = await sending
    (entry,) = await due(subscribed)
    assert (found.delivery, found.finished) == (None, False)
    assert (found.reminder_id, found.occurrence_id) == (entry.reminder_id, entry.occurrence_id)


async def test_no_wait_answers_at_once(subscribed: World) -> None:
    """With what is known, which is nothing."""
    found = await subscribed.reminders.trials.send(trial(wait=timedelta(0)))
    assert not found.finished


async def test_a_repeat_is_the_same_test(subscribed: World) -> None:
    """Its outcome too; another content under the same id is refused."""
    trials = subscribed.reminders.trials
    first = await trials.send(trial(wait=timedelta(0), request_id="q"))
    (entry,) = await due(subscribed)
    row = await outcome(subscribed, entry, DeliveryStatus.FAILED)
    subscribed.clock.advance(5 * SECOND)
    again = await trials.send(trial(wait=timedelta(0), request_id="q"))
    assert (again.reminder_id, again.occurrence_id) == (first.reminder_id, first.occurrence_id)
    assert (again.delivery, again.finished) == (row, True)
    with pytest.raises(KeyConflict):
        await trials.send(trial(wait=timedelta(0), request_id="q", params_json='{"b":1}'))


async def test_an_occurrence_that_ended_without_a_delivery_ends_the_wait(
    subscribed: World,
) -> None:
    """The subscriber left meanwhile."""
    sending = asyncio.create_task(subscribed.reminders.trials.send(trial()))
    await subscribed.clock.until_sleeping()
    (entry,) = await due(subscribed)
    assert entry.occurrence is not None
    row = LedgerRow(
        namespace="ns",
        reminder_id=entry.reminder_id,
        reminder_version=1,
        occurrence=entry.occurrence,
        ended=OccurrenceStatus.SKIPPED,
        reason="unsubscribed",
    )
    with behind_the_scenes():
        await subscribed.store.ledger.write([row], at=NOON)
    subscribed.clock.advance(SECOND)
    found = await sending
    assert (found.delivery, found.finished) == (None, True)


async def test_nobody_there_is_nobody_to_test(world: World) -> None:
    """And no reminder is made."""
    with pytest.raises(SubscriberNotFound):
        await world.reminders.trials.send(trial())
    assert await due(world) == []

"""One job: in which order it is sent and settled, also while the store is away."""

import asyncio
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from dispatcher.channels.port import Outcome, Result
from reminders.errors import StoreUnavailable
from reminders.model.entry import Kind
from reminders.model.ledger import DeliveryStatus

WRITES = ("send.before", "ledger.write", "due.put", "due.handled")


def steps(world: Any) -> list[str]:
    """What was sent and written, in order."""
    return [name for name in world.points if name in WRITES]


async def test_a_first_send_reads_nothing_and_settles_in_order(world: Any) -> None:
    """Send, ledger, handled: the hot path."""
    entry = await world.reminder()
    await world.runner().run(world.job(entry))
    assert steps(world) == ["send.before", "ledger.write", "due.handled"]
    assert world.points[0] == "send.before"
    row = await world.row()
    assert row.delivery is DeliveryStatus.CONFIRMED
    assert row.acknowledged
    assert row.claimed_at == world.AT
    assert [(a.number, a.status_code, a.error_class) for a in row.attempts] == [(1, 200, "")]
    assert row.delivery_key == world.sender.sent[0].delivery_key
    assert await world.handled(entry)


async def test_a_transient_failure_writes_the_retry_before_it_settles(world: Any) -> None:
    """The ledger holds the base that the retry's time is computed from, so it comes first."""
    entry = await world.reminder()
    world.sender.results = [world.BUSY]
    await world.runner().run(world.job(entry))
    assert steps(world) == ["send.before", "ledger.write", "due.put", "due.handled"]
    row = await world.row()
    assert row.delivery is DeliveryStatus.RETRYING
    (retry,) = await world.waiting()
    assert retry.kind is Kind.RETRY
    assert retry.key.ring_at == row.next_attempt_at
    assert timedelta(seconds=1) <= retry.key.ring_at - world.AT <= timedelta(seconds=5)
    assert (retry.leg.channel_id, retry.leg.attempt) == ("hook", 2)
    assert retry.body == entry.body
    assert not retry.recurs
    hints = await world.coordination.hints.tail({0: "0-0"}, wait=timedelta(0))
    assert len(hints[0]) == 1


async def test_a_retry_of_a_rule_neither_recurs_nor_is_superseded(world: Any) -> None:
    """Expanding belongs to the occurrence's own entry."""
    entry = await world.reminder(recurs=True)
    world.sender.results = [world.BUSY]
    await world.runner().run(world.job(entry))
    retry = next(each for each in await world.waiting() if each.kind is Kind.RETRY)
    assert not retry.recurs
    assert retry.next_at is None


async def test_retries_go_on_under_one_key_until_it_is_confirmed(world: Any) -> None:
    """Attempts are numbered; the key never changes."""
    entry = await world.reminder()
    world.sender.results = [world.BUSY, world.BUSY, world.OK]
    await world.runner().run(world.job(entry))
    for _ in range(2):
        (retry,) = await world.waiting()
        world.clock.move_to(retry.key.ring_at)
        await world.runner().run(world.job(retry))
    assert await world.waiting() == []
    row = await world.row()
    assert [a.number for a in row.attempts] == [1, 2, 3]
    assert row.delivery is DeliveryStatus.CONFIRMED
    assert row.next_attempt_at is None
    assert [s.attempt for s in world.sender.sent] == [1, 2, 3]
    assert len({s.delivery_key for s in world.sender.sent}) == 1


async def test_what_the_receiver_asks_for_is_when_it_is_tried_again(world: Any) -> None:
    """Drill: 429 with Retry-After 15."""
    entry = await world.reminder()
    world.sender.results = [replace(world.BUSY, retry_after=timedelta(seconds=15))]
    await world.runner().run(world.job(entry))
    (retry,) = await world.waiting()
    assert retry.key.ring_at == world.AT + timedelta(seconds=15)


async def test_settling_waits_for_the_store_and_sends_only_once(world: Any) -> None:
    """The outcome is kept in hand; nothing is handled before the ledger took it."""
    entry = await world.reminder()
    failures = {"ledger.write": 3, "due.handled": 2}

    async def hook(name: str) -> None:
        if failures.get(name, 0):
            failures[name] -= 1
            raise StoreUnavailable(operation=name)

    world.on_point = hook
    await run_through(world, entry)
    assert len(world.sender.sent) == 1
    again = ["ledger.write", "due.handled"]
    assert steps(world) == ["send.before", *["ledger.write"] * 3, *again * 3]
    assert await world.handled(entry)


async def run_through(world: Any, entry: Any) -> None:
    """Runs the job; whenever it waits, time passes."""
    task = asyncio.create_task(world.runner().run(world.job(entry)))
    while not task.done():
        await world.clock.run_until(world.clock.now() + timedelta(seconds=10))
    await task


async def test_the_outgoing_names_everything_a_receiver_needs(world: Any) -> None:
    """Template of the channel before that of the reminder, params untouched."""
    entry = await world.reminder()
    world.sender.results = [Result(outcome=Outcome.OK, provider_event_id="p1")]
    await world.runner().run(world.job(entry))
    (sent,) = world.sender.sent
    assert sent.occurrence == entry.occurrence
    assert (sent.namespace, sent.reminder_id, sent.user_id) == ("default", "r1", "u1")
    assert (sent.attempt, sent.template_id, sent.params_json) == (1, None, '{"a":1}')
    row = await world.row()
    assert (row.delivery, row.provider_event_id) == (DeliveryStatus.DELIVERED, "p1")
    assert not row.acknowledged

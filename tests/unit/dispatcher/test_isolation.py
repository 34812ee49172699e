"""A thousand endpoints that hang delay nobody else: a whole dispatcher, in virtual time."""

import asyncio
from datetime import timedelta
from typing import Any

from dispatcher.channels.port import Outcome, Result
from reminders.model.entry import Kind

HANGING = 1000
TIMED_OUT = Result(outcome=Outcome.UNKNOWN, error_class="timeout")
EVERY = timedelta(milliseconds=100)
TICKS = 40
STEP, TURNS = timedelta(milliseconds=25), 40
READ_WAIT = STEP


async def elapse(world: Any, span: timedelta) -> None:
    """In steps, each with some turns of the loop; to the instant would take minutes."""
    for _ in range(span // STEP):
        for _ in range(TURNS):
            await asyncio.sleep(0)
        world.clock.advance(STEP)


async def lateness(world: Any, hanging: int) -> list[float]:
    """Of a healthy endpoint, sent one every 100 ms, beside so many that hang, all at once."""
    late: list[float] = []
    claimed: dict[str, Any] = {}

    async def send(outgoing: Any) -> None:
        if outgoing.reminder_id in claimed:
            late.append((world.clock.now() - claimed[outgoing.reminder_id]).total_seconds())
        elif outgoing.channel.target.url.startswith("hanging"):
            await world.clock.sleep_until(world.clock.now() + timedelta(seconds=8))
            world.sender.results.append(TIMED_OUT)

    world.sender.on_send = send
    first = await world.reminder("first", urls=("healthy",))
    entries = [
        await world.reminder(f"h{number}", urls=(f"hanging{number}",)) for number in range(hanging)
    ]
    healthy = [await world.reminder(f"ok{number}", urls=("healthy",)) for number in range(TICKS)]
    stop = asyncio.Event()
    running = asyncio.create_task(world.dispatcher().run(stop))
    await world.claim(first)
    await elapse(world, EVERY)
    for entry in entries:
        await world.claim(entry)
    for entry in healthy:
        claimed[entry.reminder_id] = world.clock.now()
        await world.claim(entry)
        await elapse(world, EVERY)
    await elapse(world, timedelta(seconds=9))
    stop.set()
    await elapse(world, timedelta(seconds=2))
    await running
    return late


async def parked_ones(world: Any) -> set[str]:
    """Reminders with a parked entry in one of the next minutes."""
    found: set[str] = set()
    for minute in range(3):
        at = world.AT + timedelta(minutes=minute)
        states = await world.store.due.slice(at, 0, limit=10 * HANGING)
        found |= {each.entry.reminder_id for each in states if each.entry.kind is Kind.PARKED}
    return found


async def test_a_healthy_endpoint_is_as_late_as_without_them(worlds: Any) -> None:
    """Only in the instant in which they are seen for the first time, all of them before it in the
    stream, it may wait for two looks. None of them is lost: an attempt or a parked entry for each.
    """
    alone = await lateness(worlds(read_wait=READ_WAIT), 0)
    world = worlds(read_wait=READ_WAIT)
    beside = await lateness(world, HANGING)
    assert len(alone) == len(beside) == TICKS
    assert max(alone) == 0
    assert max(beside[5:]) == 0
    assert max(beside) <= 0.2 + 5 * STEP.total_seconds()
    tried = {sent.reminder_id for sent in world.sender.sent if sent.reminder_id.startswith("h")}
    parked = await parked_ones(world)
    assert HANGING - len(tried | parked) == 0
    assert len(tried) >= 128

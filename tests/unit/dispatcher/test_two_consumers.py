"""A job that two dispatchers have: one was stopped and woke, say, after its job was taken over."""

import asyncio
from typing import Any

import pytest

from reminders.model.ledger import DeliveryStatus
from tests.unit.dispatcher.test_dispatcher_service import until


@pytest.mark.parametrize("first_ends", ["first", "last"])
async def test_both_send_under_one_key_and_one_outcome_stands(world: Any, first_ends: str) -> None:
    """The second can't know that the first is still at it: it records an attempt of unknown
    outcome, and sends. The receiver tells the repeat by its key.
    """
    entry = await world.reminder()
    release = {1: asyncio.Event(), 2: asyncio.Event()}
    began: list[int] = []

    async def hold(_outgoing: Any) -> None:
        began.append(len(began) + 1)
        await release[began[-1]].wait()

    world.sender.on_send = hold
    first = asyncio.create_task(world.runner().run(world.job(entry)))
    await until(lambda: len(began) == 1)
    second = asyncio.create_task(world.runner().run(world.job(entry, deliveries=2)))
    await until(lambda: len(began) == 2)
    for number in (1, 2) if first_ends == "first" else (2, 1):
        release[number].set()
        await (first if number == 1 else second)
    assert len(world.sender.sent) == 2
    assert len({sent.delivery_key for sent in world.sender.sent}) == 1
    row = await world.row()
    assert row.delivery is DeliveryStatus.CONFIRMED
    assert await world.handled(entry)


async def test_who_comes_after_the_end_sends_nothing(world: Any) -> None:
    """The ledger says that it is done."""
    entry = await world.reminder()
    await world.runner().run(world.job(entry))
    await world.runner().run(world.job(entry, deliveries=2))
    assert len(world.sender.sent) == 1

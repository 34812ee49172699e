"""What a change waits for, one round of the stores after the other: its latency is their sum."""

import asyncio

import pytest

from reminders.model.definition import At
from tests.unit.lifecycle.world import HOUR, NOON, SECOND, World


async def rounds(world: World, reminder_id: str) -> list[set[str]]:
    """The operations of a cancel by rounds: one ends when everything under way has been answered.

    Only where an operation begins counts; its later points are no waits of their own.
    """
    open_: list[tuple[str, asyncio.Future[None]]] = []

    async def point(name: str) -> None:
        if not name.endswith((".done", ".after")):
            gate = asyncio.get_running_loop().create_future()
            open_.append((name, gate))
            await gate

    world.on_point = point
    call = asyncio.create_task(world.cancel(reminder_id))
    found: list[set[str]] = []
    while True:
        for _ in range(20):
            await asyncio.sleep(0)
        if call.done():
            await call
            return found
        found.append({name for name, _ in open_})
        for _, gate in open_:
            gate.set_result(None)
        open_.clear()


@pytest.mark.parametrize("near", [False, True])
async def test_a_cancel_waits_for_few_rounds(near: bool) -> None:
    """The finish entry is there before the change begins, and the claims are revoked when the
    entries are void; what does not depend on each other goes together.
    """
    world = World()
    await world.take_lease()
    due = NOON + 10 * SECOND if near else NOON + 3 * HOUR
    reminder_id = await world.create(At(instant=due))
    asking = [{"ledger.page", "revoke.before"}, {"due.read"}] if near else [{"ledger.page"}]
    assert await rounds(world, reminder_id) == [
        {"records.read"},
        {"due.put"},
        {"records.begin"},
        {"records.read", "due.mark"},
        *asking,
        {"users.remove"},
        {"records.end"},
        {"records.read", "records.drop_live", "due.handled"},
    ]

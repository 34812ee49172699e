"""Jobs that raise whatever is done: they come to an end, on record, and hold nothing up."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from dispatcher.leg import LegRunner
from reminders.model.entry import EntryState
from reminders.model.ledger import DeliveryStatus, OccurrenceStatus
from reminders.ports import Copy
from tests.unit.dispatcher.test_dispatcher_service import left, running, until


async def live_through(world: Any, seconds: int) -> None:
    """Time passes for a dispatcher that runs."""
    for _ in range(seconds):
        world.clock.advance(timedelta(seconds=1))
        for _ in range(30):
            await asyncio.sleep(0)


def raising(world: Any, at: str, reminder_id: str = "") -> list[str]:
    """From now on that step raises, as a bug would; the times that it did."""
    raised: list[str] = []

    async def hook(name: str) -> None:
        if name == at:
            raised.append(name)
            raise ZeroDivisionError

    world.on_point = hook
    return raised


async def test_a_job_that_raises_whatever_is_done_is_given_up(world: Any) -> None:
    """After three times alone: failed, with a reason; its entry is handled, its message gone."""
    bad = await world.reminder("r1")
    raised = raising(world, "records.body")
    async with running(world):
        await world.claim(world.without_body(bad))
        await live_through(world, 40)
        assert await left(world) == 1
        assert not await world.handled(bad)
        await live_through(world, 60)
    assert len(raised) == 2 + 3  # two among others, and three alone
    assert await left(world) == 0
    assert await world.handled(bad)
    row = await world.row("")
    assert (row.ended, row.reason) == (OccurrenceStatus.FAILED, "poison")


async def test_each_leg_that_has_not_ended_fails(world: Any) -> None:
    """What one channel delivered stays delivered; the other one's row says poison."""
    entry = await world.reminder("r1", channels=("hook", "other"), urls=("", "bad"))

    whole = LegRunner.run

    async def run(self: Any, leg: Any) -> Any:
        if leg.channel.channel_id == "other":
            raise ZeroDivisionError
        return await whole(self, leg)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LegRunner, "run", run)
        async with running(world):
            await world.claim(entry)
            await live_through(world, 120)
    assert (await world.row("hook")).delivery is DeliveryStatus.CONFIRMED
    row = await world.row("other")
    assert (row.delivery, row.reason) == (DeliveryStatus.FAILED, "poison")
    assert len(world.sender.sent) == 1
    assert await world.handled(entry)


async def test_a_record_that_can_not_be_written_ends_all_the_same(world: Any) -> None:
    """Handled, so that its minute settles; the alarm tells."""
    entry = await world.reminder("r1")
    raised = raising(world, "ledger.write")
    async with running(world):
        await world.claim(entry)
        await live_through(world, 200)
    assert len(raised) > 3
    assert await world.handled(entry)
    assert await left(world) == 0


async def test_what_can_not_be_decoded_leaves_the_stream(world: Any) -> None:
    """Its due entry is the trailing scan's: nothing here knows which one it is."""
    entry = await world.reminder("r1")
    await world.coordination.leases.acquire(0, "scanner")
    copy = Copy(state=EntryState(entry=entry, raw=b"\xc1"), read_at=world.clock.now())
    await world.coordination.claims.claim(0, "scanner", [copy])
    async with running(world):
        await live_through(world, 40)
        assert await left(world) == 1
        await live_through(world, 60)
    assert await left(world) == 0
    assert not await world.handled(entry)


async def test_failures_among_others_do_not_count(world: Any) -> None:
    """Two were not its own, perhaps; then it goes well, and is delivered."""
    entry = world.without_body(await world.reminder("r1"))
    body = (await world.store.due.read(entry.key)).entry.body
    raised = raising(world, "records.body")
    async with running(world):
        await world.claim(entry)
        while len(raised) < 4:
            await live_through(world, 1)
        world.on_point = None
        world.store.records._reminder("r1").live[entry.key.entry_id].body.put(body, 9, body)
        await live_through(world, 40)
        await until(lambda: "done jobs.after" in world.points)
    assert [sent.reminder_id for sent in world.sender.sent] == ["r1"]
    assert (await world.row()).delivery is DeliveryStatus.CONFIRMED

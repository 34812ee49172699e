"""Due entries written again from the records, when nobody settled for longer than rows live."""

from typing import Any

import pytest

from reminders.buckets import DUE_LIFE, TRUSTED_LIFE, minute_of
from reminders.errors import StoreUnavailable
from reminders.lifecycle.rebuilding import PAGE, Rebuild, Rebuilt
from reminders.model.definition import At
from reminders.model.entry import Fate
from tests.unit.lifecycle.world import (
    DAY,
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    World,
    behind_the_scenes,
    every,
)

SOON = At(instant=NOON + 10 * SECOND)


async def rebuild(world: World) -> Rebuilt:
    """The whole walk."""
    reminders = world.reminders
    walk = Rebuild(world.platform, reminders.writer, reminders.planner, reminders.changes.finish)
    return [told async for told in walk.run()][-1]


def weeks_pass(world: World) -> None:
    """In which nobody settles anything, and what has expired is gone."""
    world.clock.move_to(NOON + DUE_LIFE + DAY)
    horizon = minute_of(world.now - DUE_LIFE)
    partitions = world.store.due._partitions
    for place in [place for place in partitions if place[0] <= horizon]:
        del partitions[place]


async def still_open(world: World, reminder_id: str) -> list[Any]:
    """The due entries that wait."""
    states = await world.entries(reminder_id)
    return [s.entry for s in states if s.handled_at is None and s.fate is not Fate.VOID]


async def test_what_expired_unseen_is_written_again(world: World) -> None:
    """At the current minute, under the same occurrence; a second walk finds it there."""
    reminder_id = await world.create(SOON)
    weeks_pass(world)
    assert await still_open(world, reminder_id) == []
    assert (await rebuild(world)).written == 1
    (entry,) = await still_open(world, reminder_id)
    assert entry.key.ring_at == world.now
    assert entry.occurrence.fire_at == NOON + 10 * SECOND
    assert (await rebuild(world)).written == 0


async def test_what_rang_is_not_written_again(world: World) -> None:
    """The ledger, which lives longer, says so."""
    reminder_id = await world.create(SOON)
    (entry,) = (await world.stored(reminder_id)).current
    world.clock.move_to(NOON + 11 * SECOND)
    await world.claim(entry)
    await world.dispatch()
    weeks_pass(world)
    assert (await rebuild(world)).written == 0


async def test_what_ended_is_not_written_again(world: World) -> None:
    """By its own cancel, or with its group."""
    cancelled = await world.create(SOON)
    await world.create(SOON, group_id="g")
    await world.cancel(cancelled)
    weeks_pass(world)
    with behind_the_scenes():
        await world.store.fences.put("ns", "g", NOON + MINUTE)
    assert (await rebuild(world)).written == 0


async def test_what_lies_ahead_is_left_alone(world: World) -> None:
    """Unless its row is gone: then it is put where it belongs."""
    there = await world.create(At(instant=NOON + DUE_LIFE + 2 * DAY))
    gone = await world.create(At(instant=NOON + DUE_LIFE + 2 * DAY + HOUR))
    weeks_pass(world)
    (entry,) = (await world.stored(gone)).current
    del world.store.due._partitions[entry.key.minute, entry.key.shard]
    assert (await rebuild(world)).written == 1
    assert [e.key for e in await still_open(world, gone)] == [entry.key]
    assert len(await still_open(world, there)) == 1


async def test_a_rule_goes_on(world: World) -> None:
    """What it had planned rang; the messages that were to make it go on are long lost."""
    reminder_id = await world.create(every("FREQ=HOURLY"))
    for entry in (await world.stored(reminder_id)).current:
        world.clock.move_to(entry.key.ring_at + SECOND)
        await world.claim(entry)
    await world.dispatch()
    weeks_pass(world)
    assert (await rebuild(world)).written == 1
    (entry,) = await still_open(world, reminder_id)
    assert entry.recurs
    assert entry.key.ring_at == world.now


async def test_watermarks_move_to_where_rows_can_be_trusted(world: World) -> None:
    """Only at the end of the walk, and never further: what is younger, scanners look at."""
    for _ in range(PAGE + 5):
        await world.create(SOON)
    weeks_pass(world)
    before = await world.settled_through()
    pages = 0

    async def fail(point: str) -> None:
        nonlocal pages
        pages += point == "records.scan"
        if pages == 2:
            raise StoreUnavailable(operation=point)

    world.on_point = fail
    with pytest.raises(StoreUnavailable):
        await rebuild(world)
    world.on_point = None
    assert await world.settled_through() == before
    done = await rebuild(world)
    assert (done.records, done.written, done.share) == (PAGE + 5, 5, 1.0)
    assert await world.settled_through() == minute_of(world.now - TRUSTED_LIFE) + MINUTE
    await rebuild(world)
    assert await world.settled_through() == minute_of(world.now - TRUSTED_LIFE) + MINUTE

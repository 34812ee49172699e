"""What scanners and expanders do with the reminders of a cancelled group."""

from datetime import timedelta
from typing import Any

import pytest

from reminders.errors import CoordinationUnavailable, StoreUnavailable
from reminders.lifecycle.grouping import CANCELLED
from reminders.model.definition import At
from reminders.model.ledger import OccurrenceStatus
from reminders.model.record import Status
from tests.unit.lifecycle.test_grouping import CAMPAIGN, cancel_group, get
from tests.unit.lifecycle.world import (
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    World,
    behind_the_scenes,
    every,
)
from tests.unit.scanner.harness import at_work, die, scanner_of

LATER = At(instant=NOON + 10 * MINUTE)
SOON = At(instant=NOON + 10 * SECOND)


async def endings(world: World, reminder_id: str) -> list[tuple[Any, str]]:
    """How its occurrences ended, of those that did not ring."""
    return [(row.ended, row.reason) for row in await world.ledger(reminder_id)]


async def test_a_cancelled_one_ends_in_the_ledger_when_its_time_comes(world: World) -> None:
    """Long after the fence left Redis: by the fence in the store. And its minute settles."""
    reminder_id = await world.create(LATER, **CAMPAIGN)
    other = await world.create(LATER)
    async with at_work(world, scanner_of(world)):
        await cancel_group(world)
        await world.clock.run_until(NOON + 15 * MINUTE)
    assert [name.split(".")[0] for name in world.rings] == [other]
    assert await endings(world, reminder_id) == [(OccurrenceStatus.CANCELLED, CANCELLED)]
    assert await world.settled_through() > NOON + 11 * MINUTE


async def test_what_a_scanner_holds_already_does_not_ring(world: World) -> None:
    """It was read before the cancel, so Redis refuses it."""
    reminder_id = await world.create(SOON, **CAMPAIGN)
    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + 5 * SECOND)
        await cancel_group(world)
        await world.clock.run_until(NOON + 4 * MINUTE)
    assert world.rings == []
    assert await endings(world, reminder_id) == [(OccurrenceStatus.CANCELLED, CANCELLED)]


@pytest.mark.parametrize("loss", ["everything", "fence", "scanner"])
async def test_nothing_that_is_lost_lets_it_ring(world: World, loss: str) -> None:
    """Redis loses all its data, or fails over to a replica that lacks the fence, right after the
    answer; or the scanner dies and another one reads everything anew.
    """
    await world.create(SOON, **CAMPAIGN)
    first, second = scanner_of(world), scanner_of(world)
    async with at_work(world, first, second) as tasks:
        await world.clock.run_until(NOON + 4 * SECOND)
        replica = world.coordination.replica()
        await cancel_group(world)
        if loss == "everything":
            world.coordination.lose_everything()
        elif loss == "fence":
            world.coordination.fail_over(replica)
        else:
            await die(tasks[0 if first.shards else 1])
        await world.clock.run_until(NOON + 5 * MINUTE)
    assert world.rings == []
    assert await world.settled_through() > NOON + MINUTE


async def test_what_was_claimed_before_rings_also_if_its_job_is_gone(world: World) -> None:
    """The group was cancelled after its time: the job that Redis lost is handed on again."""
    reminder_id = await world.create(SOON, **CAMPAIGN)
    world.stalled = True
    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + 11 * SECOND)
        (job_id,) = world.coordination.server.stream("jobs", 0).messages
        await cancel_group(world)
        world.coordination.server.stream("jobs", 0).messages.pop(job_id)
        world.stalled = False
        await world.clock.run_until(NOON + 5 * MINUTE)
    assert len(world.rings) == 1
    assert (await get(world, reminder_id)).status is Status.FIRED


async def test_a_rule_ends_with_its_group(world: World) -> None:
    """Its record says so itself when its next entry comes due, so that it does not stay for ever;
    nothing of it is written any more, and its minutes settle.
    """
    reminder_id = await world.create(every("FREQ=MINUTELY"), **CAMPAIGN)
    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + 90 * SECOND)
        rang = len(world.rings)
        await cancel_group(world)
        await world.clock.run_until(NOON + HOUR)
    assert rang >= 1
    assert len(world.rings) == rang
    assert (await world.stored(reminder_id)).record.status is Status.CANCELLED
    assert (await get(world, reminder_id)).status is Status.CANCELLED
    assert await world.settled_through() > NOON + 50 * MINUTE
    open_ones = [s for s in await world.entries(reminder_id) if s.handled_at is None]
    assert all(s.entry.key.ring_at < NOON + 5 * MINUTE for s in open_ones)


async def test_a_cancel_that_died_half_way_holds_once_it_is_seen(world: World) -> None:
    """The fence is in the store and not in Redis, and nobody was answered. Who closes an entry on
    record sees to it that no older copy of it can ring beside that.
    """
    reminder_id = await world.create(LATER, **CAMPAIGN)

    async def die_(point: str) -> None:
        if point == "fence.before":
            raise CoordinationUnavailable(operation=point)

    world.on_point = die_
    with pytest.raises(CoordinationUnavailable):
        await world.reminders.cancel_group("ns", "campaign")
    world.on_point = None
    (entry,) = (await world.stored(reminder_id)).current
    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + 10 * MINUTE + 20 * SECOND)
        fence = world.coordination.server.fence(0, "ns", "campaign")
    assert fence is not None
    assert fence >= entry.record_created_at
    assert world.rings == []
    assert await endings(world, reminder_id) == [(OccurrenceStatus.CANCELLED, CANCELLED)]


async def test_a_change_finished_long_after_makes_nothing_that_rings(world: World) -> None:
    """Its hint is young, and the fence has left Redis: who hears of it reads the fence."""
    reminder_id = await world.create(At(instant=NOON + HOUR), **CAMPAIGN)
    begun = False

    async def die_(point: str) -> None:
        nonlocal begun
        begun = begun or point == "records.begin.done"
        if begun:
            raise CoordinationUnavailable(operation=point)

    world.on_point = die_
    with pytest.raises(CoordinationUnavailable):
        await world.reschedule(reminder_id, LATER)
    world.on_point = None
    # the entry that makes somebody come back is held up, as by a dispatcher that stalls
    await cancel_group(world)
    world.clock.move_to(NOON + 9 * MINUTE + 40 * SECOND)
    world.stalled = True
    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + 9 * MINUTE + 50 * SECOND)
        world.stalled = False
        await world.reminders.changes.finish(reminder_id)
        await world.clock.run_until(NOON + 15 * MINUTE)
    assert (await world.stored(reminder_id)).current[0].version == 2
    assert world.rings == []


@pytest.mark.parametrize("point", ["ledger.write", "due.handled", "fences.read", "claimed.before"])
async def test_a_scan_that_stops_goes_on_where_it_was(world: World, point: str) -> None:
    """After any part of a page: nothing is counted, so nothing is lost count of."""
    ids = [await world.create(LATER, **CAMPAIGN) for _ in range(30)]
    failures = 0

    async def fail(name: str) -> None:
        nonlocal failures
        if name == point and world.now > NOON + 10 * MINUTE and failures < 3:
            failures += 1
            kind = CoordinationUnavailable if "before" in name else StoreUnavailable
            raise kind(operation=name)

    async with at_work(world, scanner_of(world)):
        await cancel_group(world)
        world.on_point = fail
        await world.clock.run_until(NOON + 15 * MINUTE)
    world.on_point = None
    assert failures == 3
    assert world.rings == []
    for reminder_id in ids:
        assert await endings(world, reminder_id) == [(OccurrenceStatus.CANCELLED, CANCELLED)]
    assert await world.settled_through() > NOON + 11 * MINUTE


async def test_entries_are_closed_by_the_page(world: World) -> None:
    """A campaign of many at one second costs a few calls a page, not some for each entry."""
    with behind_the_scenes():
        for _ in range(400):
            await world.create(LATER, **CAMPAIGN)
    async with at_work(world, scanner_of(world)):
        await cancel_group(world)
        await world.clock.run_until(NOON + 10 * MINUTE)
        world.points.clear()
        await world.clock.run_until(NOON + 11 * MINUTE)
    assert world.points.count("ledger.write") <= 2
    assert world.points.count("claimed.before") <= 2
    assert timedelta(0) < world.now - NOON

"""A walk over all records: what it finds, moves, tells, and where it goes on."""

import asyncio
from contextlib import aclosing
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from reminders.errors import StoreUnavailable
from reminders.lifecycle.moves import Event, Passed, Totals
from reminders.lifecycle.recomputing import Moved
from reminders.lifecycle.sweeping import ATTEMPTS, COST_OF_LOOKING, COST_OF_MOVING
from reminders.model.definition import After, At, Schedule
from reminders.ports import ClaimAnswer
from tests import zonedata
from tests.unit.lifecycle.world import DAY, HOUR, NOON, SECOND, World
from tests.unit.sweeping.support import (
    IS,
    JANUARY,
    JULY,
    PARIS,
    WAS,
    as_one,
    many,
    rings_at,
    sweep,
    told,
    walked,
)

# --- what it finds --------------------------------------------------------------------------------


async def test_it_moves_what_the_new_data_moves_and_tells_it(
    world: World, releases: dict[str, Path]
) -> None:
    """The local promise stays, the instant follows it; what keeps its instant keeps its version."""
    summer, winter, paris = [await world.create(each) for each in (JULY, JANUARY, PARIS)]
    with zonedata.installed(releases["2026h"]):
        moved, left, totals = told(await walked(world))
        assert [(each.reminder_id, each.old_instant, each.new_instant) for each in moved] == [
            (summer, WAS, IS)
        ]
        assert moved[0].planned_local == datetime(2026, 7, 1, 9)  # noqa: DTZ001 - local
        assert (moved[0].zone, moved[0].occurrence_id) == ("Africa/Algiers", "20260701T090000")
        assert not left
        assert totals == Totals(records=3, older=3, moved=1)
        assert await rings_at(world, summer) == [IS]
        versions = [(await world.stored(each)).record.version for each in (summer, winter, paris)]
        assert versions == [2, 1, 1]


async def test_what_was_moved_rings_once_at_its_new_time(
    world: World, releases: dict[str, Path]
) -> None:
    """And the old entry never, also in the hands of a scanner that read it before."""
    reminder_id = await world.create(JULY)
    (old,) = (await world.stored(reminder_id)).current
    with zonedata.installed(releases["2026h"]):
        await walked(world)
        (new,) = (await world.stored(reminder_id)).current
        world.clock.move_to(IS)
        assert await world.claim(new) is ClaimAnswer.CLAIMED
        await world.dispatch()
        world.clock.move_to(WAS)
        assert await world.claim(old, read_at=NOON) is not ClaimAnswer.CLAIMED
        await world.dispatch()
    assert world.rings == [old.dedupe_id] == [new.dedupe_id]


async def test_a_repeat_changes_nothing(world: World, releases: dict[str, Path]) -> None:
    """What was moved carries the new release; what keeps its instant is looked at again."""
    await many(world, 3)
    await world.create(PARIS)
    with zonedata.installed(releases["2026h"]):
        await walked(world)
        moved, _, totals = told(await walked(world))
    assert not moved
    assert totals == Totals(records=4, older=1)


@pytest.mark.parametrize("schedule", [At(instant=WAS), After(delay=30 * DAY)])
async def test_an_instant_never_moves(
    world: World, releases: dict[str, Path], schedule: Schedule
) -> None:
    """It was asked for as such."""
    await world.create(schedule)
    with zonedata.installed(releases["2026h"]):
        assert told(await walked(world)) == ([], [], Totals(records=1))


async def test_what_has_ended_or_rung_is_left(world: World, releases: dict[str, Path]) -> None:
    """Only what is ahead moves. A cancel that died half-way ends when its entry comes up."""
    cancelled, half, past = [await world.create(JULY) for _ in range(3)]
    await world.cancel(cancelled)
    assert await world.dies_at(4, world.cancel(half))
    world.clock.move_to(WAS)
    with zonedata.installed(releases["2026h"]):
        assert told(await walked(world)) == ([], [], Totals(records=3))
    assert (await world.stored(past)).record.version == 1
    assert (await world.stored(half)).change is not None


async def test_a_change_that_died_is_completed_and_then_looked_at(
    world: World, releases: dict[str, Path]
) -> None:
    """What comes of it nobody knows before."""
    reminder_id = await world.create(At(instant=NOON + HOUR))
    died = await world.dies_at(4, world.reschedule(reminder_id, JULY))
    assert died
    assert (await world.stored(reminder_id)).change is not None
    with zonedata.installed(releases["2026h"]):
        moved, _, _ = told(await walked(world))
    assert [each.new_instant for each in moved] == [IS]


async def test_a_dry_run_tells_the_same_and_writes_nothing(
    world: World, releases: dict[str, Path]
) -> None:
    """Neither to the reminders nor where a walk's position stands."""
    await many(world, 12)
    before = {each: await world.stored(each) for each in world.store.records._reminders}
    with zonedata.installed(releases["2026h"]):
        world.points.clear()
        looked = told(await walked(world, apply=False))
        assert set(world.points) <= {"records.scan", "records.read", "sweeps.read", "due.read"}
        assert {each: await world.stored(each) for each in before} == before
        assert told(await walked(world)) == looked


# --- going on -----------------------------------------------------------------------------------


@pytest.mark.parametrize("pages", [1, 2, 3])
async def test_whoever_runs_next_goes_on_where_the_last_one_died(
    world: World, releases: dict[str, Path], pages: int
) -> None:
    """Nothing is moved twice, nothing left out; the sums are of the whole walk."""
    ids = await many(world, 35)
    first: list[Event] = []
    with zonedata.installed(releases["2026h"]):
        async with aclosing(sweep(world, rate=1).run()) as events:
            async for event in events:
                first.append(event)
                if sum(isinstance(each, Passed) for each in first) == pages:
                    break
        second = await walked(world)
        assert isinstance(second[0], Moved)
        moved, _, totals = told([*first, *second])
        assert sorted(each.reminder_id for each in moved) == sorted(ids)
        assert totals == Totals(records=35, older=35, moved=35)
        resumed = [each.resumed_at for each in second if isinstance(each, Passed)]
        shares = [each.share for each in first if isinstance(each, Passed)]
        assert set(resumed) == {shares[-1]}
        assert (await walked(world))[-1] == Passed(totals=Totals(records=35), share=1.0)


async def test_a_death_at_any_step_of_the_walk_leaves_nothing_behind(
    world: World, releases: dict[str, Path]
) -> None:
    """Within a page as well, and within the change of a reminder."""
    ids = await many(world, 4)
    with zonedata.installed(releases["2026h"]):
        step = 0
        while await world.dies_at(step, as_one(walked(world))):
            step += 7
        assert step > 7
        await walked(world)
        assert [await rings_at(world, each) for each in ids] == [[IS]] * 4


async def test_two_walks_at_once_move_everything_once(
    world: World, releases: dict[str, Path]
) -> None:
    """Who loses a reminder to the other one finds nothing left to move."""
    ids = await many(world, 25)
    with zonedata.installed(releases["2026h"]):
        both = await asyncio.gather(walked(world), walked(world))
        assert [await rings_at(world, each) for each in ids] == [[IS]] * 25
        versions = {(await world.stored(each)).record.version for each in ids}
        assert versions == {2}
    moved = [each for events in both for each in events if isinstance(each, Moved)]
    assert {each.reminder_id for each in moved} == set(ids)


async def test_a_cancel_meanwhile_wins_or_loses_but_nothing_rings_twice(
    world: World, releases: dict[str, Path]
) -> None:
    """One procedure settles it."""
    ids = await many(world, 10)
    with zonedata.installed(releases["2026h"]):
        await asyncio.gather(walked(world), *(world.cancel(each) for each in ids))
        for each in ids:
            entries = await world.entries(each)
            assert all(one.fate is not None for one in entries if one.entry.occurrence)


async def test_its_rate_is_bounded(world: World, releases: dict[str, Path]) -> None:
    """What is computed again, and even more what moves, counts for more than what is only read."""
    for _ in range(10):
        await world.create(At(instant=WAS))
        await world.create(PARIS)
    await many(world, 20)
    with zonedata.installed(releases["2026h"]):
        began = world.now
        await walked(world, apply=False, rate=40)
        looked = world.now - began
        began = world.now
        await walked(world, rate=40)
        applied = world.now - began
    last_page = timedelta(seconds=10 * (1 + COST_OF_LOOKING) / 40)
    whole = timedelta(seconds=(40 + 30 * COST_OF_LOOKING) / 40)
    assert whole - last_page <= looked <= whole
    last_page = timedelta(seconds=10 * (1 + COST_OF_MOVING) / 40)
    whole = timedelta(seconds=(40 + 10 * COST_OF_LOOKING + 20 * COST_OF_MOVING) / 40)
    assert whole - last_page <= applied <= whole


async def test_it_waits_for_a_server_and_gives_up_in_the_end(
    world: World, releases: dict[str, Path]
) -> None:
    """The next run goes on."""
    await many(world, 3)
    failures = 0

    async def away(point: str) -> None:
        nonlocal failures
        if point == "records.scan" and failures < limit:
            failures += 1
            raise StoreUnavailable(operation=point)

    world.on_point = away
    with zonedata.installed(releases["2026h"]):
        limit = ATTEMPTS
        began = world.now
        with pytest.raises(StoreUnavailable):
            await walked(world)
        assert world.now - began > 10 * SECOND
        limit = 2 * ATTEMPTS - 1
        moved, _, _ = told(await walked(world))
    assert len(moved) == 3

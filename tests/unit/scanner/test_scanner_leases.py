"""Who leads a shard, and what becomes of it when somebody comes, goes or dies."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

from reminders.errors import CoordinationUnavailable
from reminders.model.definition import After, At
from reminders.ports import Clock
from scanner.placement import owner
from scanner.service import Scanner
from tests.unit.lifecycle.world import (
    MINUTE,
    NOON,
    SECOND,
    World,
    behind_the_scenes,
)
from tests.unit.scanner.harness import at_work, die, rang_at, scanner_of

DISPATCH = timedelta(milliseconds=100)
"""How often the dispatcher looks."""


async def test_another_takes_over_from_one_that_fell_silent(world: World) -> None:
    """Within the lease's life and a moment; nothing is lost, nothing rings twice."""
    first, second = scanner_of(world), scanner_of(world)
    names = [await world.create(At(instant=NOON + n * SECOND)) for n in range(1, 60)]
    async with at_work(world, first, second) as (one, two):
        victim = one if owner(0, [first.member, second.member]) == first.member else two
        await world.clock.run_until(NOON + 20 * SECOND + SECOND / 2)
        await die(victim)
        await world.clock.run_until(NOON + 2 * MINUTE)
    late = {
        name: rang_at(world, name)[0] - (NOON + n * SECOND)  # type: ignore[operator]
        for n, name in enumerate(names, start=1)
    }
    assert max(late.values()) < world.limits.lease_life + 3 * SECOND
    assert sorted(late.values())[40] <= DISPATCH
    assert len(world.rings) == 59


async def test_a_shard_that_is_given_up_is_taken_within_a_quarter_of_a_second(world: World) -> None:
    """Whoever joins, or comes back, asks often: nothing is late by more while others make room."""
    first, second = scanner_of(world), scanner_of(world)
    while owner(0, [first.member, second.member]) != second.member:
        second = scanner_of(world)
    stop = asyncio.Event()
    names = [await world.create(At(instant=NOON + n * SECOND / 10)) for n in range(10, 400)]
    async with at_work(world, first):
        await world.clock.run_until(NOON + 5.9 * SECOND)
        joined = asyncio.create_task(second.run(stop))
        await world.clock.run_until(NOON + 45 * SECOND)
        assert list(second.shards) == [0]
        stop.set()
        await world.clock.run_until(NOON + 48 * SECOND)
        joined.result()
    late = [
        rang_at(world, name)[0] - (NOON + n * SECOND / 10)  # type: ignore[operator]
        for n, name in enumerate(names, start=10)
    ]
    assert max(late) <= timedelta(seconds=0.25) + 2 * DISPATCH


async def test_shards_are_handed_over_to_one_who_joins_and_back(world: World) -> None:
    """Each leads what placement says, and never two the same."""
    world = World(shards=16)
    first, second = scanner_of(world), scanner_of(world)
    stop = asyncio.Event()
    async with at_work(world, first):
        await world.clock.run_until(NOON + 2 * SECOND)
        assert len(first.shards) == 16
        joined = asyncio.create_task(second.run(stop))
        await world.clock.run_until(NOON + 6 * SECOND)
        assert set(first.shards) | set(second.shards) == set(range(16))
        assert not set(first.shards) & set(second.shards)
        assert len(second.shards) > 2
        stop.set()
        await world.clock.run_until(NOON + 10 * SECOND)
        assert joined.done()
        joined.result()
        assert len(first.shards) == 16


class Wrong:
    """A clock of one process, which that process must not trust for now."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.bounds = True

    def now(self) -> datetime:
        """As everybody's."""
        return self.clock.now()

    def at_least(self) -> datetime:
        """As everybody's."""
        return self.clock.at_least()

    async def refresh(self) -> None:
        """As everybody's."""
        await self.clock.refresh()

    def in_bounds(self) -> bool:
        """As the test says."""
        return self.bounds

    async def sleep_until(self, at: datetime, *, exact: bool = False) -> None:
        """As everybody's."""
        await self.clock.sleep_until(at, exact=exact)


async def test_a_scanner_whose_clock_is_out_of_bounds_lets_others_lead(world: World) -> None:
    """Its shards must not stand still beside a healthy scanner; it joins again when it is right."""
    world = World(shards=16)
    wrong = Wrong(world.clock)
    first = Scanner(replace(world.platform, clock=wrong), world.reminders.changes.finish)
    second = scanner_of(world)
    names = [await world.create(At(instant=NOON + n * SECOND)) for n in range(1, 60)]
    async with at_work(world, first, second):
        await world.clock.run_until(NOON + 10 * SECOND)
        assert len(first.shards) > 2
        wrong.bounds = False
        await world.clock.run_until(NOON + 15 * SECOND)
        assert (len(first.shards), len(second.shards)) == (0, 16)
        wrong.bounds = True
        await world.clock.run_until(NOON + 90 * SECOND)
        assert len(first.shards) > 2
    late = [
        rang_at(world, name)[0] - (NOON + n * SECOND)  # type: ignore[operator]
        for n, name in enumerate(names, start=1)
    ]
    assert max(late) < 4 * SECOND
    assert len(world.rings) == 59


async def test_a_scanner_that_stops_claims_what_is_due_and_releases_its_shard(
    world: World,
) -> None:
    """The next one need not wait for the lease to run out."""
    scanner = scanner_of(world)
    stop = asyncio.Event()
    name = await world.create(At(instant=NOON + 5 * SECOND))
    task = asyncio.create_task(scanner.run(stop))
    await world.clock.run_until(NOON + 5 * SECOND)
    stop.set()
    await world.clock.run_until(NOON + 6 * SECOND)
    assert task.done()
    task.result()
    await world.dispatch()
    assert len(rang_at(world, name)) == 1
    with behind_the_scenes():
        assert await world.coordination.leases.holder(0) is None
    left = [t.get_name() for t in asyncio.all_tasks() if t is not asyncio.current_task()]
    assert left == []


async def test_a_stop_is_bounded_though_nothing_can_be_claimed(world: World) -> None:
    """The next lead finds what is left."""
    scanner = scanner_of(world)
    stop = asyncio.Event()
    await world.create(At(instant=NOON + 5 * SECOND))
    task = asyncio.create_task(scanner.run(stop))
    await world.clock.run_until(NOON + 4 * SECOND)

    async def down(point: str) -> None:
        if point.startswith("claim."):
            raise CoordinationUnavailable(operation=point)

    world.on_point = down
    await world.clock.run_until(NOON + 5 * SECOND)
    stop.set()
    await world.clock.run_until(NOON + 8 * SECOND)
    assert task.done()
    task.result()


async def test_a_lead_that_could_not_be_released_is_not_kept_as_a_dead_one(world: World) -> None:
    """Placement wavers just while Redis fails: the shard is led again a moment later."""
    world = World(shards=8)
    first, second = scanner_of(world), scanner_of(world)
    stop = asyncio.Event()

    async def no_release(point: str) -> None:
        if point.startswith("release"):
            raise CoordinationUnavailable(operation=point)

    async with at_work(world, first):
        await world.clock.run_until(NOON + 2 * SECOND)
        world.on_point = no_release
        joined = asyncio.create_task(second.run(stop))
        await world.clock.run_until(NOON + 4 * SECOND)
        await die(joined)
        world.on_point = None
        await world.clock.run_until(NOON + 15 * SECOND)
        assert first.shards == list(range(8))
        assert not any(lead.lost.is_set() for lead in first._leads.values())
        name = await world.create(After(delay=SECOND))
        names = [name, *[await world.create(After(delay=SECOND)) for _ in range(20)]]
        await world.clock.run_until(NOON + 17 * SECOND)
        assert {len(rang_at(world, each)) for each in names} == {1}


async def test_a_slow_redis_does_not_cost_the_leases_that_are_held(world: World) -> None:
    """Acquiring many shards takes longer than a lease lives: they come by and by."""
    world = World(shards=64)
    slow = timedelta(milliseconds=100)

    async def delay(point: str) -> None:
        if point.endswith(".before") and not point.startswith("tail"):
            await world.clock.sleep_until(world.now + slow)

    world.on_point = delay
    scanner = scanner_of(world)
    async with at_work(world, scanner, dispatch=False, expand=False):
        for seconds in range(4, 40, 4):
            before = set(scanner.shards)
            await world.clock.run_until(NOON + seconds * SECOND)
            assert before <= set(scanner.shards)
        assert len(scanner.shards) == 64


async def test_tasks_and_copies_end_with_their_lead(world: World) -> None:
    """Leads come and go a hundred times; nothing piles up."""
    for n in range(50):
        await world.create(At(instant=NOON + 10 * SECOND + n * SECOND))
    scanner = scanner_of(world)
    async with at_work(world, scanner, dispatch=False, expand=False):
        await world.clock.run_until(NOON + 2 * SECOND)
        before = len(asyncio.all_tasks())
        for _ in range(20):
            world.coordination.fail_over(world.coordination.replica())
            await world.clock.run_until(world.now + 2 * SECOND)
        assert len(asyncio.all_tasks()) == before
        assert scanner.shards == [0]
        await world.clock.run_until(world.now + 60 * SECOND)
        assert len(scanner._timer) == 0


async def test_a_dead_lead_whose_lease_is_still_held_is_replaced(world: World) -> None:
    """It ended without releasing; renewals alone would keep the shard dead for ever."""
    scanner = scanner_of(world)
    name = await world.create(At(instant=NOON + 10 * SECOND))
    async with at_work(world, scanner):
        await world.clock.run_until(NOON + 2 * SECOND)
        (dead,) = scanner._leads.values()
        dead.end("drained")
        await world.clock.run_until(NOON + 11 * SECOND)
        (lead,) = scanner._leads.values()
        assert lead is not dead
        assert len(rang_at(world, name)) == 1

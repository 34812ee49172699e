"""A scanner at work: what is due rings at its time, whatever way it came and whoever died."""

import asyncio
from datetime import datetime, timedelta

import pytest

from reminders.errors import CoordinationUnavailable, StoreUnavailable
from reminders.model.definition import After, At
from reminders.ports import ClaimAnswer
from scanner import lead as lead_module
from scanner import reader as reader_module
from scanner.placement import owner
from tests.unit.lifecycle.world import (
    MINUTE,
    NOON,
    SECOND,
    World,
    behind_the_scenes,
    every,
)
from tests.unit.scanner.harness import Claimed, at_work, die, scanner_of

DISPATCH = timedelta(milliseconds=100)
"""How often the dispatcher looks."""


def rang_at(world: World, reminder_id: str) -> list[object]:
    """When a one-shot rang."""
    return [
        at for name, times in world.rung.items() for at in times if name.startswith(reminder_id)
    ]


async def test_it_rings_at_its_time_whenever_it_was_created(world: World) -> None:
    """Long before (a slice), shortly before (a hint), and for now."""
    far = await world.create(At(instant=NOON + 95 * SECOND))
    async with at_work(world, scanner_of(world)):
        near = await world.create(At(instant=NOON + 12 * SECOND))
        await world.clock.run_until(NOON + 40 * SECOND)
        inside = await world.create(At(instant=NOON + 41 * SECOND))
        now = await world.create(At(instant=NOON + 20 * SECOND))
        await world.clock.run_until(NOON + 100 * SECOND)
    for name, at in ((far, 95), (near, 12), (inside, 41), (now, 40)):
        (rang,) = rang_at(world, name)
        assert NOON + at * SECOND <= rang <= NOON + at * SECOND + DISPATCH  # type: ignore[operator]


async def test_nothing_is_claimed_before_its_time_and_everything_once(world: World) -> None:
    """A hundred, spread over a minute; hints and slices meet."""
    claimed = Claimed(world)
    async with at_work(world, scanner_of(world)):
        for n in range(100):
            await world.create(At(instant=NOON + n * SECOND * 0.6))
        await world.clock.run_until(NOON + 2 * MINUTE)
    names = claimed.of(ClaimAnswer.CLAIMED)
    assert len(names) == len(set(names)) == 100
    assert claimed.earliest >= timedelta(0)
    assert sorted(world.rings) == sorted(names)


async def test_a_slice_of_many_pages_with_ties_rings_all(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same instant for more than one page."""
    monkeypatch.setattr(reader_module, "PAGE", 7)
    for _ in range(50):
        await world.create(At(instant=NOON + 65 * SECOND))
    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + 66 * SECOND)
        assert len(world.rings) == 50


async def test_a_hint_that_was_lost_costs_seconds(world: World) -> None:
    """The trailing scan finds what no hint told of."""

    async def lose(point: str) -> None:
        if point.startswith("announce"):
            raise CoordinationUnavailable(operation=point)

    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + SECOND)
        world.on_point = lose
        name = await world.create(At(instant=NOON + 12 * SECOND))
        world.on_point = None
        await world.clock.run_until(NOON + MINUTE)
    (rang,) = rang_at(world, name)
    assert rang < NOON + 30 * SECOND  # type: ignore[operator]


async def test_an_unreadable_hint_stops_nobody(world: World) -> None:
    """Of a newer release, perhaps. The row tells."""
    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + SECOND)
        name = await world.create(At(instant=NOON + 3 * SECOND))
        stream = world.coordination.server.stream("near", 0)
        for message in stream.messages.values():
            message.raw = b"\x01"
        await world.clock.run_until(NOON + 40 * SECOND)
        assert len(rang_at(world, name)) == 1


async def test_after_downtime_everything_open_since_the_watermark_rings(world: World) -> None:
    """Ten minutes without a scanner: at once, not one by one with the rounds."""
    names = [await world.create(After(delay=n * 37 * SECOND)) for n in range(1, 16)]
    world.clock.advance(10 * MINUTE)
    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + 10 * MINUTE + 3 * SECOND)
        assert {len(rang_at(world, name)) for name in names} == {1}
        await world.clock.run_until(NOON + 15 * MINUTE)
        assert await world.settled_through() >= NOON + 11 * MINUTE
    assert len(world.rings) == 15


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


async def test_while_redis_is_away_nothing_is_claimed_and_nothing_lost(world: World) -> None:
    """For twenty seconds; leads end, and begin anew from the watermark."""
    names = [await world.create(At(instant=NOON + n * SECOND)) for n in range(1, 50)]

    async def down(point: str) -> None:
        if point.rpartition(".")[2] in ("before", "after"):
            raise CoordinationUnavailable(operation=point)

    scanner = scanner_of(world)
    async with at_work(world, scanner, dispatch=False):
        await world.clock.run_until(NOON + 10 * SECOND)
        world.on_point = down
        await world.clock.run_until(NOON + 30 * SECOND)
        assert scanner.shards == []
        assert scanner.problems() != []
        world.on_point = None
        await world.clock.run_until(NOON + 60 * SECOND)
        await world.dispatch()
    assert {len(rang_at(world, name)) for name in names} == {1}


async def test_while_cassandra_is_away_what_is_in_the_heap_fires(world: World) -> None:
    """Settling waits; what could not be read rings afterwards."""
    names = [await world.create(At(instant=NOON + n * SECOND)) for n in range(1, 100)]

    async def down(point: str) -> None:
        if point.startswith(("due.", "records.", "progress.")):
            raise StoreUnavailable(operation=point)

    claimed = Claimed(world)
    async with at_work(world, scanner_of(world), dispatch=False):
        await world.clock.run_until(NOON + 5 * SECOND)
        world.on_point = down
        await world.clock.run_until(NOON + 30 * SECOND)
        assert len(claimed.of(ClaimAnswer.CLAIMED)) >= 29
        await world.clock.run_until(NOON + 2 * MINUTE)
        world.on_point = None
        await world.clock.run_until(NOON + 3 * MINUTE)
        await world.dispatch()
    assert {len(rang_at(world, name)) for name in names} == {1}


async def test_after_redis_lost_everything_what_was_claimed_and_not_sent_rings(
    world: World,
) -> None:
    """Claims, jobs and lease are gone: the scanner is told, and reads Cassandra again."""
    names = [await world.create(At(instant=NOON + n * SECOND)) for n in range(1, 20)]
    async with at_work(world, scanner_of(world), dispatch=False):
        await world.clock.run_until(NOON + 10 * SECOND)
        world.coordination.lose_everything()
        await world.clock.run_until(NOON + MINUTE)
        await world.dispatch()
    assert {len(rang_at(world, name)) for name in names} == {1}


async def test_after_a_fail_over_a_void_that_was_not_replicated_still_holds(world: World) -> None:
    """The promoted server has the lease and lacks the void: older copies are not claimed."""
    name = await world.create(At(instant=NOON + 20 * SECOND))
    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + 10 * SECOND)
        replica = world.coordination.replica()
        assert not (await world.cancel(name)).was_fired
        world.coordination.fail_over(replica)
        await world.clock.run_until(NOON + 4 * MINUTE)
    assert world.rings == []


async def test_a_stale_copy_is_read_again_before_it_is_claimed(world: World) -> None:
    """So old that a void may have come and gone: what is stored counts."""
    kept = await world.create(At(instant=NOON + 10 * SECOND))
    cancelled = await world.create(At(instant=NOON + 10 * SECOND))
    claimed = Claimed(world)
    scanner = scanner_of(world)
    async with at_work(world, scanner):
        await world.clock.run_until(NOON + 9 * SECOND)
        (lead,) = scanner._leads.values()
        lead.congested = True
        world.stalled = True
        lengths = world.coordination.jobs.lengths

        async def long(shards: list[int]) -> dict[int, int]:
            return dict.fromkeys(shards, 1_000_000)

        world.coordination.jobs.lengths = long  # type: ignore[method-assign, assignment]
        await world.clock.run_until(NOON + 11 * SECOND)
        with behind_the_scenes():
            await world.cancel(cancelled)
        await world.clock.run_until(NOON + 200 * SECOND)
        assert claimed.of(ClaimAnswer.CLAIMED) == []
        world.coordination.jobs.lengths = lengths  # type: ignore[method-assign]
        world.stalled = False
        await world.clock.run_until(NOON + 210 * SECOND)
    assert ClaimAnswer.STALE in {answer for _, _, answer in claimed.answers}
    assert len(rang_at(world, kept)) == 1
    assert rang_at(world, cancelled) == []


async def test_a_congested_shard_claims_nothing_and_holds_little_in_memory(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries wait in Cassandra, and ring when the dispatchers come back."""
    monkeypatch.setattr("scanner.service.LONG_STREAM", 5)
    monkeypatch.setattr(lead_module, "MAX_BACKLOG", 50)
    scanner = scanner_of(world)
    for n in range(1, 400):
        await world.create(At(instant=NOON + n * SECOND / 2))
    async with at_work(world, scanner):
        world.stalled = True
        await world.clock.run_until(NOON + 150 * SECOND)
        (lead,) = scanner._leads.values()
        assert lead.congested
        assert len(lead._held) < 120
        with behind_the_scenes():
            lengths = await world.coordination.jobs.lengths([0])
        assert lengths[0] < 20
        world.stalled = False
        await world.clock.run_until(NOON + 5 * MINUTE)
    assert len(world.rings) == len(set(world.rings)) == 399


async def test_nothing_is_claimed_while_the_clock_is_out_of_bounds(world: World) -> None:
    """Nor settled. It rings when the clock is right again."""
    name = await world.create(At(instant=NOON + 5 * SECOND))
    scanner = scanner_of(world)
    async with at_work(world, scanner):
        await world.clock.run_until(NOON + 2 * SECOND)
        world.clock.bounds = False
        await world.clock.run_until(NOON + 20 * SECOND)
        assert world.rings == []
        assert any("clock" in problem for problem in scanner.problems())
        world.clock.bounds = True
        await world.clock.run_until(NOON + 21 * SECOND)
        assert len(rang_at(world, name)) == 1


async def test_a_server_clock_that_is_behind_never_makes_anything_ring_early(
    world: World,
) -> None:
    """It answers EARLY, and is asked again a little later."""
    claimed = Claimed(world)
    behind = timedelta(milliseconds=5)

    class Behind:
        """The server's TIME."""

        def now(self) -> object:
            return world.now - behind

        async def sleep_until(self, at: datetime) -> None:
            await world.clock.sleep_until(at + behind)

    world.coordination.server.clock = Behind()  # type: ignore[assignment]
    name = await world.create(At(instant=NOON + 5 * SECOND))
    async with at_work(world, scanner_of(world), dispatch=False, expand=False):
        await world.clock.run_until(NOON + 6 * SECOND)
    (at,) = (at for at, _, answer in claimed.answers if answer is ClaimAnswer.CLAIMED)
    assert at == NOON + 5 * SECOND + behind
    assert ClaimAnswer.EARLY in {answer for _, _, answer in claimed.answers}
    assert name in claimed.answers[0][1]


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


async def test_a_rule_rings_again_and_again(world: World) -> None:
    """Scanner, dispatcher and expander together, for ten minutes."""
    reminder_id = await world.create(every("FREQ=MINUTELY"))
    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + 10 * MINUTE + 30 * SECOND)
        times = sorted(rang_at(world, reminder_id))  # type: ignore[type-var]
        assert [at.replace(microsecond=0) for at in times] == [  # type: ignore[attr-defined]
            NOON + n * MINUTE for n in range(11)
        ]
        assert await world.settled_through() >= NOON + 6 * MINUTE
    assert len((await world.stored(reminder_id)).live) <= 4

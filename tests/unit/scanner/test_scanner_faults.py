"""A server is away, lost everything, or is behind: late perhaps, never lost, early or twice."""

from collections import Counter
from datetime import datetime, timedelta

import pytest

from reminders.errors import CoordinationUnavailable, StoreUnavailable
from reminders.model.definition import At
from reminders.ports import ClaimAnswer
from scanner import lead as lead_module
from tests.unit.lifecycle.world import (
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    World,
    behind_the_scenes,
)
from tests.unit.scanner.harness import Claimed, at_work, rang_at, scanner_of

DISPATCH = timedelta(milliseconds=100)
"""How often the dispatcher looks."""


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


async def test_what_it_costs_to_come_back_does_not_grow_with_what_is_pending() -> None:
    """The look-ahead and the minutes that are not settled are read again, and nothing else."""

    async def reads(pending: int) -> Counter[str]:
        world, seen = World(), Counter[str]()
        for number in range(pending):
            await world.create(At(instant=NOON + HOUR + number * 7 * SECOND))
        names = [await world.create(At(instant=NOON + n * SECOND)) for n in range(1, 20)]

        async def count(point: str) -> None:
            if point.startswith(("due.", "records.", "users.", "progress.")):
                seen[point] += 1

        async with at_work(world, scanner_of(world)):
            await world.clock.run_until(NOON + 10 * SECOND)
            world.coordination.lose_everything()
            world.on_point = count
            await world.clock.run_until(NOON + MINUTE)
            world.on_point = None
        assert {len(rang_at(world, name)) for name in names} == {1}
        return seen

    few, many = await reads(1), await reads(1_000)
    assert few
    assert many == few


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
        await world.clock.run_until(NOON + 24 * SECOND)
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

        async def sleep_until(self, at: datetime, *, exact: bool = False) -> None:
            await world.clock.sleep_until(at + behind, exact=exact)

    world.coordination.server.clock = Behind()  # type: ignore[assignment]
    name = await world.create(At(instant=NOON + 5 * SECOND))
    async with at_work(world, scanner_of(world), dispatch=False, expand=False):
        await world.clock.run_until(NOON + 6 * SECOND)
    (at,) = (at for at, _, answer in claimed.answers if answer is ClaimAnswer.CLAIMED)
    assert at == NOON + 5 * SECOND + behind
    assert ClaimAnswer.EARLY in {answer for _, _, answer in claimed.answers}
    assert name in claimed.answers[0][1]

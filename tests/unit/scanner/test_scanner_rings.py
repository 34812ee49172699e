"""A scanner at work: what is due rings at its time, whatever way it came and whoever died."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from reminders.model.definition import After, At
from reminders.model.entry import Fate
from reminders.ports import ClaimAnswer
from scanner import reader as reader_module
from tests.unit.lifecycle.world import (
    MINUTE,
    NOON,
    SECOND,
    World,
    behind_the_scenes,
    every,
)
from tests.unit.scanner.harness import Claimed, at_work, rang_at, scanner_of

DISPATCH = timedelta(milliseconds=100)
"""How often the dispatcher looks."""


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


async def test_what_a_late_writer_moved_is_claimed_to_be_rechecked(world: World) -> None:
    """It may have rung at its old place, by a claim that Redis has lost."""

    async def slow(point: str) -> None:
        if point == "records.create.done":
            world.on_point = None
            world.clock.advance(5 * MINUTE)

    async with at_work(world, scanner_of(world), dispatch=False):
        await world.clock.run_until(NOON + SECOND)
        with behind_the_scenes():
            await world.store.progress.advance(0, NOON + MINUTE)
        world.on_point = slow
        await world.create(At(instant=NOON))
        await world.clock.run_until(world.now + 30 * SECOND)
        (job,) = world.coordination.server.stream("jobs", 0).messages.values()
        assert job.recheck


async def test_what_a_late_writer_moved_of_a_rule_is_skipped_where_the_next_has_come(
    world: World,
) -> None:
    """Though the new place is not late at all: the policy looks at the promise."""
    name = await world.create(every("FREQ=MINUTELY;INTERVAL=3"))
    first, second = (await world.stored(name)).current
    async with at_work(world, scanner_of(world), expand=False):
        await world.clock.run_until(NOON + SECOND)
        with behind_the_scenes():
            await world.store.due.mark([second.key], Fate.VOID, stamp=1)
        await world.clock.run_until(NOON + 10 * MINUTE)
        moved = replace(second, key=replace(second.key, ring_at=world.now))
        with behind_the_scenes():
            await world.reminders.writer.put([moved], stamp=2)
        await world.clock.run_until(NOON + 11 * MINUTE)
    assert [ring for ring in world.rings if ring != first.dedupe_id] == []
    (row,) = [row for row in await world.ledger(name) if row.ended]
    assert row.reason == "superseded"

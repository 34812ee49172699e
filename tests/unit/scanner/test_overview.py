"""How shards stand, by the stores alone."""

import json
from datetime import timedelta

import pytest

from reminders.buckets import TRUSTED_LIFE, shard_of
from reminders.cli.shards import as_json, problems_of, table_of
from reminders.model.definition import At
from reminders.overview import LOOKED_THROUGH, Overview, Shard
from tests.unit.lifecycle.world import MINUTE, NOON, SECOND, World, behind_the_scenes
from tests.unit.scanner.harness import at_work, die, scanner_of


async def look(world: World) -> list[Shard]:
    """As the command does."""
    with behind_the_scenes():
        return list(await Overview(world.platform).shards())


async def test_a_healthy_shard_is_led_settled_and_empty() -> None:
    """By the process that holds the lease; what lies ahead does not count."""
    world = World(shards=2)
    scanner = scanner_of(world)
    await world.create(At(instant=NOON + 10 * SECOND))
    await world.create(At(instant=NOON + 20 * MINUTE))
    async with at_work(world, scanner):
        await world.clock.run_until(NOON + 10 * MINUTE)
        found = await look(world)
    assert [one.shard for one in found] == [0, 1]
    for one in found:
        assert one.holder == scanner.member
        assert one.settled_age < 4 * MINUTE
        assert (one.unsettled, one.jobs, one.fires) == (0, 0, 0)
        assert one.oldest_due is None
        assert not one.refused
    assert problems_of(found) == []


async def test_a_shard_that_nobody_leads_is_a_problem() -> None:
    """It says since when what is due waits there."""
    world = World(shards=2)
    scanner = scanner_of(world)
    reminder_id = await world.create(At(instant=NOON + 10 * SECOND))
    async with at_work(world, scanner) as tasks:
        await die(tasks[0])
    world.clock.advance(10 * MINUTE)
    found = await look(world)
    assert [one.holder for one in found] == [None, None]
    waiting = found[shard_of(reminder_id, 2)]
    assert waiting.unsettled == 1
    assert waiting.oldest_due == NOON + 10 * SECOND
    assert waiting.oldest_age(world.now) == 10 * MINUTE - 10 * SECOND
    (problem,) = problems_of(found)
    assert "shards 0, 1" in problem


async def test_jobs_that_nobody_takes_are_counted(world: World) -> None:
    """Claimed and not settled: in the stream, and unsettled on disk."""
    world.stalled = True
    await world.create(At(instant=NOON + 10 * SECOND))
    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + 30 * SECOND)
        (found,) = await look(world)
    assert (found.jobs, found.unsettled) == (1, 1)
    assert found.oldest_due == NOON + 10 * SECOND


async def test_of_a_long_backlog_the_oldest_part_is_counted(world: World) -> None:
    """A look stays cheap; it says that there is more."""
    await world.create(At(instant=NOON + 10 * SECOND))
    world.clock.advance((LOOKED_THROUGH + 5) * MINUTE)
    (found,) = await look(world)
    assert found.unsettled_is_more
    assert found.unsettled == 1


@pytest.mark.parametrize(("age", "refused"), [(timedelta(0), True), (-SECOND, False)])
async def test_a_watermark_that_may_not_go_on_is_a_problem(
    world: World, age: timedelta, refused: bool
) -> None:
    """From the age on at which rows may have expired."""
    world.clock.move_to(NOON + TRUSTED_LIFE + age)
    world.store.progress._settled[0] = NOON
    await world.take_lease()
    (found,) = await look(world)
    assert found.refused is refused
    problems = problems_of([found])
    assert bool(problems) is refused
    assert all("tocsin rebuild" in problem for problem in problems)


async def test_json_is_for_programs(world: World) -> None:
    """Instants as ISO 8601, ages in seconds, nothing as null; the table has a row for each."""
    await world.create(At(instant=NOON + 10 * SECOND))
    world.clock.advance(MINUTE)
    found = await look(world)
    (told,) = json.loads(json.dumps([as_json(one, world.now) for one in found]))
    assert told["shard"] == 0
    assert told["holder"] is None
    assert told["oldest_due"] == "2026-06-01T12:00:10+00:00"
    assert told["oldest_due_age_s"] == 50.0
    assert told["unsettled"] == 1
    assert table_of(found, world.now).row_count == 1

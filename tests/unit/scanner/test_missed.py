"""After downtime: which missed occurrences of a rule ring, and how it goes on."""

from reminders.model.definition import After, CatchUp, Policies
from reminders.model.record import Status
from tests.unit.lifecycle.world import (
    DAY,
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    World,
    every,
)
from tests.unit.scanner.harness import (
    at_work,
    reasons,
    scanner_of,
)


async def test_after_downtime_the_latest_missed_occurrence_rings_and_the_rule_goes_on(
    world: World,
) -> None:
    """Those before it are on record as superseded: the planned ones each, the rest as one run."""
    name = await world.create(every("FREQ=MINUTELY"))
    world.clock.advance(30 * MINUTE + 30 * SECOND)
    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + 33 * MINUTE + SECOND)
    rung = sorted(ring.rpartition("T")[2] for ring in world.rings)
    assert rung == ["123000", "123100", "123200", "123300"]
    assert await reasons(world, name) == dict.fromkeys(["120000", "120100", "120200"], "superseded")
    (run,) = [row for row in await world.ledger(name) if row.skipped_count]
    assert run.skipped_through is not None
    assert (run.skipped_count, run.skipped_through.occurrence_id[-6:]) == (28, "122900")


async def test_a_rule_faster_than_the_scan_catches_up(world: World) -> None:
    """Every five seconds, after two hours of downtime."""
    await world.create(every("FREQ=SECONDLY;INTERVAL=5"))
    world.clock.advance(2 * HOUR)
    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + 2 * HOUR + 5 * MINUTE)
    last = max(ring.rpartition("T")[2] for ring in world.rings)
    assert last >= "140455"
    assert len(world.rings) < 80


async def test_what_should_not_catch_up_does_not(world: World) -> None:
    """`none`: later than a minute it is skipped."""
    policies = Policies(catch_up=CatchUp.NONE)
    name = await world.create(every("FREQ=MINUTELY;INTERVAL=10"), policies=policies)
    world.clock.advance(5 * MINUTE)
    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + 10 * MINUTE + SECOND)
    assert [ring[-6:] for ring in world.rings] == ["121000"]
    assert await reasons(world, name) == {"120000": "catch_up_none"}


async def test_all_that_is_not_too_old_rings_where_the_policy_says_all(world: World) -> None:
    """Each once; what is older is skipped with its reason."""
    policies = Policies(catch_up=CatchUp.ALL, catch_up_max_age=10 * MINUTE)
    name = await world.create(every("FREQ=MINUTELY;INTERVAL=4"), policies=policies)
    world.clock.advance(21 * MINUTE)
    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + 24 * MINUTE + SECOND)
    assert sorted(ring[-6:] for ring in world.rings) == ["121200", "121600", "122000", "122400"]
    skipped = await reasons(world, name)
    assert skipped == dict.fromkeys(["120000", "120400", "120800"], "too_old")


async def test_a_late_one_shot_rings_however_late(world: World) -> None:
    """Its expiry is the dispatcher's business."""
    name = await world.create(After(delay=SECOND))
    world.clock.advance(DAY)
    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + DAY + 3 * SECOND)
    assert [ring.startswith(name) for ring in world.rings] == [True]


async def test_what_was_claimed_is_not_skipped(world: World) -> None:
    """Its job is under way, however late."""
    name = await world.create(every("FREQ=MINUTELY"))
    world.stalled = True
    async with at_work(world, scanner_of(world), expand=False):
        await world.clock.run_until(NOON + 5 * MINUTE)
        world.stalled = False
        await world.clock.run_until(NOON + 6 * MINUTE)
    assert sorted(ring[-6:] for ring in world.rings) == ["120000", "120100"]
    assert await reasons(world, name) == {}


async def test_a_rule_that_ended_during_the_downtime_ends(world: World) -> None:
    """Its last occurrence is the latest; the minute settles, and the reminder is fired."""
    name = await world.create(every("FREQ=MINUTELY;COUNT=5"))
    world.clock.advance(20 * MINUTE)
    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + 30 * MINUTE)
        assert await world.settled_through() > NOON + 10 * MINUTE
    assert [ring[-6:] for ring in world.rings] == ["120400"]
    assert (await world.reminders.get("ns", name)).status is Status.FIRED

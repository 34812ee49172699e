"""Missed occurrences that surely ring do not wait for the trailing scan, so many a second."""

import pytest
from msgspec.structs import replace

from reminders.lifecycle.planning import body_of
from reminders.model.codec import encode
from reminders.model.definition import CatchUp, Policies
from reminders.model.entry import DueEntry, EntryState
from scanner.lead import CATCHING_UP
from scanner.pace import LONGEST_WAIT
from scanner.reader import Reader
from scanner.timer import Timer
from tests.unit.lifecycle.world import HOUR, MINUTE, SECOND, World, definition, every, running
from tests.unit.scanner.harness import a_lead


async def missed(world: World, policies: Policies) -> DueEntry:
    """One of a rule that should have rung two minutes ago, put here by a late writer."""
    name = await world.create(every("FREQ=MINUTELY"), policies=policies)
    entry = (await world.stored(name)).current[0]
    world.clock.advance(2 * MINUTE)
    body = encode(body_of(definition(every("FREQ=MINUTELY"), policies=policies)))
    return replace(entry, key=replace(entry.key, ring_at=world.now), body=body)


def named(entry: DueEntry, number: int) -> EntryState:
    """Another one like it."""
    entry = replace(entry, key=replace(entry.key, entry_id=f"e{number}"))
    return EntryState(entry=entry, raw=encode(entry))


async def test_those_that_surely_ring_wait_for_their_place_by_the_pace(world: World) -> None:
    """Not for the trailing scan: it found their stretch settled before they were written."""
    entry = await missed(world, Policies(catch_up=CatchUp.ALL))
    timer = Timer(world.clock)
    lead, reader = await a_lead(world, timer), Reader(world.platform, timer)
    for number in range(2 * CATCHING_UP + 2):
        assert reader.hold(lead, named(entry, number), world.now)
    waiting, start = [], world.now
    async with running(timer.run()):
        for second in range(3):
            await world.clock.run_until(start + second * SECOND)
            waiting.append(len(timer))
    assert waiting == [CATCHING_UP + 2, 2, 0]


async def test_what_finds_no_place_within_reach_is_left_to_the_trailing_scan(world: World) -> None:
    """What is rechecked needs none; a second later there is room again."""
    entry = await missed(world, Policies(catch_up=CatchUp.ALL))
    timer = Timer(world.clock)
    lead, reader = await a_lead(world, timer), Reader(world.platform, timer)
    places = CATCHING_UP * (1 + LONGEST_WAIT // SECOND)
    taken = [reader.hold(lead, named(entry, n), world.now) for n in range(places + 2)]
    assert taken == [True] * places + [False] * 2
    assert reader.hold(lead, named(entry, places + 3), world.now, recheck=True)
    assert not reader.hold(lead, named(entry, 0), world.now)
    world.clock.advance(SECOND)
    assert reader.hold(lead, named(entry, places + 4), world.now)


@pytest.mark.parametrize(
    "policies",
    [Policies(), Policies(catch_up=CatchUp.NONE), Policies(catch_up_max_age=MINUTE)],
    ids=["superseded", "none", "too old"],
)
async def test_those_that_may_be_skipped_are_left_to_the_trailing_scan(
    world: World, policies: Policies
) -> None:
    """It puts them on record."""
    entry = await missed(world, policies)
    timer = Timer(world.clock)
    lead, reader = await a_lead(world, timer), Reader(world.platform, timer)
    assert not reader.hold(lead, named(entry, 1), world.now)


async def test_one_whose_body_is_elsewhere_is_left_to_it_as_well(world: World) -> None:
    """Its policy is not at hand."""
    entry = await missed(world, Policies(catch_up=CatchUp.ALL, catch_up_max_age=HOUR))
    timer = Timer(world.clock)
    lead, reader = await a_lead(world, timer), Reader(world.platform, timer)
    assert not reader.hold(lead, named(replace(entry, body=b""), 1), world.now)

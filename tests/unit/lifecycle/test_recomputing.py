"""One reminder under newer zone data: what stays, what moves, and nobody rings twice.

Algiers has had one hour ahead of UTC all year; with the new data it has the rules of Paris, so that
in summer its clocks are an hour further.
"""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from expander.expansion import Expanded, Expansion
from reminders.lifecycle.editions import DataNewer
from reminders.lifecycle.recomputing import Moved
from reminders.model.definition import LocalTime
from reminders.model.entry import Fate
from reminders.ports import ClaimAnswer
from reminders.recurrence import Gap
from tests import zonedata
from tests.unit.lifecycle.model_scanner import ModelScanner
from tests.unit.lifecycle.world import DAY, HOUR, MINUTE, NOON, SECOND, World, every

ZONE = "Africa/Algiers"
ONE_O_CLOCK = datetime(2026, 6, 1, 13)  # noqa: DTZ001 - local; noon UTC by the old data
HOURS = every("FREQ=DAILY;BYHOUR=13,14,15,16,17;COUNT=8", zone=ZONE, start_local=ONE_O_CLOCK)


@pytest.fixture(scope="session")
def new_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The release that changes Algiers."""
    folder = tmp_path_factory.mktemp("zonedata")
    return zonedata.release(folder, "2099h", {ZONE: "Europe/Paris"})


@pytest.fixture(autouse=True)
def old_data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Everything is made with the old data."""
    folder = tmp_path_factory.mktemp("zonedata")
    with zonedata.installed(zonedata.release(folder, "2099g")):
        yield


async def recompute(world: World, reminder_id: str, *, apply: bool = True) -> tuple[Moved, ...]:
    """As a walk calls it."""
    stored = await world.stored(reminder_id)
    return await world.reminders.changes.recompute(stored, apply=apply)


async def ahead(world: World, reminder_id: str) -> list[tuple[str, datetime, int]]:
    """Local intent, instant, ordinal."""
    return [
        (e.occurrence.occurrence_id[-6:], e.key.ring_at, e.occurrence.ordinal)
        for e in (await world.stored(reminder_id)).current
        if e.occurrence
    ]


async def ring(world: World, entry: Any) -> None:
    """Claimed and delivered, in time."""
    world.clock.move_to(max(world.now, entry.key.ring_at))
    assert await world.claim(entry) is ClaimAnswer.CLAIMED
    await world.dispatch()


async def test_a_rule_keeps_its_local_intents_and_goes_on_behind_what_rang(
    world: World, new_data: Path
) -> None:
    """13:00 rang at noon UTC. By the new data that is 14:00, which is due, and rings at once, late
    by a minute; none is left out, none comes twice, and the count goes on.
    """
    reminder_id = await world.create(HOURS)
    first, _ = (await world.stored(reminder_id)).current
    await ring(world, first)
    world.clock.advance(MINUTE)
    with zonedata.installed(new_data):
        moved = await recompute(world, reminder_id)
        assert [(m.occurrence_id[-6:], m.new_instant) for m in moved] == [("140000", NOON)]
        assert await ahead(world, reminder_id) == [
            ("140000", NOON + MINUTE, 2),
            ("150000", NOON + HOUR, 3),
        ]


async def test_what_was_claimed_is_not_moved(world: World, new_data: Path) -> None:
    """Claimed, but not delivered yet: it rings as it was, and the report leaves it out."""
    reminder_id = await world.create(HOURS)
    first, second = (await world.stored(reminder_id)).current
    await world.claim(first)
    with zonedata.installed(new_data):
        moved = await recompute(world, reminder_id)
        assert [m.occurrence_id[-6:] for m in moved] == ["140000"]
        assert [each[0] for each in await ahead(world, reminder_id)][-2:] == ["140000", "150000"]
    state = await world.state(second)
    assert state is not None
    assert state.fate is Fate.VOID
    await world.dispatch()
    assert world.rings == [first.dedupe_id]


async def test_local_times_that_rang_do_not_come_again(world: World, new_data: Path) -> None:
    """The data sets clocks back: 14:00 to 16:00 rang by the one, and 16:00 comes by the other."""
    with zonedata.installed(new_data):
        reminder_id = await world.create(HOURS)
        expansion = Expansion(world.platform, world.reminders)
        for position in range(3):
            live = (await world.stored(reminder_id)).current
            entry = next(e for e in live if e.occurrence and e.occurrence.ordinal == position + 1)
            await ring(world, entry)
            await expansion.expand(entry)
        assert [name[-6:] for name in world.rings] == ["140000", "150000", "160000"]
    world.clock.advance(MINUTE)
    await world.update(reminder_id, policies={"gap": Gap.SHIFT_FORWARD})
    assert await ahead(world, reminder_id) == [
        ("170000", NOON + 4 * HOUR, 4),
        ("130000", NOON + DAY, 5),
    ]


async def test_an_elapsing_rule_keeps_its_instants(world: World, new_data: Path) -> None:
    """Every hour from noon on is every hour from noon on, whatever clocks show."""
    reminder_id = await world.create(every("FREQ=HOURLY", zone=ZONE, start_local=ONE_O_CLOCK))
    before = await world.stored(reminder_id)
    with zonedata.installed(new_data):
        assert await recompute(world, reminder_id) == ()
    assert await world.stored(reminder_id) == before


async def test_a_dry_run_writes_nothing(world: World, new_data: Path) -> None:
    """It tells the same."""
    reminder_id = await world.create(HOURS)
    before = await world.stored(reminder_id)
    world.points.clear()
    with zonedata.installed(new_data):
        told = await recompute(world, reminder_id, apply=False)
        assert set(world.points) <= {"records.read", "due.read"}
        assert await world.stored(reminder_id) == before
        assert await recompute(world, reminder_id) == told
        assert await recompute(world, reminder_id) == ()
    with pytest.raises(DataNewer):
        await recompute(world, reminder_id)


async def test_what_is_paused_or_gone_is_left(world: World, new_data: Path) -> None:
    """A paused one is planned anew when it is resumed, by the data of then."""
    reminder_id = await world.create(HOURS)
    await world.pause(reminder_id)
    stored = await world.stored(reminder_id)
    with zonedata.installed(new_data):
        assert await recompute(world, reminder_id) == ()
        await world.resume(reminder_id)
        assert (await ahead(world, reminder_id))[0] == ("140000", NOON, 1)
        await world.cancel(reminder_id)
        assert await world.reminders.changes.recompute(stored, apply=True) == ()


@pytest.mark.parametrize("claimed", [False, True])
@pytest.mark.parametrize("finisher", ["again", "nobody"])
async def test_a_recompute_that_dies_at_any_step_rings_every_occurrence_once(
    new_data: Path, claimed: bool, finisher: str
) -> None:
    """At its old instant or its new one, never at both."""
    schedule = LocalTime(date="2026-06-01", time="13:05", zone=ZONE)
    step = 0
    while True:
        world = await World.led()
        reminder_id = await world.create(schedule)
        scanner = ModelScanner(world, reminder_id)
        await scanner.read()
        (entry,) = (await world.stored(reminder_id)).current
        if claimed:
            world.clock.move_to(entry.key.ring_at)
            await world.claim(entry)
        with zonedata.installed(new_data):
            died = await world.dies_at(step, recompute(world, reminder_id))
            if finisher == "again":
                await recompute(world, reminder_id)
            for _ in range(20):
                world.clock.advance(30 * SECOND)
                await scanner.everything()
                await scanner.read()
        assert world.rings == [entry.dedupe_id], step
        assert (await world.stored(reminder_id)).change is None
        if not died:
            break
        step += 1
    assert step > 5


async def test_an_expansion_meets_a_recompute(world: World, new_data: Path) -> None:
    """The old version's expansion comes too late, the new one's goes on behind what was moved."""
    reminder_id = await world.create(HOURS)
    first, _ = (await world.stored(reminder_id)).current
    await ring(world, first)
    with zonedata.installed(new_data):
        await recompute(world, reminder_id)
        expansion = Expansion(world.platform, world.reminders)
        assert await expansion.expand(first) is Expanded.OVERTAKEN
        moved, _ = (await world.stored(reminder_id)).current
        await ring(world, moved)
        assert await expansion.expand(moved) is Expanded.WRITTEN
        assert [each[0] for each in await ahead(world, reminder_id)][-2:] == ["150000", "160000"]

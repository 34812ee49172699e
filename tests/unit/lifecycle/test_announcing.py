"""Hints that Redis did not take are told again, as they were dated, and not for ever."""

import asyncio

import pytest

from reminders.errors import CoordinationUnavailable
from reminders.lifecycle import announcing
from reminders.lifecycle.announcing import AGAIN, AT_ONCE, OVER, Announcer
from reminders.model.definition import At
from reminders.model.entry import DueEntry
from tests.unit.lifecycle.test_entry_writer import announced
from tests.unit.lifecycle.world import NOON, SECOND, World


class Cut:
    """Redis is away for hints."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.tries = 0
        world.on_point = self._refuse

    async def _refuse(self, point: str) -> None:
        if point == "announce.before":
            self.tries += 1
            raise CoordinationUnavailable(operation="announce")

    def heal(self) -> None:
        """It is back."""
        self.world.on_point = None


async def entry_of(world: World, ahead: int) -> DueEntry:
    """One that rings so many seconds after noon; its own hint is out of the way."""
    reminder_id = await world.create(At(instant=NOON + ahead * SECOND))
    (entry,) = (await world.stored(reminder_id)).current
    world.coordination.server.data.streams.clear()
    return entry


async def pass_time(world: World, steps: int = 1) -> None:
    """As long as it waits between two tries, so many times."""
    await settle()
    for _ in range(steps):
        world.clock.advance(AGAIN)
        await settle()


async def settle() -> None:
    """Lets everything run that can."""
    for _ in range(50):
        await asyncio.sleep(0)


async def test_a_hint_is_told_when_redis_is_back(world: World) -> None:
    """Dated as at first: what was cancelled since is not believed for it."""
    cut = Cut(world)
    await world.create(At(instant=NOON + 5 * SECOND))
    await pass_time(world, 3)
    assert cut.tries > 3
    assert await announced(world) == []
    cut.heal()
    await pass_time(world)
    ((_, written_from),) = await announced(world)
    assert written_from == NOON
    await pass_time(world, 3)
    assert len(await announced(world)) == 1


async def test_after_its_time_it_is_left_to_the_scan(world: World) -> None:
    """Which has come by, however long Redis stays away."""
    entry = await entry_of(world, 5)
    announcer, cut = Announcer(world.platform), Cut(world)
    await announcer.announce([entry], NOON)
    assert announcer.kept == 1
    await settle()
    world.clock.move_to(NOON + 5 * SECOND + OVER)
    await pass_time(world)
    assert announcer.kept == 0
    cut.heal()
    await pass_time(world, 3)
    assert await announced(world) == []


async def test_what_is_kept_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest go first, and are counted; what is left is told in parts."""
    monkeypatch.setattr(announcing, "MOST_KEPT", AT_ONCE + 1)
    old, new = await entry_of(world, 5), await entry_of(world, 6)
    announcer, cut = Announcer(world.platform), Cut(world)
    await announcer.announce([old, old], NOON)
    await announcer.announce([new] * AT_ONCE, NOON)
    assert (announcer.kept, announcer.dropped) == (AT_ONCE + 1, 1)
    cut.heal()
    await pass_time(world, 2)
    assert announcer.kept == 0
    assert len(await announced(world)) == AT_ONCE + 1


async def test_a_second_outage_is_survived_as_well(world: World) -> None:
    """Whoever tells again ends when nothing is left, and begins anew."""
    announcer = Announcer(world.platform)
    for ahead in (5, 6):
        entry = await entry_of(world, ahead)
        cut = Cut(world)
        await announcer.announce([entry], NOON)
        cut.heal()
        await pass_time(world)
        assert len(await announced(world)) == 1

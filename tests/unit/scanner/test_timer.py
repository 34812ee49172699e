"""The heap that rings copies when their time comes."""

from datetime import datetime, timedelta

from reminders.model.definition import At
from scanner.timer import EARLY_PAUSE, GRAINS, Timer
from tests.unit.lifecycle.world import NOON, SECOND, World, running
from tests.unit.scanner.harness import a_lead, copy_of


class Rung:
    """When each entry rang."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.at: dict[str, datetime] = {}

    async def ready(self, timer: Timer, *ahead: timedelta) -> list[str]:
        """A lead, and copies that many ahead; their ids in the same order."""
        lead = await a_lead(self.world, timer)
        lead.ring = lambda copy: self.at.__setitem__(  # type: ignore[method-assign]
            copy.state.entry.reminder_id, self.world.now
        )
        names = []
        for each in ahead:
            name = await self.world.create(At(instant=NOON + each))
            (entry,) = (await self.world.stored(name)).current
            timer.add(lead, await copy_of(self.world, entry))
            names.append(name)
        self.lead = lead
        return names


async def test_each_rings_at_its_time_and_never_before(world: World) -> None:
    """Whatever the order in which they came, ties included."""
    timer, rung = Timer(world.clock), Rung(world)
    ahead = [SECOND * n for n in (9, 3, 3, 7, 1)]
    names = await rung.ready(timer, *ahead)
    async with running(timer.run()):
        await world.clock.run_until(NOON + SECOND - timedelta(milliseconds=1))
        assert rung.at == {}
        await world.clock.run_until(NOON + 10 * SECOND)
    expected = {name: NOON + each for name, each in zip(names, ahead, strict=True)}
    assert rung.at == expected


async def test_one_that_comes_later_but_is_due_sooner_wakes_it(world: World) -> None:
    """It does not sleep until the first it knew."""
    timer, rung = Timer(world.clock), Rung(world)
    (late,) = await rung.ready(timer, 60 * SECOND)
    async with running(timer.run()):
        await world.clock.until_sleeping(1)
        name = await world.create(At(instant=NOON + SECOND))
        (entry,) = (await world.stored(name)).current
        timer.add(rung.lead, await copy_of(world, entry))
        await world.clock.run_until(NOON + 2 * SECOND)
        assert rung.at == {name: NOON + SECOND}
    assert late not in rung.at


async def test_ahead_of_their_time_if_told_so(world: World) -> None:
    """By so much or a little less: what is due soon after one rings with it. What is late rings at
    once.
    """
    ahead = timedelta(milliseconds=20)
    grain = ahead / GRAINS
    timer, rung = Timer(world.clock, ahead), Rung(world)
    names = await rung.ready(timer, SECOND, SECOND + grain, SECOND + 2 * grain, timedelta(0))
    async with running(timer.run()):
        await world.clock.run_until(NOON + 2 * SECOND)
    first = NOON + SECOND - ahead + grain
    expected = (first, first, first + 2 * grain, NOON)
    assert rung.at == dict(zip(names, expected, strict=True))


async def test_the_copies_of_a_lost_lead_do_not_ring(world: World) -> None:
    """Somebody else holds the shard."""
    timer, rung = Timer(world.clock), Rung(world)
    await rung.ready(timer, SECOND)
    rung.lead.end("lost")
    async with running(timer.run()):
        await world.clock.run_until(NOON + 2 * SECOND)
    assert rung.at == {}
    assert len(timer) == 0


async def test_an_early_one_comes_again_after_a_pause(world: World) -> None:
    """The server's clock is behind ours: no busy loop."""
    timer, rung = Timer(world.clock), Rung(world)
    await rung.ready(timer)
    name = await world.create(At(instant=NOON))
    (entry,) = (await world.stored(name)).current
    timer.again(rung.lead, await copy_of(world, entry))
    async with running(timer.run()):
        await world.clock.run_until(NOON)
        assert rung.at == {}
        await world.clock.run_until(NOON + EARLY_PAUSE)
    assert rung.at == {name: NOON + EARLY_PAUSE}

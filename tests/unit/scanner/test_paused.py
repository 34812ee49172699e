"""A paused reminder under the scanners: silent, settled, and back when it is resumed."""

from reminders.lifecycle import Call
from reminders.model.definition import At
from tests.unit.lifecycle.world import MINUTE, NOON, SECOND, World, behind_the_scenes, every
from tests.unit.scanner.harness import at_work, scanner_of

LATER = (NOON + MINUTE).replace(tzinfo=None)


async def test_what_was_paused_holds_no_watermark_and_rings_nothing(world: World) -> None:
    """The void entries of a one-shot and of a rule are closed when their time comes."""
    once = await world.create(At(instant=NOON + 90 * SECOND))
    rule = await world.create(every("FREQ=MINUTELY", start_local=LATER))
    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + 10 * SECOND)
        with behind_the_scenes():
            for name in (once, rule):
                assert not (await world.pause(name, "x")).was_fired
        await world.clock.run_until(NOON + 10 * MINUTE)
        assert await world.settled_through() >= NOON + 6 * MINUTE
        assert world.rings == []
        with behind_the_scenes():
            for name in (once, rule):
                await world.reminders.resume(Call(namespace="ns", reminder_id=name))
        await world.clock.run_until(NOON + 13 * MINUTE + SECOND)
    minutes = [f"{rule}.20260601T121{each}00" for each in range(4)]
    assert set(world.rings) - set(minutes[:1]) == {f"{once}.20260601T120130Z", *minutes[1:]}
    assert len(world.rings) == len(set(world.rings))

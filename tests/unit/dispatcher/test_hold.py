"""What was handed over ahead of its time is let go at its time, as the reference has it."""

import asyncio
from datetime import UTC, datetime, timedelta

from dispatcher.hold import GRAIN, REFRESH_EVERY, Hold
from reminders.clock import ManualClock
from tests.unit.lifecycle.world import running

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
MS = timedelta(milliseconds=1)


class Door:
    """Several that wait, and when each was let go."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.hold = Hold(clock, at_once=32)
        self.gone: dict[str, datetime] = {}

    def wait(self, name: str, at: datetime, *, exact: bool = True) -> "asyncio.Task[None]":
        """One more."""

        async def until() -> None:
            await self.hold.until(at, exact=exact)
            self.gone[name] = self.clock.now()

        return asyncio.create_task(until())


async def test_each_goes_at_its_time() -> None:
    """Whatever the order in which they came."""
    clock = ManualClock(NOON)
    door = Door(clock)
    async with running(door.hold.run()):
        tasks = [door.wait(str(n), NOON + n * MS) for n in (9, 3, 3, 7, 0)]
        await clock.run_until(NOON + 10 * MS)
        await asyncio.gather(*tasks)
    assert door.gone == {str(n): NOON + n * MS for n in (0, 3, 7, 9)}


async def test_what_need_not_be_exact_goes_with_others() -> None:
    """Never early, at most a grain late, and it makes nobody late who has to be exact."""
    clock = ManualClock(NOON)
    door = Door(clock)
    times = {str(n): NOON + n * MS for n in (1, 2, 3, 12, 40)}
    async with running(door.hold.run()):
        tasks = [door.wait(name, at, exact=False) for name, at in times.items()]
        tasks.append(door.wait("exact", NOON + 2 * MS))
        await clock.run_until(NOON + 100 * MS)
        await asyncio.gather(*tasks)
    assert door.gone.pop("exact") == NOON + 2 * MS
    assert all(times[name] <= at <= times[name] + GRAIN for name, at in door.gone.items())
    assert door.gone["1"] == door.gone["2"] == door.gone["3"]


async def test_by_a_clock_that_is_not_sure_it_goes_later_and_not_early() -> None:
    """It waits until the reference has surely passed its time."""

    class Unsure(ManualClock):
        """The reference never answers."""

        async def refresh(self) -> None:
            """Without an answer."""

    clock = Unsure(NOON)
    clock.unsure = 4 * MS
    door = Door(clock)
    async with running(door.hold.run()):
        task = door.wait("one", NOON + 10 * MS)
        await clock.run_until(NOON + 13 * MS)
        assert door.gone == {}
        await clock.run_until(NOON + 14 * MS)
        await task
    assert door.gone == {"one": NOON + 14 * MS}


async def test_while_something_is_held_the_reference_is_asked_again_and_again() -> None:
    """And not at all while nothing is."""
    asked: list[datetime] = []

    class Asked(ManualClock):
        """Remembers when."""

        async def refresh(self) -> None:
            """Remembers."""
            asked.append(self.now())

    clock = Asked(NOON)
    door = Door(clock)
    async with running(door.hold.run()):
        await clock.run_until(NOON + 500 * MS)
        assert asked == []
        task = door.wait("one", NOON + 620 * MS)
        await clock.run_until(NOON + 5_000 * MS)
        await task
    assert asked == [NOON + 500 * MS + n * REFRESH_EVERY for n in range(3)]


async def test_a_job_that_is_cancelled_is_held_no_more() -> None:
    """Nobody waits for it, and the others go on."""
    clock = ManualClock(NOON)
    door = Door(clock)
    async with running(door.hold.run()):
        first, second = door.wait("first", NOON + MS), door.wait("second", NOON + MS)
        await clock.run_until(NOON)
        first.cancel()
        await clock.run_until(NOON + MS)
        await second
    assert door.gone == {"second": NOON + MS}

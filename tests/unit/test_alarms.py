"""One sleeper for many times."""

import asyncio
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from reminders.alarms import Alarms
from reminders.clock import ManualClock
from tests.unit.lifecycle.world import running

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-1, 6)), max_size=20))
def test_each_rings_once_at_its_time_in_order(added: list[tuple[int, int]]) -> None:
    """Whenever it was added; what comes too late rings at once; ties as they came."""

    async def scene() -> None:
        clock = ManualClock(NOON)
        rung: list[tuple[datetime, int]] = []
        alarms: Alarms[int] = Alarms(clock, lambda which: rung.append((clock.now(), which)))
        async with running(alarms.run()):
            for moment in range(6):
                await clock.run_until(NOON + moment * SECOND)
                for which, (when, at) in enumerate(added):
                    if when == moment:
                        alarms.add(NOON + at * SECOND, which)
                await clock.run_until(clock.now())
            await clock.run_until(NOON + 7 * SECOND)
        expected = sorted(
            (max(when, at), when, at, which) for which, (when, at) in enumerate(added)
        )
        assert rung == [(NOON + ring * SECOND, which) for ring, _, _, which in expected]
        assert len(alarms) == 0

    asyncio.run(scene())


async def test_of_a_crowd_the_first_need_not_wait_for_the_last() -> None:
    """Between two of its parts the loop runs what they woke."""
    clock, seen = ManualClock(NOON), list[int]()
    rung: list[int] = []
    alarms: Alarms[int] = Alarms(clock, rung.append, at_once=32)

    async def look() -> None:
        while len(rung) < 100:
            seen.append(len(rung))
            await asyncio.sleep(0)

    for which in range(100):
        alarms.add(NOON, which)
    async with running(alarms.run()):
        await look()
    assert rung == list(range(100))
    assert {32, 64, 96} <= set(seen)


async def test_with_nothing_to_ring_it_sleeps() -> None:
    """It wakes for nothing, and leaves no sleeper behind."""
    clock = ManualClock(NOON)
    alarms: Alarms[int] = Alarms(clock, lambda _: None)
    async with running(alarms.run()):
        await clock.run_until(NOON)
        assert clock.next_wake is None
        alarms.add(NOON + SECOND, 1)
        await clock.run_until(NOON + 2 * SECOND)
        assert clock.next_wake is None
        assert not [task for task in asyncio.all_tasks() if task.get_name() == "alarms"]


async def test_what_is_due_within_a_grain_rings_with_the_first() -> None:
    """What is late already does not wait for company."""
    clock = ManualClock(NOON)
    rung: list[tuple[datetime, str]] = []
    alarms: Alarms[str] = Alarms(
        clock, lambda which: rung.append((clock.now(), which)), grain=SECOND
    )
    async with running(alarms.run()):
        for at, which in ((10.0, "first"), (10.9, "soon"), (11.1, "later"), (-5.0, "late")):
            alarms.add(NOON + at * SECOND, which)
        await clock.run_until(NOON + 20 * SECOND)
    first, last = NOON + 11 * SECOND, NOON + 12.1 * SECOND
    assert rung == [(NOON, "late"), (first, "first"), (first, "soon"), (last, "later")]


async def test_what_is_due_when_it_is_added_rings_at_once() -> None:
    """Whatever the grain, and whatever waits already."""
    clock = ManualClock(NOON)
    rung: list[str] = []
    alarms: Alarms[str] = Alarms(clock, rung.append, grain=SECOND)
    async with running(alarms.run()):
        alarms.add(NOON + SECOND, "waits")
        await clock.run_until(NOON)
        alarms.add(NOON, "due")
        await clock.run_until(NOON)
        assert rung == ["due"]

"""Clocks without I/O: never early, never back; tests move time by hand."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from reminders.clock import ManualClock, SystemClock

NINE = datetime(2026, 12, 1, 9, tzinfo=UTC)
SECOND = timedelta(seconds=1)


async def test_the_system_clock_sleeps_until_a_time_and_not_shorter() -> None:
    """By its own reading, at or after the time asked for."""
    clock = SystemClock()
    until = clock.now() + timedelta(milliseconds=5)
    await clock.sleep_until(until)
    assert clock.now() >= until
    assert clock.in_bounds()
    await clock.sleep_until(until)


def test_the_system_clock_stands_still_when_the_machine_is_set_back() -> None:
    """It never goes back within a process."""
    clock = SystemClock()
    clock._latest = future = datetime.now(UTC) + timedelta(hours=1)
    assert clock.now() == future
    assert clock.now().utcoffset() == timedelta(0)


async def test_a_manual_clock_moves_only_when_told() -> None:
    """It starts where it is put, and can't go back."""
    clock = ManualClock(NINE)
    await asyncio.sleep(0)
    assert clock.now() == NINE
    clock.advance(SECOND)
    assert clock.now() == NINE + SECOND
    with pytest.raises(ValueError, match="can't go back"):
        clock.move_to(NINE)
    with pytest.raises(ValueError, match="aware"):
        ManualClock(datetime(2026, 12, 1))  # noqa: DTZ001


async def test_sleepers_wake_when_their_time_has_come() -> None:
    """Each at its time, not before; a time that is past returns at once."""
    clock = ManualClock(NINE)
    woken: list[int] = []

    async def sleeper(seconds: int) -> None:
        await clock.sleep_until(NINE + seconds * SECOND)
        woken.append(seconds)

    async with asyncio.TaskGroup() as group:
        for seconds in (3, 1, 2):
            group.create_task(sleeper(seconds), name=f"sleeper {seconds}")
        await clock.until_sleeping(3)
        assert clock.next_wake == NINE + SECOND
        clock.advance(SECOND - timedelta(microseconds=1))
        await asyncio.sleep(0)
        assert len(woken) == 0
        clock.advance(2 * SECOND)
        await asyncio.sleep(0)
        assert tuple(woken) == (1, 2)
        assert clock.sleeping == 1
        clock.advance(SECOND)
    assert tuple(woken) == (1, 2, 3)
    assert clock.sleeping == 0
    await clock.sleep_until(NINE)


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    """It neither counts nor stops the clock."""
    clock = ManualClock(NINE)
    task = asyncio.create_task(clock.sleep_until(NINE + SECOND), name="sleeper")
    await clock.until_sleeping()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert clock.sleeping == 0
    assert clock.next_wake is None
    clock.advance(2 * SECOND)


async def test_run_until_stops_at_every_sleeper() -> None:
    """A loop that sleeps for a minute at a time finds the clock at each of its minutes."""
    clock = ManualClock(NINE)
    seen: list[datetime] = []

    async def tick() -> None:
        for minute in range(1, 4):
            await clock.sleep_until(NINE + timedelta(minutes=minute))
            seen.append(clock.now())

    ticking = asyncio.create_task(tick(), name="ticker")
    await clock.run_until(NINE + timedelta(hours=1))
    await ticking
    assert seen == [NINE + timedelta(minutes=minute) for minute in (1, 2, 3)]
    assert clock.now() == NINE + timedelta(hours=1)


def test_bounds_are_what_the_test_says() -> None:
    """A process whose clock drifts must not act; tests say when."""
    clock = ManualClock()
    assert clock.in_bounds()
    clock.bounds = False
    assert not clock.in_bounds()

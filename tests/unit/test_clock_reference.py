"""The reference clock: sampled with its round trip, carried, never back, and in bounds or not."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.exceptions import ConnectionError as RedisConnectionError

from reminders.coordination import RedisClock
from reminders.coordination.clock import WORST_DRIFT
from reminders.errors import CoordinationUnavailable

NINE = datetime(2026, 12, 1, 9, tzinfo=UTC).timestamp()


class Machine:
    """Monotonic and wall clock, and a server's TIME over a network, moved by hand; seconds."""

    def __init__(self) -> None:
        self.monotonic = 1000.0
        self.drift = 0.0
        """Wall clock minus true time."""
        self.server_error = 0.0
        """Server's TIME minus true time."""
        self.there = self.back = 0.0
        """How long request and answer travel."""
        self.down = False

    @property
    def true_time(self) -> float:
        """What all would say if none erred."""
        return NINE + self.monotonic - 1000.0

    async def time(self) -> tuple[int, int]:
        """The server's TIME, as the client answers it."""
        if self.down:
            raise RedisConnectionError
        self.monotonic += self.there
        now = self.true_time + self.server_error
        self.monotonic += self.back
        return int(now), round(now % 1 * 1e6)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine whose clocks the process reads."""
    machine = Machine()
    monkeypatch.setattr(time, "monotonic", lambda: machine.monotonic)
    monkeypatch.setattr(time, "time", lambda: machine.true_time + machine.drift)
    return machine


def clock_of(machine: Machine) -> RedisClock:
    """On that machine, with its server."""
    return RedisClock(cast("Any", machine))


def reference(machine: Machine) -> float:
    """What the server says now."""
    return machine.true_time + machine.server_error


def error_of(clock: RedisClock, machine: Machine) -> float:
    """How far the clock is off; seconds."""
    return clock.now().timestamp() - machine.true_time


async def test_the_error_is_at_most_half_of_the_shortest_round_trip(machine: Machine) -> None:
    """A slow, lopsided answer does not spoil what a quick one told."""
    clock = clock_of(machine)
    machine.there, machine.back = 0.080, 0.0
    await clock.sample()
    assert abs(error_of(clock, machine)) <= 0.0401
    machine.there, machine.back = 0.001, 0.001
    await clock.sample()
    machine.there, machine.back = 0.0, 0.060
    await clock.sample()
    assert abs(error_of(clock, machine)) < 0.0005


async def test_it_is_carried_between_samples(machine: Machine) -> None:
    """By the monotonic clock, whatever the wall clock does."""
    clock = clock_of(machine)
    await clock.sample()
    machine.monotonic += 100
    machine.drift = 5
    assert abs(error_of(clock, machine)) < 1e-5
    assert clock.drift() == pytest.approx(timedelta(seconds=5), abs=timedelta(milliseconds=1))


async def test_it_never_goes_back(machine: Machine) -> None:
    """A server whose TIME is behind makes it stand still until it is caught up with."""
    clock = clock_of(machine)
    await clock.sample()
    before = clock.now()
    machine.server_error = -0.05
    await clock.sample()
    assert clock.now() == before
    machine.monotonic += 0.04
    assert clock.now() == before
    machine.monotonic += 0.02
    gained = clock.now() - before
    assert gained == pytest.approx(timedelta(milliseconds=10), abs=timedelta(microseconds=5))


async def test_a_correction_forward_is_taken_at_once(machine: Machine) -> None:
    """Old samples of another server are dropped, even if their round trip was shorter."""
    clock = clock_of(machine)
    for _ in range(3):
        await clock.sample()
    machine.server_error, machine.there = 0.05, 0.002
    await clock.sample()
    assert error_of(clock, machine) == pytest.approx(0.05, abs=0.0015)


@pytest.mark.parametrize("error", [-0.5, 0.5, -3600.0])
async def test_a_fail_over_to_a_server_with_another_clock_is_out_of_bounds_at_once(
    machine: Machine, error: float
) -> None:
    """And time does not go back: it stands still, or goes on with the new server's. Once that has
    been set right, or a right one leads, the process is in bounds again.
    """
    clock = clock_of(machine)
    await clock.sample()
    before = clock.now()
    assert clock.in_bounds()
    machine.server_error = error
    await clock.sample()
    assert not clock.in_bounds()
    assert clock.now() >= before
    machine.monotonic += 0.01
    assert clock.now() >= before
    assert not clock.in_bounds()
    machine.server_error = 0.0
    await clock.sample()
    assert clock.in_bounds()
    assert clock.now() >= before


@pytest.mark.parametrize(
    ("drift", "fine"), [(0.09, True), (-0.09, True), (0.11, False), (-0.11, False)]
)
async def test_bounds_are_100_ms_of_drift(machine: Machine, drift: float, fine: bool) -> None:
    """Between this machine's wall clock and the reference."""
    clock = clock_of(machine)
    assert not clock.in_bounds(), "never sampled"
    await clock.sample()
    machine.drift = drift
    assert clock.in_bounds() is fine


async def test_an_old_sample_is_out_of_bounds(machine: Machine) -> None:
    """A fail-over is outlasted; five minutes without the server are too much."""
    clock = clock_of(machine)
    await clock.sample()
    machine.down = True
    machine.monotonic += 60
    with pytest.raises(CoordinationUnavailable):
        await clock.sample()
    assert clock.in_bounds()
    machine.monotonic += 300
    assert not clock.in_bounds()


@given(
    st.lists(
        st.tuples(
            st.floats(0, 2),
            st.floats(0, 0.2),
            st.floats(0, 0.2),
            st.floats(-WORST_DRIFT, WORST_DRIFT),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_what_it_says_at_least_is_never_ahead_of_the_reference(
    steps: list[tuple[float, float, float, float]],
) -> None:
    """However slow and lopsided the answers, and however wrong this machine's clock runs."""

    async def scene() -> None:
        machine = Machine()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(time, "monotonic", lambda: machine.monotonic)
            clock = clock_of(machine)
            await clock.refresh()
            for pause, machine.there, machine.back, runs in steps:
                machine.monotonic += pause * (1 + runs)
                machine.server_error -= pause * runs
                assert clock.at_least().timestamp() <= reference(machine) + 2e-6
                await clock.refresh()
                assert clock.at_least().timestamp() <= reference(machine) + 2e-6
                assert clock.at_least().timestamp() >= reference(machine) - machine.back - 2e-6

    asyncio.run(scene())


async def test_without_an_answer_it_is_carried_on_ever_more_carefully(machine: Machine) -> None:
    """It falls behind by what the clock may have drifted."""
    clock = clock_of(machine)
    await clock.refresh()
    machine.down = True
    machine.monotonic += 10
    await clock.refresh()
    behind_s = reference(machine) - clock.at_least().timestamp()
    assert behind_s == pytest.approx(10 * WORST_DRIFT, abs=1e-4)


async def test_without_a_sample_there_is_no_time(machine: Machine) -> None:
    """Rather none than this machine's own."""
    with pytest.raises(CoordinationUnavailable):
        clock_of(machine).now()


async def test_sleeping_looks_again_when_a_timer_is_early(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event loop may wake a sleeper too soon, and the clock may be corrected meanwhile."""
    naps: list[float] = []

    async def nap(seconds: float) -> None:
        naps.append(seconds)
        machine.monotonic += max(seconds - 0.0004, 0.0001)

    monkeypatch.setattr("reminders.clock.asyncio.sleep", nap)
    clock = clock_of(machine)
    await clock.sample()
    until = clock.now() + timedelta(seconds=2.5)
    await clock.sleep_until(until)
    assert clock.now() >= until
    assert clock.now() - until < timedelta(milliseconds=1)
    assert max(naps) <= 1.0

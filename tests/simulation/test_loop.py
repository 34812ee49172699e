"""The virtual loop: time passes only when nothing else can happen, and the same in every run."""

import asyncio
from collections.abc import Callable

import pytest

from tests.simulation.loop import Stuck, VirtualLoop, virtual_loop
from tests.simulation.process import Host, Process

SECOND_US = 1_000_000


@pytest.fixture
def loop() -> VirtualLoop:
    """At its beginning."""
    return virtual_loop()


@pytest.fixture
def process(loop: VirtualLoop) -> Process:
    """On a host of its own."""
    return Process(loop, Host(loop, "host-0", origin_us=0, epoch_us=0), 1)


def after(loop: VirtualLoop, seconds: float, action: Callable[[], object]) -> None:
    """Does it then."""
    loop.at(int(seconds * SECOND_US), lambda _: action())


def test_a_day_passes_at_once(loop: VirtualLoop) -> None:
    """Sleeping takes no time but the loop's own."""

    async def day() -> float:
        await asyncio.sleep(86_400)
        return loop.time()

    assert loop.run_until(loop.create_task(day())) == 86_400


def test_time_outs_work_as_in_any_loop(loop: VirtualLoop) -> None:
    """`asyncio.timeout` cancels at its time, and not after the block has ended."""

    async def work() -> list[float]:
        ended = []
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await asyncio.sleep(10)
        ended.append(loop.time())
        async with asyncio.timeout(3):
            await asyncio.sleep(1)
        await asyncio.sleep(10)
        return [*ended, loop.time()]

    assert loop.run_until(loop.create_task(work())) == [3, 14]


def test_what_never_comes_is_told(loop: VirtualLoop) -> None:
    """Waiting for nothing is an error and no endless loop."""

    async def wait() -> None:
        await loop.create_future()

    with pytest.raises(Stuck):
        loop.run_until(loop.create_task(wait()))


def test_a_frozen_process_does_nothing_until_it_thaws(loop: VirtualLoop, process: Process) -> None:
    """As after SIGSTOP: its timers ring while it stands still, and it hears of that afterwards."""
    woke: list[float] = []

    async def sleeper() -> None:
        for _ in range(3):
            await asyncio.sleep(1)
            woke.append(loop.time())

    task = process.spawn(sleeper(), "sleeper")
    after(loop, 1.5, lambda: process.freeze(5 * SECOND_US))
    loop.run_until(task)
    assert woke == [1, 6.5, 7.5]


def test_a_killed_process_ends_at_once_even_if_frozen(loop: VirtualLoop, process: Process) -> None:
    """Its tasks unwind, and nothing of it runs any more."""

    async def sleeper() -> None:
        await asyncio.sleep(10)

    task = process.spawn(sleeper(), "sleeper")
    after(loop, 1, lambda: process.freeze(60 * SECOND_US))
    after(loop, 2, process.kill)
    with pytest.raises(asyncio.CancelledError):
        loop.run_until(task)
    assert loop.time() == 2


def test_tasks_are_in_sets_in_the_order_they_were_made(loop: VirtualLoop) -> None:
    """So task groups cancel in the same order in every run, wherever their tasks are in memory."""
    ended: list[int] = []

    async def member(number: int) -> None:
        try:
            await asyncio.sleep(10)
        finally:
            ended.append(number)

    async def group() -> None:
        async with asyncio.TaskGroup() as members:
            for number in range(20):
                members.create_task(member(number))
            await asyncio.sleep(1)
            raise RuntimeError("enough")

    with pytest.raises(ExceptionGroup):
        loop.run_until(loop.create_task(group()))
    assert ended == sorted(ended)
    assert len(ended) == 20


def test_a_hosts_clock_drifts_and_jumps(loop: VirtualLoop) -> None:
    """Its monotonic clock never jumps; both run at its own pace."""
    host = Host(loop, "host-0", origin_us=0, epoch_us=1_000 * SECOND_US)
    host.drift(jump_us=500_000, ppm=1_000)

    async def pass_time() -> None:
        await asyncio.sleep(100)

    loop.run_until(loop.create_task(pass_time()))
    assert host.monotonic() == pytest.approx(100.1)
    assert host.time() == pytest.approx(1_100.6)

"""Hosts with their clocks, and the processes that live on them one after the other."""

import asyncio
from collections.abc import Coroutine
from contextvars import Context, copy_context
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from reminders.coordination.clock import RedisClock
from tests.simulation.loop import PROCESS, Ready, VirtualLoop

if TYPE_CHECKING:
    from tests.simulation.link import Link

MICROSECOND = timedelta(microseconds=1)
LONGEST_NAP_US = 10_000_000
"""Sleepers look again at least so often: their clock may have been corrected."""
RESTART_US = 1_000_000
SAMPLE_EVERY = timedelta(seconds=5)


class Host:
    """A machine: its clocks outlive the processes."""

    def __init__(self, loop: VirtualLoop, name: str, *, origin_us: int, epoch_us: int) -> None:
        self._loop = loop
        self.name = name
        self._since_us = loop.now_us
        self._then_us = float(origin_us)
        self._ppm = 0
        self._wall_us = float(epoch_us - origin_us)
        """Its calendar minus its monotonic clock."""
        self.zone_shift_s = 0
        """Of the zone data that are installed on it: see `zonedata`."""

    def drift(self, *, jump_us: int, ppm: int) -> None:
        """The calendar jumps, and both clocks run differently from now on."""
        self._then_us, self._since_us = self.monotonic_us(), self._loop.now_us
        self._ppm = ppm
        self._wall_us += jump_us

    def set_right(self, true_us: int) -> None:
        """Its calendar shows the true time again, and both clocks run as they should."""
        self.drift(jump_us=0, ppm=0)
        self._wall_us = true_us - self.monotonic_us()

    def monotonic_us(self) -> float:
        """Never goes back."""
        passed = self._loop.now_us - self._since_us
        return self._then_us + passed + passed * self._ppm / 1e6

    def monotonic(self) -> float:
        """As `time.monotonic` on it."""
        return self.monotonic_us() / 1e6

    def time(self) -> float:
        """As `time.time` on it."""
        return (self.monotonic_us() + self._wall_us) / 1e6

    def span_us(self, left: timedelta) -> int:
        """How much true time passes while this clock's passes, rounded up."""
        return int((left // MICROSECOND) / (1 + self._ppm / 1e6)) + 1


class HostTime:
    """Stands for the module `time` in code under test: the time on the host that runs it."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def monotonic(self) -> float:
        """On the host of the process that runs now."""
        process = self._loop.current
        assert isinstance(process, Process)
        return process.host.monotonic()

    def time(self) -> float:
        """As `monotonic`."""
        process = self._loop.current
        assert isinstance(process, Process)
        return process.host.time()


class Process:
    """One life of a service on a host."""

    def __init__(self, loop: VirtualLoop, host: Host, number: int) -> None:
        self.loop = loop
        self.host = host
        self.name = host.name
        self.number = number
        """Of all processes of the run."""
        self.zone_shift_s = host.zone_shift_s
        self.alive = True
        self.frozen = False
        self.held: list[Ready] = []
        self.stop = asyncio.Event()
        self.clock: ProcessClock | None = None
        self.restart_us = RESTART_US
        """How long after its end it starts again."""
        self._roots: list[asyncio.Task[Any]] = []
        self._context: Context = copy_context()
        self._context.run(PROCESS.set, self)

    def __repr__(self) -> str:
        return f"{self.name}#{self.number}"

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> "asyncio.Task[Any]":
        """Runs it in this process, until it dies."""
        task = self.loop.create_task(work, name=name, context=self._context.copy())
        self._roots = [each for each in self._roots if not each.done()]
        self._roots.append(task)
        return task

    def kill(self) -> None:
        """It is gone. Its tasks unwind; whatever they ask of the world is refused."""
        self.alive = False
        self.loop.thaw(self)
        for task in self._roots:
            task.cancel()

    def freeze(self, for_us: int) -> None:
        """It stands still for so long."""
        if self.alive and not self.frozen:
            self.frozen = True
            self.loop.at(self.loop.now_us + for_us, self._go_on)

    def _go_on(self, _: object) -> None:
        if self.alive:
            self.loop.thaw(self)


class ProcessClock(RedisClock):
    """The services' own clock, whose sleepers let the virtual loop wake them."""

    def __init__(self, link: "Link", process: Process) -> None:
        super().__init__(TimeCommand(link), every=SAMPLE_EVERY)  # type: ignore[arg-type]
        self._process = process

    async def sleep_until(self, at: datetime, *, exact: bool = False) -> None:
        """Never early by this clock."""
        del exact
        loop, host = self._process.loop, self._process.host
        while (left := at - self.now()) > timedelta(0):
            awake: asyncio.Future[None] = asyncio.Future(loop=loop)
            loop.at(loop.now_us + min(host.span_us(left), LONGEST_NAP_US), wake, awake)
            await awake


class TimeCommand:
    """As much of a Redis client as the clock uses."""

    def __init__(self, link: "Link") -> None:
        self.time = link.time


def wake(sleeper: "asyncio.Future[None]") -> None:
    """Unless it was cancelled."""
    if not sleeper.done():
        sleeper.set_result(None)

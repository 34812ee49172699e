"""One run's world: loop, servers, hosts, and the services on them; and what a plan does to it."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from dispatcher.service import Dispatcher
from dispatcher.settings import DispatcherSettings
from expander.expansion import Expansion
from expander.service import Expander
from reminders.errors import CoordinationUnavailable, Unavailable
from reminders.lifecycle import Reminders
from reminders.platform import Limits, Platform
from scanner.service import Scanner
from tests.simulation.history import BASE, History, Trouble, Violation
from tests.simulation.judge import Judge
from tests.simulation.link import MS, Link, at_once
from tests.simulation.loop import virtual_loop
from tests.simulation.network import Network
from tests.simulation.plan import Plan
from tests.simulation.process import MICROSECOND, Host, Process, ProcessClock
from tests.simulation.receivers import Receivers
from tests.simulation.subscribing import NAMESPACE, subscriber
from tests.simulation.zonedata import Editions

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SERVICES = ("scheduler", "scanner", "dispatcher", "expander")
WARM_UP_US = 100_000
CLAIM_AHEAD = timedelta(milliseconds=20)


class Service(Protocol):
    """What the services have in common."""

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`."""


class Idle:
    """A scheduler between calls."""

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`."""
        await stop.wait()


class World:
    """Everything of one run."""

    def __init__(self, plan: Plan, *, tracing: bool = False) -> None:
        self.plan = plan
        self.limits = Limits(shards=plan.shards, claim_ahead=CLAIM_AHEAD)
        self.loop = virtual_loop()
        self.history = History()
        if tracing:
            self.history.trace = []
        self.rng = random.Random(f"world {plan.seed}")
        self.network = Network(self.loop, plan.seed, base=BASE, limits=self.limits)
        self.network.crash = self.crash
        self.network.sprung = self._sprung
        self.judge = Judge(self)
        self.receivers = Receivers(self, plan.seed)
        self.processes: dict[str, Process] = {}
        """The living, by name."""
        self.reminders: dict[str, Reminders] = {}
        """The use cases of each scheduler that is up."""
        self.platforms: dict[str, Platform] = {}
        """What each scheduler that is up runs on."""
        self.editions = Editions(self.loop)
        self.clients: list[asyncio.Task[None]] = []
        self.troubled = 0
        """Faults that came to pass."""
        self._numbers = 0
        self._latest_offset_us = 0
        self.hosts = {
            f"{service}-{number}": self._host(f"{service}-{number}")
            for service in SERVICES
            for number in range(plan.instances)
        }

    def _host(self, name: str) -> Host:
        rng = random.Random(f"host {self.plan.seed} {name}")
        epoch_us = (BASE - EPOCH) // MICROSECOND + rng.randrange(-20 * MS, 20 * MS)
        host = Host(self.loop, name, origin_us=rng.randrange(1_000_000_000), epoch_us=epoch_us)
        host.drift(jump_us=0, ppm=rng.randrange(-50, 50))
        return host

    def now(self) -> datetime:
        """True time."""
        return BASE + MICROSECOND * self.loop.now_us

    def reference_now(self) -> datetime:
        """The latest that any reference server has shown."""
        return BASE + MICROSECOND * (self.loop.now_us + self._latest_offset_us)

    def tell(self, who: str, what: str) -> None:
        """A line of the trace."""
        self.history.tell(self.loop.now_us, who, what)

    def subscribe(self, topic: str, count: int) -> None:
        """The topic has so many subscribers."""
        made = [subscriber(NAMESPACE, topic, number, BASE) for number in range(count)]
        at_once(self.network.store.subscribers.put(made))
        self.history.subscribers[topic] = tuple(each.subscriber_id for each in made)

    def all_have_newer_zones(self) -> bool:
        """Every process that is up; whoever starts later has what its host has."""
        return all(process.zone_shift_s for process in self.processes.values())

    # --- processes --------------------------------------------------------------------------------

    def start_all(self) -> None:
        """Everything comes up, not quite at once."""
        for name in self.hosts:
            self.start_at(self.rng.randrange(WARM_UP_US), name)

    def start_at(self, when_us: int, name: str) -> None:
        """It comes up then, unless it is up."""
        self.loop.at(when_us, self._start, name)

    def _start(self, name: str) -> None:
        if name in self.processes:
            return
        self._numbers += 1
        process = Process(self.loop, self.hosts[name], self._numbers)
        self.processes[name] = process
        self.tell(name, "starts")
        process.spawn(self._live(process), name)

    async def _live(self, process: Process) -> None:
        """As `reminders.process` and `reminders.wiring` do it."""
        link = Link(self.network, process)
        clock = process.clock = ProcessClock(link, process)
        try:
            await self._until_answered(clock)
            service = self._build(process, link, clock)
            await service.run(process.stop)
        except Unavailable as error:
            self.tell(process.name, f"ends: {error!r}")
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            self.broken("service-failed", f"{process.name}: {error!r}")
        finally:
            await clock.close()
            self._ended(process)

    async def _until_answered(self, clock: ProcessClock) -> None:
        while True:
            try:
                await clock.start()
            except CoordinationUnavailable:
                await asyncio.sleep(0.5)
            else:
                return

    def _ended(self, process: Process) -> None:
        if process.alive:
            process.alive = False
            self._forget(process)
            self.start_at(self.loop.now_us + process.restart_us, process.name)

    def _forget(self, process: Process) -> None:
        if self.processes.get(process.name) is process:
            del self.processes[process.name]
            self.reminders.pop(process.name, None)
            self.platforms.pop(process.name, None)

    def _build(self, process: Process, link: Link, clock: ProcessClock) -> Service:
        platform = Platform(
            store=link.store, coordination=link.coordination, clock=clock, limits=self.limits
        )
        reminders = Reminders(platform)
        match process.name.split("-")[0]:
            case "scanner":
                return Scanner(platform, reminders.changes.finish)
            case "expander":
                return Expander(platform, Expansion(platform, reminders))
            case "dispatcher":
                return Dispatcher(
                    platform,
                    DispatcherSettings(consumer=repr(process)),
                    reminders.changes.finish,
                    reminders.backfills.turn,
                    {"webhook": self.receivers.sender_for(process)},
                )
            case _:
                self.reminders[process.name] = reminders
                self.platforms[process.name] = platform
                return Idle()

    # --- what plans do ----------------------------------------------------------------------------

    def crash(self, process: Process, down_us: int) -> None:
        """As by `kill -9`."""
        if process.alive:
            self.tell(process.name, "is killed")
            self.trouble("crash", down_us, process.name)
            self._forget(process)
            process.kill()
            self.start_at(self.loop.now_us + down_us, process.name)

    def named(self, prefix: str) -> list[Process]:
        """The living whose names begin so."""
        return [each for name, each in self.processes.items() if name.startswith(prefix)]

    def calendar_us(self) -> int:
        """True time since 1970 by the reference, µs."""
        return (self.network.clock.now() - EPOCH) // MICROSECOND

    def fail_over_clock(self, offset_us: int) -> None:
        """The reference is another server's clock from now on."""
        self.network.clock.set_offset(offset_us)
        self._latest_offset_us = max(self._latest_offset_us, offset_us)

    def _sprung(self, trap: Any, call: Any) -> None:
        what = f"{trap.mode} {call.name}"
        self.tell(call.process.name, f"trap: {what} {trap.span} ms")
        self.trouble(what, trap.span * MS, call.process.name)

    def trouble(self, what: str, for_us: int, process: str = "") -> None:
        """A fault happens."""
        self.troubled += 1
        now_us = self.loop.now_us
        self.history.troubles.append(
            Trouble(start_us=now_us, end_us=now_us + for_us, what=what, process=process)
        )

    def broken(self, rule: str, what: str, reminder_id: str = "") -> None:
        """A promise was broken just now."""
        violation = Violation(rule=rule, at_us=self.loop.now_us, what=what, reminder_id=reminder_id)
        self.history.violations.append(violation)
        self.tell("JUDGE", str(violation))

    # --- the way to the end -----------------------------------------------------------------------

    def run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """The world's own work, outside of any process."""
        try:
            self.loop.run_until(self.loop.create_task(work(), name="world"))
        finally:
            for process in self.processes.values():
                process.kill()
            self.loop.unwind(*self.clients)
        for mishap in self.loop.mishaps:
            self.broken("mishap", mishap)

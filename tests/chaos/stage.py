"""What a scenario plays on: a load, faults with their times, and the judgement at the end."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import redis
from msgspec import Struct, field

from reminders.localstack.ring import Ring
from tests.acceptance.system import until
from tests.chaos.backstage import Backstage
from tests.chaos.client import Client, Notes
from tests.chaos.fleet import Fleet
from tests.chaos.instants import whole_ms
from tests.chaos.receiver import Receiver, Request
from tests.chaos.rules import AFTERMATH_S, Duty, Trouble, Verdict, judge
from tests.chaos.witness import Witness, told

Progress = Callable[[str], None]

DELIVERED_S = 90.0
"""Until what had to come has come, after the last of it was due."""
SETTLED_S = 60.0
"""Until nothing is left to do for it. Jobs of a dead dispatcher are taken over after 14 s."""
QUIET_S = 3.0
"""Waited for repeats at the end, when all else is over."""
LOOK_S = 0.1
REPORT_S = 5.0
SHOWN = 3
"""Examples of each kind of failure."""


class World(Struct, kw_only=True):
    """All that runs."""

    fleet: Fleet
    backstage: Backstage
    receiver: Receiver
    witness: Witness
    redis_url: Callable[[], str]
    """Of the server that is the master now."""
    ring: Ring | None
    """None: there is one Cassandra and one Redis."""
    progress: Progress

    def redis(self) -> "redis.Redis":
        """For an operator's mistakes."""
        return redis.Redis.from_url(self.redis_url(), socket_timeout=5)


class Stage(Struct, kw_only=True):
    """One scenario."""

    world: World
    name: str
    tag: str
    client: Client
    notes: Notes
    troubles: list[Trouble] = field(default_factory=list)
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    last_due: datetime = field(default_factory=lambda: datetime.now(UTC))
    callers: list[threading.Thread] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    """What scenarios find wrong beyond the rules."""

    @property
    def fleet(self) -> Fleet:
        """The services."""
        return self.world.fleet

    def say(self, line: str) -> None:
        """Progress."""
        self.world.progress(f"  {line}")

    def must(self, holds: object, what: str) -> None:
        """A demand of this scenario."""
        if not holds:
            self.failures.append(what)

    # --- load -------------------------------------------------------------------------------------

    def load(
        self, seconds: float, *, ahead: float = 25, live: float = 5, lead_s: float = 3.0
    ) -> None:
        """So many a second that are created now and ring evenly from `lead_s` on, for so long; and
        `live` a second that are created meanwhile, 1 to 3 s before their time.
        """
        numbers = self.notes.numbers(int(ahead * seconds))
        start = datetime.now(UTC) + timedelta(seconds=lead_s)
        at = [start + timedelta(seconds=i / ahead) for i in range(len(numbers))]
        self.create(at, numbers)
        if live:
            self.meanwhile("live", lambda: self._live(seconds, live))
        left_s = (start - datetime.now(UTC)).total_seconds()
        self.say(f"{len(numbers)} created, {live * seconds:.0f} more to come")
        time.sleep(max(left_s, 0))

    def create(self, at: Sequence[datetime], numbers: Sequence[int] = (), group: str = "") -> range:
        """One-shots; their numbers. Returns when they are acknowledged, or never will be."""
        names = numbers or self.notes.numbers(len(at))
        self.client.create(
            [
                self.client.request(n, self.due(t), group=group)
                for n, t in zip(names, at, strict=True)
            ]
        )
        assert isinstance(names, range)
        return names

    def due(self, at: datetime) -> datetime:
        """Something will ring then."""
        self.last_due = max(self.last_due, at)
        return whole_ms(at)

    def _live(self, seconds: float, rate: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            (number,) = self.notes.numbers(1)
            at = datetime.now(UTC) + timedelta(seconds=1 + number % 5 / 2)
            self.client.create([self.client.request(number, self.due(at))])
            time.sleep(1 / rate)

    def meanwhile(self, name: str, work: Callable[[], object]) -> None:
        """In a thread; its failure is the scenario's."""

        def run() -> None:
            try:
                work()
            except Exception as failure:  # noqa: BLE001 (shown with the scenario)
                self.failures.append(f"{name}: {type(failure).__name__}: {failure}")

        thread = threading.Thread(target=run, name=name, daemon=True)
        self.callers.append(thread)
        thread.start()

    def arrived(self) -> Sequence[Request]:
        """What came so far."""
        return self.world.receiver.at(self.tag)

    def until_arrived(self, count: int) -> None:
        """Until so many requests came."""
        until(lambda: len(self.arrived()) >= count, f"{count} deliveries", DELIVERED_S)

    # --- faults -----------------------------------------------------------------------------------

    @contextmanager
    def trouble(self, what: str, *, explains: bool) -> Iterator[None]:
        """A fault that lasts as long as the block."""
        start_s = time.time()
        self.say(f"{what} …")
        try:
            yield
        finally:
            end_s = time.time()
            self.troubles.append(
                Trouble(what=what, start_s=start_s, end_s=end_s, explains=explains)
            )
            self.say(f"{what}: over after {end_s - start_s:.1f} s")

    def redis(self, *command: Any) -> Any:
        """To the master, as an operator."""
        with self.world.redis() as client:
            return client.execute_command(*command)

    # --- the end ----------------------------------------------------------------------------------

    def finish(self) -> Verdict:
        """Waits for the end of it all, and judges."""
        self.await_deliveries()
        self._await_settled()
        if any(trouble.explains for trouble in self.troubles):
            last = max(trouble.end_s for trouble in self.troubles)
            time.sleep(max(0.0, min(last + AFTERMATH_S - time.time(), AFTERMATH_S)))
        time.sleep(QUIET_S)
        with self.notes.lock:
            verdict = judge(
                list(self.notes.expected.values()),
                self.notes.unanswered,
                self.arrived(),
                self.troubles,
            )
        passed = self.world.backstage.run(self.world.witness.passed_open())
        verdict.broken += [f"the watermark passed an open entry: {each}" for each in passed]
        verdict.broken += self.fleet.dead()
        verdict.broken += self.failures
        return verdict

    def await_deliveries(self) -> None:
        """Until everybody has created what they wanted, and what must come has come."""
        for thread in self.callers:
            thread.join(DELIVERED_S)
            self.must(not thread.is_alive(), f"{thread.name} goes on after {DELIVERED_S} s")
        deadline = max(self.last_due.timestamp(), time.time()) + DELIVERED_S
        report_at = time.time() + REPORT_S
        while missing := self._missing():
            now = time.time()
            if now > deadline:
                return  # `judge` names them
            if now > report_at:
                self.say(f"{len(self.arrived())} came, {missing} are waited for")
                report_at = now + REPORT_S
            time.sleep(LOOK_S)

    def _missing(self) -> int:
        came = {(one.reminder_id, one.occurrence_id) for one in self.arrived()}
        with self.notes.lock:
            return sum(
                duty is Duty.MUST and (each.reminder_id, name) not in came
                for each in self.notes.expected.values()
                for name, duty in each.duties.items()
            )

    def _await_settled(self) -> None:
        since, before = self.began, self.last_due + timedelta(seconds=1)
        deadline = time.monotonic() + SETTLED_S
        while True:
            left = self.world.backstage.run(self.world.witness.open_entries(since, before))
            if not left:
                return
            if time.monotonic() > deadline:
                self.failures += [f"{len(left)} are not settled, such as"]
                self.failures += [told(state) for state in left[:SHOWN]]
                return
            time.sleep(1)

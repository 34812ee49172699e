"""What lies between processes and servers, and what is done to it."""

import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from reminders.errors import StoreUnavailable, TocsinError
from reminders.memory.coordination import MemoryCoordination
from reminders.memory.store import MemoryStore
from reminders.platform import Limits
from tests.simulation.link import (
    BLOCKING,
    MS,
    REPEATABLE,
    TIME_OUT_US,
    Call,
    drive,
    without_waiting,
)
from tests.simulation.loop import VirtualLoop
from tests.simulation.plan import Interference
from tests.simulation.process import MICROSECOND, Process
from tests.simulation.reference import ServerClock

LATENCIES = 997
"""How many are drawn; they are used in turn."""
PARTIAL_POINTS = ("records.create.due", "records.create.users")

Observer = Callable[[Call], None]


class Network:
    """Carries calls, late or not at all, and lets them take effect on the servers."""

    def __init__(self, loop: VirtualLoop, seed: int, *, base: datetime, limits: Limits) -> None:
        self.loop = loop
        self.clock = ServerClock(loop, base)
        self.store = MemoryStore(shards=limits.shards, started_at=base)
        self.coordination = MemoryCoordination(
            self.clock,
            lookahead=limits.lookahead,
            margin=limits.margin,
            lease_life=limits.lease_life,
        )
        self.coordination.server.on_add = self._added
        self.before: dict[str, Observer] = {}
        """By name of the call: told before it takes effect."""
        self.after: dict[str, Observer] = {}
        self.listen: Observer | None = None
        """Told of every call, for the trace."""
        self.calls = 0
        self.traps: list[Interference] = []
        self.sprung: Callable[[Interference, Call], None] = lambda _trap, _call: None
        self.crash: Callable[[Process, int], None] = lambda _process, _down: None
        self.cuts: list[tuple[str, str]] = []
        """(prefix of a process's name, server)."""
        self.slow_us = {"redis": 0, "store": 0}
        self._waiting: list[Call] = []
        self._poked = False
        rng = random.Random(f"latency {seed}")
        self._rng = rng
        self._latency_us = {
            "redis": [int(100 + rng.expovariate(1 / 300)) for _ in range(LATENCIES)],
            "store": [int(400 + rng.expovariate(1 / 2000)) for _ in range(LATENCIES)],
        }

    async def redis_time(self) -> tuple[int, int]:
        """The command TIME."""
        since = (self.clock.now() - datetime(1970, 1, 1, tzinfo=UTC)) // MICROSECOND
        return divmod(since, 1_000_000)

    # --- a call's way -----------------------------------------------------------------------------

    def send(self, call: Call) -> None:
        """It sets out."""
        self.calls += 1
        if self.traps:
            call.trap = self._caught(call)
            if call.trap is not None and self._spring(call, call.trap):
                return
        self._depart(call, 0)

    def _depart(self, call: Call, delay_us: int) -> None:
        way_us = delay_us + self._latency(call.server)
        if way_us > TIME_OUT_US[call.server] // 4:
            self._fail_later(call, TIME_OUT_US[call.server])
        self.loop.at(self.loop.now_us + way_us, self._arrive, call)

    def _latency(self, server: str) -> int:
        drawn = self._latency_us[server][self.calls % LATENCIES]
        slow_us = self.slow_us[server]
        return drawn + self._rng.randrange(slow_us) if slow_us else drawn

    def _arrive(self, call: Call) -> None:
        if self.cuts and self._cut(call):
            self._fail_later(call, TIME_OUT_US[call.server])
            return
        if call.name in BLOCKING:
            self._look(without_waiting(call))
            return
        self._take_effect(call)
        self._answer(call)

    def _take_effect(self, call: Call) -> None:
        observer = self.before.get(call.name)
        if observer is not None:
            observer(call)
        self.clock.caller = call.process
        try:
            call.result = drive(call)
        except TocsinError as error:
            call.result = error
        observer = self.after.get(call.name)
        if observer is not None:
            observer(call)
        if self.listen is not None:
            self.listen(call)
        if call.trap is not None:
            self._after_effect(call, call.trap)

    def _answer(self, call: Call) -> None:
        if call.trap is not None and call.trap.mode == "unheard":
            self._fail_later(call, TIME_OUT_US[call.server])
            return
        self.loop.at(self.loop.now_us + self._latency(call.server), self._heard, call)

    def _heard(self, call: Call) -> None:
        if call.answer.done():
            return
        if self.cuts and self._cut(call):
            self._fail_later(call, TIME_OUT_US[call.server])
        elif isinstance(call.result, TocsinError):
            call.answer.set_exception(call.result)
        else:
            call.answer.set_result(call.result)

    def _fail_later(self, call: Call, after_us: int) -> None:
        self.loop.at(self.loop.now_us + after_us, self.fail, call)

    @staticmethod
    def fail(call: Call) -> None:
        """The caller gives up."""
        if not call.answer.done():
            call.answer.set_exception(call.error())

    # --- blocking reads ---------------------------------------------------------------------------

    def _look(self, call: Call) -> None:
        """Takes what is there, or waits for it."""
        if not call.process.alive or call.answer.done():
            return  # its connection is gone
        self._take_effect(call)
        if call.result or self.loop.now_us >= call.until_us:
            self._answer(call)
        else:
            self._waiting.append(call)
            self.loop.at(call.until_us, self._time_out, call)

    def _time_out(self, call: Call) -> None:
        for place, each in enumerate(self._waiting):
            if each is call:
                del self._waiting[place]
                self._answer(call)
                return

    def _added(self, _stream: str) -> None:
        if not self._poked and self._waiting:
            self._poked = True
            self.loop.at(self.loop.now_us, self._look_again)

    def _look_again(self, _: object) -> None:
        self._poked = False
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            if not call.process.alive or call.answer.done():
                continue
            self._take_effect(call)
            if call.result:
                self._answer(call)
            else:
                self._waiting.append(call)

    def disconnect(self) -> None:
        """Every blocked client loses its connection, as at a fail-over."""
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            self._fail_later(call, MS)

    # --- interference -----------------------------------------------------------------------------

    def _cut(self, call: Call) -> bool:
        return any(
            call.server == server and call.process.name.startswith(prefix)
            for prefix, server in self.cuts
        )

    def _caught(self, call: Call) -> Interference | None:
        for place, trap in enumerate(self.traps):
            if call.name.startswith(trap.call) and call.process.name.startswith(trap.process):
                if trap.skip:
                    self.traps[place] = replace(trap, skip=trap.skip - 1)
                    return None
                del self.traps[place]
                return trap
        return None

    def _spring(self, call: Call, trap: Interference) -> bool:
        """Whether the call does not go its ordinary way."""
        self.sprung(trap, call)
        span_us = trap.span * MS
        match trap.mode:
            case "lost":
                self._fail_later(call, TIME_OUT_US[call.server])
            case "refused":
                self._fail_later(call, MS)
            case "late":
                self._depart(call, span_us)
            case "crash":
                self.crash(call.process, span_us)
            case "pause":
                call.process.freeze(span_us)
                self.loop.at(self.loop.now_us + span_us, lambda _: self._depart(call, 0))
            case "partial" if call.name == "records.create":
                call.method = partially(call.method, PARTIAL_POINTS[trap.span % 2])
                return False
            case _:
                return False
        return True

    def _after_effect(self, call: Call, trap: Interference) -> None:
        span_us = trap.span * MS
        if trap.mode == "crash_after":
            self.crash(call.process, span_us)
        elif trap.mode == "pause_after":
            call.process.freeze(span_us)
        elif trap.mode == "twice" and call.name in REPEATABLE:
            self.loop.at(self.loop.now_us + span_us, drive, call)


def partially(create: Callable[..., Any], point: str) -> Callable[..., Any]:
    """`Records.create` that stops at a point between its tables."""

    async def stops(*arguments: Any) -> None:
        records = create.__self__  # type: ignore[attr-defined]

        async def hook(reached: str) -> None:
            if reached == point:
                raise StoreUnavailable(operation=point)

        records._hook = hook
        try:
            await create(*arguments)
        finally:
            records._hook = None

    return stops

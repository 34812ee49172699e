"""Faults planted in the code on purpose: the simulation must find each of them.

Each breaks one rule of DESIGN in the code that keeps it; rules of Redis's scripts are broken in
their twin in memory. `with planted("void-ignored"):` a run goes wrong sooner or later; `within`
says how many seeds it takes at most, from seed 0 on.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

import scanner.settler
from dispatcher.hold import Hold
from dispatcher.requeue import Requeue, following_entry
from dispatcher.retry import backoff
from dispatcher.service import Dispatcher
from dispatcher.work import Work
from expander.expansion import Expansion
from reminders.coordination import RedisClock
from reminders.lifecycle import triggering
from reminders.lifecycle.changing import Changes
from reminders.lifecycle.occurrences import instant_ms, jittered, record_series
from reminders.lifecycle.replanning import Replanner
from reminders.lifecycle.triggering import Triggers
from reminders.lifecycle.writing import EntryWriter
from reminders.memory.coordination.claims import MemoryClaims
from reminders.memory.coordination.server import Server
from reminders.memory.store.due import MemoryDueEntries
from reminders.model.entry import EntryState, Fate
from reminders.ports import ClaimAnswer, Copy, Counts, LeaseAnswer
from reminders.reminder_id import new_reminder_id
from scanner.settler import Settler
from scanner.trail import Trail
from tests.simulation.generate import generate
from tests.simulation.patches import replaced
from tests.simulation.reference import ServerClock
from tests.simulation.run import run

Place = tuple[object, str, object]
"""What is replaced: owner, attribute, by what."""


class Planted(Struct, frozen=True, kw_only=True):
    """One broken rule."""

    places: Callable[[], list[Place]]
    hunted_from: int
    """Where the test suite begins: at a seed that has found it."""
    within: int
    """So many seeds, from 0 on, are enough to find it."""


@contextmanager
def planted(name: str) -> Iterator[None]:
    """The rule of that name is broken for as long as this lasts."""
    with replaced(*PLANTED[name].places()):
        yield


def found_at(name: str, seeds: Iterable[int]) -> int | None:
    """The first of these seeds whose run breaks."""
    with planted(name):
        for seed in seeds:
            if run(generate(seed)).violations:
                return seed
    return None


# --- Redis ----------------------------------------------------------------------------------------


def _no_lease_check() -> list[Place]:
    def standing(self: Server, shard: int, _token: str) -> LeaseAnswer:
        return LeaseAnswer.HELD if self.home_since(shard) is not None else LeaseAnswer.MOVED

    return [(Server, "standing", standing)]


def _void_ignored() -> list[Place]:
    judged = MemoryClaims._may_claim

    def may_claim(self: MemoryClaims, shard: int, copy: Copy) -> ClaimAnswer:
        voids, self._server.data.voids = self._server.data.voids, {}
        try:
            return judged(self, shard, copy)
        finally:
            self._server.data.voids = voids

    return [(MemoryClaims, "_may_claim", may_claim)]


def _group_fence_ignored() -> list[Place]:
    return [(Server, "fence", lambda *_: None)]


def _local_clock() -> list[Place]:
    judged = MemoryClaims._claim_one

    def claim_one(self: MemoryClaims, shard: int, copy: Copy, ahead: timedelta) -> ClaimAnswer:
        reference = self._server.clock
        assert isinstance(reference, ServerClock)
        self._server.clock = reference.of_the_caller()
        try:
            return judged(self, shard, copy, ahead)
        finally:
            self._server.clock = reference

    return [(MemoryClaims, "_claim_one", claim_one)]


def _not_held() -> list[Place]:
    async def until(*_: object, exact: bool) -> None:
        """At once."""
        del exact

    return [(Hold, "until", until)]


def _held_by_the_local_clock() -> list[Place]:
    return [(RedisClock, "at_least", RedisClock.now)]


def _run_id_not_compared() -> list[Place]:
    def home(self: Server, shard: int) -> tuple[datetime | None, datetime | None]:
        _, since, known = self.data.homes.get(shard, (0, None, None))
        return since, known

    return [(Server, "_home", home)]


def _fired_for_a_second() -> list[Place]:
    made = MemoryClaims.__init__

    def init(self: MemoryClaims, *arguments: Any, **options: Any) -> None:
        made(self, *arguments, **{**options, "fired_life": timedelta(seconds=1)})

    return [(MemoryClaims, "__init__", init)]


# --- scanner --------------------------------------------------------------------------------------


def _late_scan_skipped() -> list[Place]:
    async def look(*_: object) -> bool:
        return True

    return [(Settler, "_look", look)]


def _no_grace() -> list[Place]:
    return [(scanner.settler, "Trail", lambda watermark, _: Trail(watermark, timedelta(0)))]


def _expanded_ignored() -> list[Place]:
    return [
        (Counts, "settled", property(lambda self: self.handled == self.entries)),
        (EntryState, "settled", property(lambda self: self.handled_at is not None)),
    ]


# --- dispatcher -----------------------------------------------------------------------------------


def _recheck_skipped() -> list[Place]:
    return [(Work, "given_before", property(lambda self: self.job.deliveries > 1))]


def _acknowledged_first() -> list[Place]:
    runs = Dispatcher._run

    async def run(self: Dispatcher, job: Any) -> None:
        self._acknowledger.add(job)
        await runs(self, job)

    return [(Dispatcher, "_run", run)]


def _retry_drawn_anew() -> list[Place]:
    async def again(self: Requeue, ends: Any) -> None:
        for leg, row in ends:
            if row.next_attempt_at is not None:
                drawn = self._clock.now() + backoff(leg.delivery_key, row.attempt_count)
                await self._put([following_entry(leg, row, instant_ms(drawn))])

    return [(Requeue, "again", again)]


# --- changes and expansions -----------------------------------------------------------------------


def _blind_late_writer() -> list[Place]:
    return [(EntryWriter, "_late", lambda *_: False)]


def _expands_from_now() -> list[Place]:
    async def following(self: Expansion, record: Any, _live: Any) -> Any:
        series = record_series(record)
        planned = series.next(series.first_after(self._clock.now()), 2)
        occurrences = jittered(record, planned, None)
        return self._planner.entries(record, occurrences[:1], occurrences[1:])

    return [(Expansion, "_following", following)]


def _no_finish_entry() -> list[Place]:
    async def put_finish(*_: object) -> bool:
        return True

    return [(Changes, "_put_finish", put_finish)]


def _claimed_fate_unwritten() -> list[Place]:
    marks = MemoryDueEntries.mark

    async def mark(self: MemoryDueEntries, keys: Any, fate: Fate, *, stamp: int) -> None:
        if fate is not Fate.CLAIMED:
            await marks(self, keys, fate, stamp=stamp)

    return [(MemoryDueEntries, "mark", mark)]


def _trigger_drawn_anew() -> list[Place]:
    async def asked(self: Triggers, *_: object) -> triggering.Asked:
        at = instant_ms(self._clock.now())
        return triggering.Asked(name=new_reminder_id(), at=at)

    return [(Triggers, "_asked", asked)]


def _moved_though_rung() -> list[Place]:
    return [(Replanner, "onward", lambda _self, _record, planned, _emitted, **_: planned)]


PLANTED = {
    "no-lease-check": Planted(places=_no_lease_check, hunted_from=1, within=60),
    "void-ignored": Planted(places=_void_ignored, hunted_from=0, within=20),
    "group-fence-ignored": Planted(places=_group_fence_ignored, hunted_from=3, within=100),
    "local-clock": Planted(places=_local_clock, hunted_from=1, within=20),
    "not-held": Planted(places=_not_held, hunted_from=0, within=20),
    "held-by-the-local-clock": Planted(places=_held_by_the_local_clock, hunted_from=0, within=60),
    "late-scan-skipped": Planted(places=_late_scan_skipped, hunted_from=0, within=40),
    "recheck-skipped": Planted(places=_recheck_skipped, hunted_from=5, within=60),
    "acknowledged-first": Planted(places=_acknowledged_first, hunted_from=0, within=20),
    "no-grace": Planted(places=_no_grace, hunted_from=27, within=200),
    "expanded-ignored": Planted(places=_expanded_ignored, hunted_from=38, within=150),
    "blind-late-writer": Planted(places=_blind_late_writer, hunted_from=125, within=300),
    "run-id-not-compared": Planted(places=_run_id_not_compared, hunted_from=3, within=60),
    "fired-for-a-second": Planted(places=_fired_for_a_second, hunted_from=0, within=40),
    "expands-from-now": Planted(places=_expands_from_now, hunted_from=0, within=20),
    "no-finish-entry": Planted(places=_no_finish_entry, hunted_from=4, within=200),
    "claimed-fate-unwritten": Planted(places=_claimed_fate_unwritten, hunted_from=11, within=100),
    "trigger-drawn-anew": Planted(places=_trigger_drawn_anew, hunted_from=118, within=200),
    "moved-though-rung": Planted(places=_moved_though_rung, hunted_from=48, within=300),
    "retry-drawn-anew": Planted(places=_retry_drawn_anew, hunted_from=17, within=100),
}

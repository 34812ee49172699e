"""The domain on memory adapters, with time moved by hand, faults at every step (`faults`), and a
dispatcher that only remembers what rang.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from reminders.clock import ManualClock
from reminders.errors import TocsinError
from reminders.lifecycle import Call, Created, CreateRequest, Reminders
from reminders.memory.coordination import MemoryCoordination
from reminders.memory.store import MemoryStore
from reminders.model.codec import decode_entry
from reminders.model.definition import (
    At,
    Channel,
    Definition,
    Log,
    Recurring,
    Schedule,
)
from reminders.model.entry import DueEntry, EntryState, Kind
from reminders.model.ledger import DeliveryStatus, LedgerRow
from reminders.model.record import Stored
from reminders.platform import Limits, Platform
from reminders.ports import ClaimAnswer, Copy, LeaseAnswer
from tests.unit.lifecycle.faults import Crash, Faults, behind_the_scenes

__all__ = [
    "DAY",
    "HOUR",
    "MINUTE",
    "NOON",
    "SECOND",
    "Crash",
    "World",
    "behind_the_scenes",
    "created",
    "definition",
    "every",
    "running",
]

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def definition(schedule: Schedule | None = None, **changes: Any) -> Definition:
    """Something to ring: in an hour, unless told otherwise."""
    return Definition(
        user_id=changes.pop("user_id", "ann"),
        schedule=schedule or At(instant=NOON + HOUR),
        channels=changes.pop("channels", (Channel(channel_id="log", target=Log()),)),
        **changes,
    )


def every(rule: str, **changes: Any) -> Recurring:
    """A rule in UTC from noon on."""
    start = changes.pop("start_local", NOON.replace(tzinfo=None))
    zone = changes.pop("zone", "UTC")
    return Recurring(rrule=rule, start_local=start, zone=zone, **changes)


class World(Faults):
    """One keyspace, one Redis, and whatever runs on them."""

    def __init__(
        self,
        *,
        shards: int = 1,
        start: datetime = NOON,
        lease_life: timedelta = 3 * SECOND,
        claim_ahead: timedelta = timedelta(0),
    ) -> None:
        super().__init__()
        self.clock = ManualClock(start)
        self.limits = Limits(shards=shards, lease_life=lease_life, claim_ahead=claim_ahead)
        self.store = MemoryStore(shards=shards, started_at=start, hook=self.passing)
        self.coordination = MemoryCoordination(
            self.clock,
            lookahead=self.limits.lookahead,
            margin=self.limits.margin,
            lease_life=self.limits.lease_life,
            on_point=self.passing,
        )
        self.platform = Platform(
            store=self.store,
            coordination=self.coordination,
            clock=self.clock,
            limits=self.limits,
        )
        self.reminders = Reminders(self.platform)
        self.rung: dict[str, list[datetime]] = defaultdict(list)
        """By dedupe id: when somebody was reminded."""
        self.stalled = False
        """The dispatcher takes no jobs."""

    @classmethod
    async def led(cls, *, shards: int = 1, start: datetime = NOON) -> "World":
        """One whose shards the test has led for a minute: Redis is known to remember claims."""
        world = cls(shards=shards, start=start - MINUTE, lease_life=1000 * DAY)
        for shard in range(shards):
            await world.take_lease(shard)
        world.clock.move_to(start)
        return world

    @property
    def now(self) -> datetime:
        """By the reference clock."""
        return self.clock.now()

    # --- making things ------------------------------------------------------------------------

    async def create(self, schedule: Schedule | None = None, **changes: Any) -> str:
        """One reminder; its id."""
        keys = {name: changes.pop(name) for name in ("request_id",) if name in changes}
        (result,) = await self.reminders.create(
            [CreateRequest(namespace="ns", definition=definition(schedule, **changes), **keys)]
        )
        return created(result).view.record.reminder_id

    async def cancel(self, reminder_id: str, **options: Any) -> Any:
        """As the edge calls it."""
        options = {"expected_version": None, "request_id": None} | options
        return await self.reminders.cancel("ns", reminder_id, **options)

    async def reschedule(self, reminder_id: str, schedule: Schedule, **options: Any) -> Any:
        """As the edge calls it."""
        options = {"expected_version": None, "request_id": None} | options
        return await self.reminders.reschedule("ns", reminder_id, schedule, **options)

    async def update(
        self, reminder_id: str, *, request_id: str | None = None, **changes: Any
    ) -> Any:
        """As the edge calls it: fields of the definition, those of `policies` one by one."""
        policies = changes.pop("policies", {})

        def edit(old: Definition) -> Definition:
            new = msgspec.structs.replace(old.policies, **policies)
            return msgspec.structs.replace(old, policies=new, **changes)

        return await self.reminders.update(
            Call(namespace="ns", reminder_id=reminder_id, request_id=request_id),
            edit,
            content=repr((sorted(changes.items()), sorted(policies.items()))).encode(),
            reschedules="schedule" in changes,
        )

    async def pause(self, reminder_id: str, reason: str = "", **options: Any) -> Any:
        """As the edge calls it."""
        call = Call(namespace="ns", reminder_id=reminder_id, **options)
        return await self.reminders.pause(call, reason)

    async def resume(self, reminder_id: str, **options: Any) -> Any:
        """As the edge calls it."""
        return await self.reminders.resume(Call(namespace="ns", reminder_id=reminder_id, **options))

    # --- looking --------------------------------------------------------------------------------

    async def stored(self, reminder_id: str) -> Stored:
        """The record as it is."""
        with behind_the_scenes():
            stored = await self.store.records.read(reminder_id)
        assert stored is not None
        return stored

    async def state(self, entry: DueEntry) -> EntryState | None:
        """A due entry as it is."""
        with behind_the_scenes():
            return await self.store.due.read(entry.key)

    async def settled_through(self, shard: int = 0) -> datetime:
        """The watermark."""
        with behind_the_scenes():
            return (await self.store.progress.read())[shard]

    async def ledger(self, reminder_id: str) -> list[LedgerRow]:
        """All of it, newest first."""
        with behind_the_scenes():
            return await self.store.ledger.page(reminder_id, limit=1000)

    async def entries(self, reminder_id: str, since: datetime = NOON) -> list[EntryState]:
        """All due entries of a reminder within some days, whatever became of them."""
        found = []
        with behind_the_scenes():
            for (minute, shard), _ in sorted(self.store.due._partitions.items()):
                states = await self.store.due.slice(minute, shard, limit=100_000)
                found += [s for s in states if s.entry.reminder_id == reminder_id]
        return [state for state in found if state.entry.key.ring_at >= since]

    @property
    def rings(self) -> list[str]:
        """The dedupe ids of what rang, once for each time."""
        return [name for name, times in self.rung.items() for _ in times]

    # --- a scanner's and a dispatcher's part -----------------------------------------------------

    async def take_lease(self, shard: int = 0) -> str:
        """Become the shard's scanner."""
        with behind_the_scenes():
            answer = (await self.coordination.leases.renew({shard: "tester"}))[shard]
            if answer is not LeaseAnswer.HELD:
                answer = await self.coordination.leases.acquire(shard, "tester")
        assert answer is LeaseAnswer.HELD
        return "tester"

    async def claim(
        self, entry: DueEntry, *, read_at: datetime | None = None, recheck: bool = False
    ) -> ClaimAnswer:
        """As a scanner that read the entry then (now) does."""
        await self.take_lease(entry.key.shard)
        with behind_the_scenes():
            state = await self.store.due.read(entry.key)
            assert state is not None
            copy = Copy(state=state, read_at=read_at or self.now, recheck=recheck)
            answers = await self.coordination.claims.claim(entry.key.shard, "tester", [copy])
        assert not isinstance(answers, LeaseAnswer)
        return answers[0]

    async def dispatch(self, count: int = 10_000) -> list[DueEntry]:
        """Settle the jobs that wait, as the dispatcher does: ledger, handled, done."""
        if self.stalled:
            return []
        with behind_the_scenes():
            jobs = await self.coordination.jobs.read(
                "d", range(self.limits.shards), count=count, wait=timedelta(0)
            )
            entries = []
            for job in jobs:
                entry = decode_entry(job.raw)
                entries.append(entry)
                await self._settle(entry, recheck=job.recheck, claimed_at=job.claimed_at)
                await self.coordination.jobs.done([job])
        return entries

    async def _settle(self, entry: DueEntry, *, recheck: bool, claimed_at: datetime) -> None:
        looks = recheck or entry.kind is Kind.BACKFILLED  # into the ledger, before it sends
        if entry.kind is Kind.FINISH:
            await self.reminders.changes.finish(entry.reminder_id)
        elif entry.kind is Kind.BACKFILL:
            await self.reminders.backfills.turn(entry)
        elif not (looks and entry.dedupe_id in self.rung):
            self.rung[entry.dedupe_id].append(self.now)
            assert entry.occurrence is not None
            row = LedgerRow(
                namespace=entry.namespace,
                reminder_id=entry.reminder_id,
                reminder_version=entry.version,
                occurrence=entry.occurrence,
                claimed_at=claimed_at,
                channel_id="log",
                delivery=DeliveryStatus.DELIVERED,
                attempt_count=1,
            )
            await self.store.ledger.write([row], at=self.now)
        await self.store.due.handled([entry], at=self.now)

    async def dispatch_for_ever(self) -> None:
        """What a dispatcher process does."""
        while True:
            await self.dispatch()
            await self.clock.sleep_until(self.now + timedelta(milliseconds=100))


def created(result: Created | TocsinError) -> Created:
    """Unless it failed."""
    if isinstance(result, TocsinError):
        raise result
    return result


@asynccontextmanager
async def running(*works: Coroutine[Any, Any, Any]) -> AsyncIterator[list[asyncio.Task[Any]]]:
    """Tasks for as long as the block lasts; one that fails, fails the test."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield tasks
        for task in tasks:
            if task.done():
                task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

"""A dispatcher's world in memory: ports with points where it can die, a channel with a script."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from dispatcher.channels.port import Destination, Outcome, Outgoing, Result
from dispatcher.fanout import Fanouts
from dispatcher.gate import RecordGate
from dispatcher.leg import LegRunner
from dispatcher.runner import JobRunner, Start, Steps
from dispatcher.service import Dispatcher, destinations_of
from dispatcher.settings import DispatcherSettings
from dispatcher.settler import Settlement, Settler
from dispatcher.telemetry import Reporter
from reminders.buckets import occurrence_entry_id
from reminders.clock import ManualClock
from reminders.memory.coordination import MemoryCoordination
from reminders.memory.store import MemoryStore
from reminders.model.codec import encode
from reminders.model.definition import At, Channel, Definition, Policies, Retry, Webhook
from reminders.model.entry import Body, DueEntry, DueKey, EntryState, Kind, Leg, Occurrence
from reminders.model.ledger import LedgerRow
from reminders.model.record import Change, NewReminder, Record, Status
from reminders.platform import Limits, Platform
from reminders.ports import Copy, Job

AT = datetime(2026, 12, 1, 9, tzinfo=UTC)
OK = Result(outcome=Outcome.OK, acknowledged=True, status_code=200)
BUSY = Result(outcome=Outcome.TRANSIENT, status_code=429, error_class="http_429")
GONE = Result(outcome=Outcome.PERMANENT, status_code=410, error_class="http_410")


class Crash(BaseException):
    """The process died here."""


@dataclass
class Script:
    """Implements `ChannelSender`: answers as the test says, and remembers what was sent."""

    point: Callable[[str], Awaitable[None]]
    results: list[Result] = field(default_factory=list)
    """In order; `OK` when they are used up."""
    sent: list[Outgoing] = field(default_factory=list)
    host: str = "host"
    on_send: Callable[[Outgoing], Awaitable[None]] | None = None

    def destination(self, channel: Channel) -> Destination:
        """One for all, unless the channel's URL names another."""
        url = channel.target.url if isinstance(channel.target, Webhook) else ""
        return Destination(name=url or self.host)

    async def send(self, outgoing: Outgoing) -> Result:
        """Between two points."""
        await self.point("send.before")
        self.sent.append(outgoing)
        if self.on_send is not None:
            await self.on_send(outgoing)
        await self.point("send.after")
        return self.results.pop(0) if self.results else OK


class World:
    """Everything that outlives a dispatcher, and dispatchers made in it."""

    AT, OK, BUSY, GONE, Crash = AT, OK, BUSY, GONE, Crash

    def __init__(self, **settings: Any) -> None:
        self.clock = ManualClock(AT)
        self.points: list[str] = []
        self.on_point: Callable[[str], Awaitable[None]] | None = None
        self.finished: list[str] = []
        self.turned: list[DueEntry] = []
        self.store = MemoryStore(shards=2, started_at=AT, hook=self.point)
        limits = Limits(shards=2)
        self.coordination = MemoryCoordination(
            self.clock, lookahead=limits.lookahead, margin=limits.margin, on_point=self.point
        )
        self.platform = Platform(
            store=self.store, coordination=self.coordination, clock=self.clock, limits=limits
        )
        quick = {"read_wait": timedelta(milliseconds=1), "settle_linger": timedelta(0)}
        self.settings = DispatcherSettings(**{**quick, **settings})
        self.sender = Script(self.point)
        self.senders = dict.fromkeys(("webhook", "email", "sms", "push"), self.sender)

    async def point(self, name: str) -> None:
        """Every step of the ports passes here."""
        self.points.append(name)
        if self.on_point is not None:
            await self.on_point(name)

    async def finish(self, reminder_id: str) -> None:
        """What lifecycle provides."""
        await self.point("finish")
        self.finished.append(reminder_id)

    async def turn(self, page: DueEntry) -> None:
        """What lifecycle provides."""
        await self.point("turn")
        self.turned.append(page)

    # --- dispatchers ------------------------------------------------------------------------------

    def runner(self) -> "Alone":
        """Of a fresh process."""
        reporter = Reporter()
        gate = RecordGate(self.store, self.finish)
        legs = LegRunner(
            self.platform,
            self.settings,
            self.senders,
            gate,
            destinations_of(self.clock, self.settings, reporter),
            reporter,
        )
        settler = Settler(self.platform, self.settings, reporter, sending=lambda: 0)
        fanouts = Fanouts(self.platform, self.settings, legs, gate, settler)
        steps = Steps(finish=self.finish, turn=self.turn)
        start = Start(until=self.clock.sleep_until, opened=lambda _: None)
        made = (self.platform, legs, fanouts, settler, steps, start)
        return Alone(self, JobRunner(*made), settler)

    def dispatcher(self) -> Dispatcher:
        """A whole one."""
        return Dispatcher(self.platform, self.settings, self.finish, self.turn, self.senders)

    # --- reminders --------------------------------------------------------------------------------

    async def reminder(
        self,
        reminder_id: str = "r1",
        *,
        channels: tuple[str, ...] = ("hook",),
        urls: tuple[str, ...] = (),
        retry: Retry | None = None,
        params_json: str = '{"a":1}',
        status: Status = Status.SCHEDULED,
        recurs: bool = False,
    ) -> DueEntry:
        """Creates a reminder that rings at AT, and answers its due entry."""
        targets = dict(zip(channels, urls, strict=False))
        definition = Definition(
            user_id="u1",
            schedule=At(instant=AT),
            policies=Policies(retry=retry or Retry()),
            channels=tuple(
                Channel(channel_id=each, target=Webhook(url=targets.get(each, "")))
                for each in channels
            ),
            params_json=params_json,
        )
        record = Record(
            namespace="default",
            reminder_id=reminder_id,
            version=1,
            status=status,
            definition=definition,
            created_at=AT - timedelta(hours=1),
            updated_at=AT - timedelta(hours=1),
            stamp=1,
        )
        local = AT.replace(tzinfo=None)
        occurrence = Occurrence(
            occurrence_id="20261201T090000",
            nominal_local=local,
            planned_local=local,
            zone="UTC",
            planned_at=AT,
            fire_at=AT,
            zone_data="2026a",
        )
        entry = DueEntry(
            key=DueKey(
                ring_at=AT,
                entry_id=occurrence_entry_id(reminder_id, occurrence.occurrence_id, 1),
                shard=0,
            ),
            kind=Kind.OCCURRENCE,
            namespace="default",
            reminder_id=reminder_id,
            version=1,
            occurrence=occurrence,
            recurs=recurs,
            next_at=AT + timedelta(days=1) if recurs else None,
            record_created_at=record.created_at,
            body=encode(
                Body(
                    user_id="u1",
                    channels=definition.channels,
                    params_json=params_json,
                    retry=definition.policies.retry,
                    expire_after=None if recurs else definition.policies.expire_after,
                )
            ),
        )
        await self.store.records.create([NewReminder(record=record, entries=(entry,))])
        self.points.clear()
        return entry

    async def begin_change(self, **changes: Any) -> tuple[Record, Change]:
        """Steps 0 and 1 of a change of r1: the record stands at the next version, changing."""
        stored = await self.store.records.read("r1")
        assert stored is not None
        old = stored.record
        new = replace(old, version=old.version + 1, **changes)
        change = Change(
            action="cancel",
            request_id="q",
            content_hash=b"",
            version=new.version,
            stamp=2,
            previous=old,
            revoked=(),
            planned=(),
            finish=DueKey(ring_at=AT, entry_id="r1.finish.v2", shard=0),
        )
        assert await self.store.records.begin(new, change)
        return new, change

    async def change(self, **changes: Any) -> None:
        """A whole one."""
        new, change = await self.begin_change(**changes)
        assert await self.store.records.end(new, change)

    @staticmethod
    def retry_of(entry: DueEntry, attempt: int, at: datetime) -> DueEntry:
        """The due entry of a later attempt, as found in a partition."""
        return replace(
            entry,
            key=replace(entry.key, ring_at=at, entry_id=f"r1.20261201T090000.hook.a{attempt}"),
            kind=Kind.RETRY,
            recurs=False,
            next_at=None,
            leg=Leg(channel_id="hook", attempt=attempt),
        )

    @staticmethod
    def without_body(entry: DueEntry) -> DueEntry:
        """As if the body were too large to be inline."""
        return replace(entry, body=b"")

    def job(self, entry: DueEntry, *, deliveries: int = 1, recheck: bool = False) -> Job:
        """As a stream hands it on."""
        return Job(
            shard=entry.key.shard,
            job_id="1-1",
            raw=encode(entry),
            recheck=recheck,
            claimed_at=max(AT, entry.key.ring_at),  # never before its time, by the reference
            deliveries=deliveries,
        )

    async def claim(self, entry: DueEntry, *, recheck: bool = False) -> None:
        """Puts it on the stream as a scanner does."""
        await self.coordination.leases.acquire(entry.key.shard, "scanner")
        state = EntryState(entry=entry, raw=encode(entry))
        copy = Copy(state=state, read_at=self.clock.now(), recheck=recheck)
        await self.coordination.claims.claim(entry.key.shard, "scanner", [copy])

    # --- what became of it ------------------------------------------------------------------------

    async def row(self, channel_id: str = "hook", reminder_id: str = "r1") -> LedgerRow | None:
        """The ledger's."""
        return await self.store.ledger.read(reminder_id, "20261201T090000", channel_id)

    async def handled(self, entry: DueEntry) -> bool:
        """Whether its due entry says so."""
        state = await self.store.due.read(entry.key)
        return state is not None and state.handled_at is not None

    async def waiting(self, shard: int = 0, *, hours: int = 8) -> list[DueEntry]:
        """Due entries that are not handled, of the next hours."""
        found = []
        minute = AT
        on_point, self.on_point = self.on_point, None
        while minute < AT + timedelta(hours=hours):
            states = await self.store.due.slice(minute, shard, limit=1000)
            found += [state.entry for state in states if state.handled_at is None]
            minute += timedelta(minutes=1)
        self.on_point = on_point
        return found


class Alone:
    """A process that runs one job at a time, to its end."""

    def __init__(self, world: World, jobs: JobRunner, settler: Settler) -> None:
        self.world = world
        self.jobs = jobs
        self.settler = settler

    async def run(self, job: Job) -> None:
        """When this returns, nothing is left to do for the job's due entry."""
        settling = asyncio.create_task(self.settler.run())
        running = asyncio.create_task(self._run(job))
        try:
            await asyncio.wait((settling, running), return_when=asyncio.FIRST_COMPLETED)
            for task in (running, settling):
                if task.done():
                    task.result()
        finally:
            for task in (running, settling):
                task.cancel()
            await asyncio.gather(running, settling, return_exceptions=True)

    async def _run(self, job: Job) -> None:
        sent = await self.jobs.run(job)
        settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.settler.add(
            Settlement(
                end=sent.end,
                entry=sent.entry,
                since=self.world.clock.now(),
                settled=lambda: settled.set_result(None),
                failed=lambda: settled.set_exception(RuntimeError("not settled")),
            )
        )
        await settled


@pytest.fixture
def worlds() -> type[World]:
    """For tests that need several, or settings."""
    return World


@pytest.fixture
def world() -> World:
    """One with defaults."""
    return World()

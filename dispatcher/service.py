"""The dispatcher's loops. The package docstring says how they fit together."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

import structlog

from dispatcher.acknowledger import Acknowledger
from dispatcher.channels import Senders
from dispatcher.destinations import Destinations, Limits
from dispatcher.events import Events
from dispatcher.fanout import Fanouts
from dispatcher.flights import Flights
from dispatcher.gate import Finish, RecordGate
from dispatcher.health import Health
from dispatcher.hold import Hold
from dispatcher.leg import LegRunner
from dispatcher.poison import Poison
from dispatcher.recovery import AGAIN, ALONE_FROM, Recovery
from dispatcher.runner import JobRunner, Start, Steps, Turn
from dispatcher.settings import DispatcherSettings
from dispatcher.settler import LegEnd, Settlement, Settler
from dispatcher.standing import Standings
from dispatcher.telemetry import Reporter
from reminders.errors import CoordinationUnavailable
from reminders.platform import Platform
from reminders.ports import Clock, Job

STARTED_AT_ONCE = 32
"""Then the loop has a turn: of a burst's first hundreds, the first must not wait until all of them
are decoded and started.
"""

NEXT_PAGE = timedelta(milliseconds=200)
"""After a page of a burst: the next one is read by then, if there is one."""

FEW, READ_PACE = 16, timedelta(milliseconds=4)
"""From a read that gave only few to the next one: a read costs as much as a send, and jobs are
handed over some 16 ms ahead of their time.
"""

log = structlog.get_logger()


class Dispatcher:
    """Takes jobs of all shards and settles them until told to stop."""

    def __init__(
        self,
        platform: Platform,
        settings: DispatcherSettings,
        finish: Finish,
        turn: Turn,
        senders: Senders,
        *,
        events: Events | None = None,
    ) -> None:
        """`events`: None: the operator is told nothing."""
        self._clock = platform.clock
        self._jobs = platform.coordination.jobs
        self._shards: Sequence[int] = range(platform.limits.shards)
        self._settings = settings
        self._events = events
        self._health = Health(
            platform,
            disable_after=settings.disable_after,
            announce=events.disabled if events is not None else None,
        )
        gate = RecordGate(platform.store, finish, self._health.objection)
        reporter = Reporter()
        self._destinations = destinations_of(platform.clock, settings, reporter)
        legs = LegRunner(platform, settings, senders, gate, self._destinations, reporter)
        self._flights = Flights(self._destinations, settings.max_unsettled)
        self._settler = Settler(
            platform,
            settings,
            reporter,
            sending=self._sending,
            noticed=self._noticed,
        )
        fanouts = Fanouts(platform, settings, legs, gate, self._settler)
        steps = Steps(finish=finish, turn=turn)
        self._hold = Hold(platform.clock, at_once=STARTED_AT_ONCE)
        start = Start(until=self._hold.until, opened=self._flights.opened)
        self._runner = JobRunner(platform, legs, fanouts, self._settler, steps, start)
        tell = events.poisoned if events is not None else None
        self._poison = Poison(platform, settings, fanouts, ALONE_FROM, tell=tell)
        self._recovery = Recovery(platform, settings, self._flights, self._room)
        self._acknowledger = Acknowledger(self._jobs, self._clock)
        self._problem: str | None = "starting"
        self._reading = False
        self._page = 0
        """How many jobs the last read gave, where so many hardly ever come alone."""
        self._page_at = platform.clock.now()
        self._read_from = platform.clock.now()
        """Not before this."""

    def _sending(self) -> int:
        """How many sends are under way or to come: behind a page of a burst there is another, even
        if all of this one are done before it is read.
        """
        more = self._clock.now() < self._page_at + NEXT_PAGE
        return self._flights.sending + (self._page if more else 0)

    def _noticed(self, ends: Sequence[LegEnd]) -> None:
        """What is on record."""
        self._health.observe(ends)
        if self._events is not None:
            self._events.observe(ends)

    def problems(self) -> Sequence[str]:
        """Why it must not be given work now; empty if it may."""
        found = [] if self._clock.in_bounds() else ["the clock is out of bounds"]
        return found if self._problem is None else [*found, self._problem]

    def ready(self) -> bool:
        """Whether jobs are taken as they come."""
        return not self.problems()

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`; then what runs is finished, within bounds, and the rest left for others."""
        await self._health.read()
        async with asyncio.TaskGroup() as group:
            start = partial(self._start, group)
            loops = [
                group.create_task(self._recovery.run(start), name="dispatcher-recover"),
                group.create_task(self._recovery.keep(), name="dispatcher-keep"),
                group.create_task(self._hold.run(), name="dispatcher-hold"),
                group.create_task(self._settler.run(), name="dispatcher-settle"),
                group.create_task(self._destinations.keep_seats(), name="dispatcher-seats"),
                group.create_task(self._destinations.keep_line(), name="dispatcher-line"),
                group.create_task(self._acknowledger.run(), name="dispatcher-acknowledge"),
                group.create_task(self._health.run(), name="dispatcher-health"),
            ]
            if self._events is not None:
                loops.append(group.create_task(self._events.run(), name="dispatcher-events"))
            await self._take(group, stop)
            self._problem = "stopping"
            loops[0].cancel()
            await self._drain()
            for loop in loops:
                loop.cancel()

    # --- taking -----------------------------------------------------------------------------------

    async def _take(self, group: asyncio.TaskGroup, stop: asyncio.Event) -> None:
        """Reads new jobs as long as there is room; the next ones while these are begun."""
        stopping = group.create_task(stop.wait(), name="dispatcher-stop")
        grace = 2 * self._settings.read_wait.total_seconds()
        read = group.create_task(self._read(), name="dispatcher-read")
        going_on = True
        while going_on:
            await asyncio.wait((read, stopping), return_when=asyncio.FIRST_COMPLETED)
            if not read.done() and self._reading:
                # What the server has given it would wait for `claim_idle`: let it return.
                await asyncio.wait((read,), timeout=grace)
            if not read.done():
                read.cancel()
                return
            jobs, now, going_on = read.result(), self._clock.now(), not stop.is_set()
            for job in jobs:
                self._flights.add(job, now)  # the next read leaves room for all of them
            if going_on:
                read = group.create_task(self._read(), name="dispatcher-read")
            for number, job in enumerate(jobs, 1):
                self._start(group, job, now)
                if number % STARTED_AT_ONCE == 0:
                    await asyncio.sleep(0)

    async def _read(self) -> list[Job]:
        """One read, when there is room for what it may give: at least one job of each shard."""
        page = self._settings.max_in_flight // 4
        await self._room(max(len(self._shards), page))
        if self._read_from > self._clock.now():
            await self._clock.sleep_until(self._read_from)
        count = max(1, self._flights.free // len(self._shards))
        self._reading = True
        try:
            jobs = await self._jobs.read(
                self._settings.consumer, self._shards, count=count, wait=self._settings.read_wait
            )
        except CoordinationUnavailable as error:
            log.warning("jobs.unavailable", operation=error.operation)
            self._problem = "Redis does not answer"
            jobs = []
        else:
            self._problem = None
        finally:
            self._reading = False
        now = self._clock.now()
        self._page, self._page_at = len(jobs) if len(jobs) >= page else 0, now
        self._read_from = now + READ_PACE if 0 < len(jobs) < FEW else now
        if self._problem is not None:
            await self._clock.sleep_until(self._clock.now() + AGAIN)
        return jobs

    async def _room(self, jobs: int) -> None:
        """Returns once so many may be taken, and may be judged by the clock."""
        await self._flights.room(jobs)
        while not self._clock.in_bounds():
            await self._clock.sleep_until(self._clock.now() + AGAIN)

    def _start(self, group: asyncio.TaskGroup, job: Job, now: datetime) -> asyncio.Task[None]:
        task = group.create_task(self._run(job), name="dispatcher-job")
        self._flights.add(job, now, task)
        return task

    async def _run(self, job: Job) -> None:
        try:
            sent = None if self._poison.exhausted(job) else await self._runner.run(job)
        except asyncio.CancelledError:
            self._flights.remove(job)
            raise
        except Exception:  # a bad job must not stop the others; it is tried again when reclaimed
            log.exception("job.failed", job_id=job.job_id, shard=job.shard, times=job.deliveries)
            self._poison.failed(job)
            sent = None
        if sent is None:
            await self._give_up(job)
            return
        self._flights.opened(job)
        self._settler.add(
            Settlement(
                end=sent.end,
                entry=sent.entry,
                since=self._clock.now(),
                settled=partial(self._settled, job),
                failed=partial(self._unsettled, job),
            )
        )

    async def _give_up(self, job: Job) -> None:
        """If it has failed too often; otherwise it is left to be reclaimed."""
        try:
            if self._poison.exhausted(job):
                await self._poison.give_up(job)
                self._acknowledger.add(job)
        finally:
            self._flights.remove(job)

    def _unsettled(self, job: Job) -> None:
        self._poison.failed(job)
        self._flights.remove(job)

    def _settled(self, job: Job) -> None:
        self._acknowledger.add(job)
        self._flights.remove(job)

    # --- stopping ---------------------------------------------------------------------------------

    async def _drain(self) -> None:
        """Waits in real time: a drain is bounded whatever the clock says."""
        bound = self._settings.drain.total_seconds()
        try:
            async with asyncio.timeout(bound):
                await self._flights.landed()
                await self._acknowledger.emptied()
                if self._events is not None:
                    await self._events.tell(None)
        except TimeoutError:
            log.warning("drain.cut", jobs=len(self._flights))
            self._flights.cancel()


def destinations_of(clock: Clock, settings: DispatcherSettings, reporter: Reporter) -> Destinations:
    """With what it may hold, and what destinations are granted."""
    limits = Limits(
        seats=settings.max_in_flight,
        max_wait=settings.max_wait,
        longest_wait=settings.claim_idle / 2 - settings.keep_every,
        slow_after=settings.terms.slow_after,
    )
    return Destinations(clock, limits, Standings(settings.terms, reporter.breaker))

"""Notices which endpoints fail, and keeps what is disabled from being tried.

    ends of attempts ─▶ observe ─▶ waiting ─▶ one after another: LWT (lifecycle.endpoints)
                                                        │
    before an attempt: objection ◀── `known` ◀── list of those in trouble, read every `READ_EVERY`

A healthy endpoint costs nothing: its success is looked up among those that fail, in memory, and
there are few. The first failed attempt of one is only remembered; what fails twice, or ends a
delivery, is written, at most once a minute for each endpoint. So a process that dies forgets
hiccups.

Every process reads the whole list, since a success anywhere clears what failures elsewhere have
counted, and nobody sends to what is disabled. Hence an endpoint that is disabled or enabled is so
everywhere within `READ_EVERY` and the time of a read, as long as the store answers. When the rule
disables one is said in `lifecycle.health`, whose fault a failure is in `blame`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

import structlog
from opentelemetry import metrics

from dispatcher.blame import Fault, Ways, fault, is_gone
from dispatcher.channels.port import Outcome
from dispatcher.ended import DISABLED
from dispatcher.facts import Event
from dispatcher.insistence import Insistence
from dispatcher.known import Known, Name
from dispatcher.settler import LegEnd
from dispatcher.work import LegWork
from reminders.errors import TocsinError
from reminders.lifecycle import health
from reminders.lifecycle.endpoints import Endpoints
from reminders.lifecycle.health import COUNTED_EVERY, DISABLE_AFTER, Failure
from reminders.model.endpoint import Address, Endpoint, Why, address_of
from reminders.namespaces import is_reserved
from reminders.platform import Platform

READ_EVERY = timedelta(seconds=10)
MOST_MARKS = 10_000
"""Endpoints whose first failures are remembered; the oldest are forgotten above it."""
MOST_WAITING = 10_000
"""Endpoints that wait to be written; what comes beyond is forgotten: it will fail again."""
AT_ONCE = 2
"""Endpoints that are written at the same time. Their answers come in one turn of the loop."""
PAUSE = timedelta(milliseconds=125)
"""Before the next ones: thousands that fail together must not delay what is due with their
conditional writes, and what counts is whether they fail for days."""
ANNOUNCED_AT_ONCE = 50
"""Events about disabled endpoints in `READ_EVERY`; the others follow."""

Announce = Callable[[Endpoint], Awaitable[None]]
"""Makes an event of a disabled endpoint durable; repeating it makes no second one."""

log = structlog.get_logger()


@dataclass(slots=True)
class _Mark:
    """What this process has seen of an endpoint since its last success."""

    since: datetime
    written_at: datetime | None = None


@dataclass(slots=True)
class _Waiting:
    """What is to be written about an endpoint."""

    address: Address
    success_at: datetime | None = None
    failure: Failure | None = None


class Health:
    """One for a process."""

    def __init__(
        self,
        platform: Platform,
        *,
        disable_after: timedelta = DISABLE_AFTER,
        announce: Announce | None = None,
    ) -> None:
        """`announce`: None: nobody wants to be told."""
        self._clock = platform.clock
        self._endpoints = Endpoints(platform)
        self._insist = Insistence(platform.clock)
        self._disable_after = disable_after
        self._announce = announce
        self._ways = Ways()
        self._known = Known(platform)
        self._marks: dict[Name, _Mark] = {}
        self._waiting: dict[Name, _Waiting] = {}
        self._well: dict[Name, None] = {}
        """Of these, those that have answered. They go first: thousands may fail meanwhile."""
        self._filled = asyncio.Event()
        meter = metrics.get_meter("tocsin.dispatcher")
        self._disabled = meter.create_counter(
            "tocsin_endpoints_disabled", description="Endpoints disabled, by channel and why"
        )

    # --- before an attempt ------------------------------------------------------------------------

    def objection(self, leg: LegWork) -> str | None:
        """Why nothing is sent there: a stable word. A forced replay is: somebody wants to see."""
        if not self._known or (leg.replay is not None and leg.replay.forced):
            return None
        address = _address(leg)
        if address is None:
            return None
        known = self._known.get((address.namespace, address.endpoint_id))
        return DISABLED if known is not None and known.disabled else None

    # --- after it ---------------------------------------------------------------------------------

    def observe(self, ends: Sequence[LegEnd]) -> None:
        """Attempts that are on record."""
        for end in ends:
            if end.fact.event is Event.ATTEMPTED:
                if end.fact.outcome == Outcome.OK:
                    self._succeeded(end)
                else:
                    self._failed(end)

    def _succeeded(self, end: LegEnd) -> None:
        self._ways.worked(end.fact.channel_kind, end.ended_at)
        if not self._known and not self._marks:
            return
        address = _address(end.leg)
        if address is None:
            return
        name = address.namespace, address.endpoint_id
        mark = self._marks.pop(name, None)
        if name in self._known or (mark is not None and mark.written_at is not None):
            waiting = self._wait(name, address)
            if waiting is not None:
                waiting.success_at = max(waiting.success_at or end.ended_at, end.ended_at)
                self._well[name] = None

    def _failed(self, end: LegEnd) -> None:
        kind, error_class = end.fact.channel_kind, end.fact.error_class
        blamed = fault(kind, end.fact.outcome, error_class)
        address = _address(end.leg)
        if kind == "webhook" and blamed is Fault.ENDPOINT:
            self._ways.worked(kind, end.ended_at)
        if address is None or blamed is Fault.OURS:
            return
        if blamed is Fault.WAY and self._ways.blocked(kind, address.endpoint_id, end.ended_at):
            return
        self._mark(end, address, gone=is_gone(kind, error_class, exact=address.exact))

    def _mark(self, end: LegEnd, address: Address, *, gone: bool) -> None:
        name, at = (address.namespace, address.endpoint_id), end.ended_at
        mark = self._marks.get(name)
        known = mark is not None
        if mark is None:
            mark = self._marks[name] = _Mark(at)
            if len(self._marks) > MOST_MARKS:
                del self._marks[next(iter(self._marks))]
        over = end.row.delivery is not None and end.row.delivery.terminal
        if not (known or over or gone or end.fact.attempt > 1):
            return
        if mark.written_at is not None and at - mark.written_at < COUNTED_EVERY and not gone:
            return
        waiting = self._wait(name, address)
        if waiting is not None:
            mark.written_at = at
            waiting.failure = Failure(
                at=at, error_class=end.fact.error_class, since=min(mark.since, at), gone=gone
            )

    def _wait(self, name: Name, address: Address) -> _Waiting | None:
        waiting = self._waiting.get(name)
        if waiting is None and len(self._waiting) < MOST_WAITING:
            waiting = self._waiting[name] = _Waiting(address)
        self._filled.set()
        return waiting

    # --- writing and reading ----------------------------------------------------------------------

    async def run(self) -> None:
        """For ever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._write(), name="health-write")
            group.create_task(self._read(), name="health-read")

    async def _write(self) -> None:
        while True:
            await self._filled.wait()
            while self._waiting:
                names = list(islice(self._well or self._waiting, AT_ONCE))
                for name in names:
                    self._well.pop(name, None)
                await asyncio.gather(
                    *(self._settle(name, self._waiting.pop(name)) for name in names)
                )
                if self._waiting:
                    await self._clock.sleep_until(self._clock.now() + PAUSE)
            self._filled.clear()

    async def _settle(self, name: Name, waiting: _Waiting) -> None:
        """Success and failure in the order in which they came."""
        at, failure = waiting.success_at, waiting.failure
        if at is not None:
            await self._advance(name, lambda known: health.succeeded(known, at))
        if failure is None or (at is not None and failure.at <= at):
            return
        address, disable_after = waiting.address, self._disable_after
        endpoint, changed = await self._advance(
            name, lambda known: health.failed(known, address, failure, disable_after)
        )
        if changed and endpoint is not None and endpoint.disabled:
            self._alarm(endpoint)
            await self._tell(endpoint)

    async def _advance(
        self, name: Name, following: Callable[[Endpoint | None], Endpoint | None]
    ) -> tuple[Endpoint | None, bool]:
        endpoint, changed = await self._insist(self._endpoints.advance, *name, following)
        listed = name in self._known
        if not changed and endpoint is not None and health.is_listed(endpoint) != listed:
            # Whoever changed it died before he changed the list.
            await self._insist(self._endpoints.publish, endpoint)
        self._known.learn(name, endpoint)
        return endpoint, changed

    async def _read(self) -> None:
        while True:
            await self._clock.sleep_until(self._clock.now() + READ_EVERY)
            await self.read()

    async def read(self) -> None:
        """What all processes know by now; at the start, and then now and then."""
        if await self._known.read():
            await self._tell_all()

    # --- telling ----------------------------------------------------------------------------------

    def _alarm(self, endpoint: Endpoint) -> None:
        why = endpoint.why.value if endpoint.why is not None else ""
        self._disabled.add(1, {"channel": endpoint.kind, "why": why})
        log.error(
            "endpoint.disabled",
            namespace=endpoint.namespace,
            endpoint_id=endpoint.endpoint_id,
            channel_kind=endpoint.kind,
            why=why,
            error_class=endpoint.error_class,
        )

    async def _tell_all(self) -> None:
        """Those that nobody has told of yet: whoever disabled them may have died."""
        if self._announce is None:
            return
        untold = [one for one in self._known if _untold(one)]
        for endpoint in untold[:ANNOUNCED_AT_ONCE]:
            await self._tell(endpoint)

    async def _tell(self, endpoint: Endpoint) -> None:
        """The event is durable before it counts as told, so it comes at least once."""
        at = endpoint.disabled_at
        if self._announce is None or at is None or not _untold(endpoint):
            return
        try:
            await self._announce(endpoint)
            name = endpoint.namespace, endpoint.endpoint_id
            now = self._clock.now()
            told, _ = await self._endpoints.advance(
                *name, lambda known: health.announced(known, at, now)
            )
        except TocsinError as error:
            log.warning("endpoint.untold", reason=error.reason)
            return
        self._known.learn(name, told)


def _address(leg: LegWork) -> Address | None:
    """Tocsin's own endpoints are never disabled."""
    namespace = leg.work.entry.namespace
    return None if is_reserved(namespace) else address_of(namespace, leg.channel)


def _untold(endpoint: Endpoint) -> bool:
    """What somebody disabled by hand is known to him."""
    return endpoint.disabled and not endpoint.announced and endpoint.why is not Why.MANUAL

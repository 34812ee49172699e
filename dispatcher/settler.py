"""Puts on record what sends came to, many at a time, and behind the sends that still wait.

    ended sends ─▶ waiting ─▶ a batch: ledger rows ─▶ retries' entries ─▶ handled ─▶ settled()
                      ▲ gathers for `settle_linger`; while many sends are under way it holds back,
                      │ at most until the oldest is `settle_within` old, or too many wait
                      └─ what the store did not take comes back

Nobody waits for a record, but everybody whose reminder is due waits for the sends: a burst is sent
first and settled right after it. What is not on record when the process dies is sent again, under
the same key, so the delay is bounded.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import structlog
from msgspec import Struct
from msgspec.structs import replace

from dispatcher.ended import listed
from dispatcher.facts import Fact
from dispatcher.insistence import FIRST_WAIT, LONGEST_WAIT
from dispatcher.requeue import Requeue
from dispatcher.settings import DispatcherSettings
from dispatcher.telemetry import Reporter
from dispatcher.work import LegWork
from reminders.errors import Unavailable
from reminders.model.entry import DueEntry
from reminders.model.ledger import LedgerRow
from reminders.platform import Platform

BATCH = 500
TOLD_AT_ONCE = 4
"""Of a batch that is on record. Then the loop has a turn: to log and count one takes 70 to 150 µs
between other work, for which whatever is due would wait.
"""
BUSY_SENDS = 32
"""So many sends under way hold settling back."""
LOOK_EVERY = timedelta(milliseconds=5)
"""How often it looks whether the sends are over."""
FRESH = timedelta(seconds=1)
"""An end that waited longer than settling ever holds one back is stamped by its own time."""
AFTER = timedelta(milliseconds=1)
"""Of two writes to a row, the second is stamped at least so much later."""

log = structlog.get_logger()


class LegEnd(Struct, frozen=True, kw_only=True, gc=False):
    """How a leg ended, or what comes next; not on record yet."""

    leg: LegWork
    row: LedgerRow
    """With `next_attempt_at`, the entry that comes back then is written, too."""
    fact: Fact
    ended_at: datetime
    """When the attempt, or the look that made one needless, was over."""
    written_at: datetime | None = None
    """When the row was written before, if it was."""
    yields_from: datetime | None = None
    """Of an attempt that failed and is repeated: what was put on record since then, by whoever took
    this process for dead, counts more. That is, by any clock, after all that the attempt knew of.
    """


class Settlement(Struct, frozen=True, kw_only=True):
    """What is left to write when nothing of it is left to send."""

    end: LegEnd | None
    entry: DueEntry | None
    """To be marked handled once the rest is written."""
    since: datetime
    settled: Callable[[], None]
    """Called when all of it is on record."""
    failed: Callable[[], None]
    """Called when it can't be: that is a bug."""


class Settler:
    """One for a process."""

    def __init__(
        self,
        platform: Platform,
        settings: DispatcherSettings,
        reporter: Reporter,
        *,
        sending: Callable[[], int],
        noticed: Callable[[Sequence[LegEnd]], None] = lambda _: None,
    ) -> None:
        """`sending`: how many sends are under way or wait for their turn. `noticed`: told what is
        on record.
        """
        self._noticed = noticed
        self._clock = platform.clock
        self._store = platform.store
        self._requeue = Requeue(platform, settings)
        self._reporter = reporter
        self._sending = sending
        self._linger = settings.settle_linger
        self._within = settings.settle_within
        self._most = settings.max_unsettled // 2
        self._waiting: deque[Settlement] = deque()
        self._awaited = 0
        """Ends that somebody waits for: a batch of these is not held back, as a fan-out has only so
        many under way."""
        self._filled = asyncio.Event()

    def add(self, settlement: Settlement) -> None:
        """Takes it; bounded by the jobs that are held."""
        self._waiting.append(settlement)
        self._filled.set()

    async def record(self, end: LegEnd) -> None:
        """Returns when it is on record: for one of several legs."""
        recorded: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def settled() -> None:
            if not recorded.done():
                recorded.set_result(None)

        def failed() -> None:
            if not recorded.done():
                recorded.set_exception(RuntimeError("a ledger row could not be written"))

        now = self._clock.now()
        self.add(Settlement(end=end, entry=None, since=now, settled=settled, failed=failed))
        self._awaited += 1
        try:
            await recorded
        finally:
            self._awaited -= 1

    async def run(self) -> None:
        """For ever."""
        wait = FIRST_WAIT
        while True:
            await self._filled.wait()
            await self._turn()
            batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            left = await self.settle(batch)
            self._waiting.extend(left)
            if not self._waiting:
                self._filled.clear()
            if len(left) < len(batch):
                wait = FIRST_WAIT
                continue
            log.warning("settling.waits", jobs=len(self._waiting))
            await self._clock.sleep_until(self._clock.now() + wait)
            wait = min(wait * 2, LONGEST_WAIT)

    async def _turn(self) -> None:
        """Returns when the oldest has waited for company, and for the sends within bounds."""
        oldest = self._waiting[0].since
        await self._clock.sleep_until(oldest + self._linger)
        while (
            self._sending() >= BUSY_SENDS
            and len(self._waiting) < self._most
            and self._awaited < BATCH
            and (now := self._clock.now()) < oldest + self._within
        ):
            await self._clock.sleep_until(now + LOOK_EVERY)

    async def settle(self, batch: Sequence[Settlement]) -> list[Settlement]:
        """Writes them, each alone where all together do not pass; answers what is still open."""
        try:
            await self._write(batch)
        except Exception as error:  # noqa: BLE001 - whose fault it is, each alone will tell
            if len(batch) == 1:
                return self._judge(batch[0], error)
        else:
            return []
        alone = (self._write([each]) for each in batch)
        results = await asyncio.gather(*alone, return_exceptions=True)
        left: list[Settlement] = []
        for each, result in zip(batch, results, strict=True):
            if result is not None:
                left += self._judge(each, result)
        return left

    def _judge(self, settlement: Settlement, error: BaseException) -> list[Settlement]:
        if isinstance(error, Unavailable):
            return [settlement]
        if not isinstance(error, Exception):
            raise error
        log.error("settling.failed", exc_info=error)
        settlement.failed()
        return []

    async def _write(self, batch: Sequence[Settlement]) -> None:
        """In the order that a crash may break anywhere (package docstring)."""
        ends = [each.end for each in batch if each.end is not None]
        if ends:
            ends = await self._list(ends)
            await self._record(ends)
            await self._requeue.again([(end.leg, end.row) for end in ends])
        entries = [each.entry for each in batch if each.entry is not None]
        if entries:
            await self._store.due.handled(entries, at=self._clock.now())
        for each in batch:
            each.settled()
        for start in range(0, len(ends), TOLD_AT_ONCE):
            await asyncio.sleep(0)
            part = ends[start : start + TOLD_AT_ONCE]
            self._reporter.report([end.fact for end in part])
            self._noticed(part)

    async def _list(self, ends: Sequence[LegEnd]) -> list[LegEnd]:
        """What ended failed or expired goes into the list of those, before it is on record."""
        marked = [listed(end.leg, end.row, end.ended_at) for end in ends]
        found = [ended for _, ended in marked if ended is not None]
        if not found:
            return list(ends)
        await self._store.ended.add(found)
        return [replace(end, row=row) for end, (row, _) in zip(ends, marked, strict=True)]

    async def _record(self, ends: Sequence[LegEnd]) -> None:
        """The rows, together, by their stamps."""
        now = self._clock.now()
        rows: defaultdict[datetime, list[LedgerRow]] = defaultdict(list)
        for end in ends:
            rows[self._stamp(end, now)].append(end.row)
        write = self._store.ledger.write
        await asyncio.gather(*(write(stamped, at=at) for at, stamped in rows.items()))

    def _stamp(self, end: LegEnd, now: datetime) -> datetime:
        """What ended a while ago is stamped as of then: a process that stood still must not replace
        what others, who thought it dead, have put on record. Nor must a failure that is not final.
        """
        at = now if now - end.ended_at <= self._within + FRESH else end.ended_at
        if end.yields_from is not None:
            at = min(at, end.yields_from)
        return at if end.written_at is None else max(at, end.written_at + AFTER)

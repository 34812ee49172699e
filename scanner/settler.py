"""The trailing scan: nothing is believed to have rung until Cassandra says so.

A few seconds after a stretch's time, and until its minute is settled, its counts are compared; only
where they differ are its rows looked at:

| found                              | done                                                   |
|------------------------------------|--------------------------------------------------------|
| handled, and expanded if it recurs | nothing: settled                                       |
| handled, not expanded              | `fires` again                                          |
| open                               | `examiner` closes or skips it, or it is claimed with   |
|                                    | `recheck`: a job that is gone is added again           |

`trail` says what to look at when. `settled_through` moves over a minute when all of it is settled
and the grace has passed since then; never over one that may have lost entries.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

import structlog

from reminders.errors import StoreUnavailable, Unavailable
from reminders.lifecycle.reading import Finish
from reminders.model.entry import DueKey, EntryState
from reminders.platform import Platform
from reminders.ports import LeaseAnswer
from scanner.examiner import Examiner, Verdict
from scanner.fenced import GroupCloser
from scanner.lead import Lead
from scanner.metrics import Metrics
from scanner.reader import Reader
from scanner.recent import Recent
from scanner.trail import Stretch, Trail

log = structlog.get_logger(__name__)

ROUND = timedelta(seconds=2)
"""Between two rounds over a shard's open stretches."""
REFIRE_AFTER = timedelta(seconds=10)
"""How long an expander may take before its message is sent again."""
LONG_FIRES = 5_000
"""Messages of a shard that no expander took: then ours are among them, or can wait."""
PAGE = 500
REFUSAL_EVERY = timedelta(minutes=1)
"""Between two alarms about a watermark that can't go on, and two looks whether it may."""
CATCH_UP_PAUSE = timedelta(milliseconds=200)
"""After each page that is claimed late, so that catching up (2,500/s a shard) leaves room for what
is due."""


@dataclass(slots=True)
class _Taken:
    """What became of some open entries."""

    settled: int = 0
    claimed: int = 0
    under_way: int = 0
    """Claimed by this lead just now, so that nothing is to be done yet."""


class Open(Enum):
    """What a look found that is not settled; what is nothing is false."""

    NOTHING = 0
    UNDER_WAY = 1
    """Only what was claimed just now."""
    STUCK = 2

    def __bool__(self) -> bool:
        return self is not Open.NOTHING


class Settler:
    """Follows a lead's shard a few seconds behind and moves its watermark."""

    def __init__(
        self, platform: Platform, reader: Reader, finish: Finish, metrics: Metrics
    ) -> None:
        self._store = platform.store
        self._coordination = platform.coordination
        self._clock = platform.clock
        self._grace = platform.limits.grace
        self._reader = reader
        self._examiner = Examiner(platform, finish, metrics)
        self._closer = GroupCloser(platform, metrics)
        self._metrics = metrics
        self._reported = Recent(platform.clock, REFUSAL_EVERY)

    async def run(self, lead: Lead) -> None:
        """Until the lead ends. Starts at the watermark: that is how a new lead catches up."""
        trail = Trail(await self._watermark(lead), self._grace)
        lead.settled_through = trail.settled_through
        opened = False
        while not lead.lost.is_set():
            if self._clock.in_bounds():
                try:
                    if not opened:
                        await self._open(lead, trail)
                        opened = True
                    await self._round(lead, trail)
                except Unavailable as error:
                    log.warning("settling.waits", shard=lead.shard, operation=error.operation)
            await self._clock.sleep_until(self._clock.now() + ROUND)

    async def _watermark(self, lead: Lead) -> datetime:
        while True:
            try:
                return (await self._store.progress.read())[lead.shard]
            except StoreUnavailable:
                await self._clock.sleep_until(self._clock.now() + ROUND)

    async def _open(self, lead: Lead, trail: Trail) -> None:
        """Takes up at once what came due just before the lead began. The rounds go on from there:
        they find what this misses, and the backlog.
        """
        assert lead.began_at is not None
        for stretch in trail.young(lead.began_at):
            await self._look(lead, stretch)

    async def _round(self, lead: Lead, trail: Trail) -> None:
        for stretch in trail.due(self._clock.now()):
            open_ones = await self._look(lead, stretch)
            if lead.lost.is_set():
                return
            trail.looked(
                stretch,
                settled=not open_ones,
                under_way=open_ones is Open.UNDER_WAY,
                now=self._clock.now(),
            )
        await self._report_refusal(lead, trail)
        if trail.settled_through > trail.recorded:
            await self._store.progress.advance(lead.shard, trail.settled_through)
            trail.recorded = lead.settled_through = trail.settled_through

    async def _report_refusal(self, lead: Lead, trail: Trail) -> None:
        """An alarm, now and then; ends when somebody has moved the stored watermark."""
        lead.refused = trail.refused
        if not trail.refused or str(lead.shard) in self._reported:
            return
        self._reported.add(str(lead.shard))
        stored = (await self._store.progress.read())[lead.shard]
        if stored > trail.settled_through:
            trail.go_on_from(stored)
            lead.refused = trail.refused
            return
        log.error(
            "watermark.refused",
            shard=lead.shard,
            minute=trail.settled_through.isoformat(),
            remedy="entries may have expired unseen: run `tocsin rebuild`",
        )

    async def _look(self, lead: Lead, stretch: Stretch) -> Open:
        """What is open in the stretch; takes it up."""
        minute, start, before = stretch.minute, stretch.start, stretch.before
        counts = await self._store.due.counts(minute, lead.shard, start=start, before=before)
        if counts.settled:
            return Open.NOTHING
        under_way, left = 0, 0
        after: DueKey | None = None
        while not lead.lost.is_set() and not lead.full:
            read_at = self._clock.now()
            states = await self._store.due.slice(
                minute, lead.shard, after=after, start=start, before=before, limit=PAGE
            )
            opened = [state for state in states if not state.settled]
            taken = await self._take_up(lead, opened, read_at)
            under_way += taken.under_way
            left += len(opened) - taken.settled - taken.under_way
            if len(states) < PAGE:
                if left:
                    return Open.STUCK
                return Open.UNDER_WAY if under_way else Open.NOTHING
            after = states[-1].entry.key
            if taken.claimed:
                await self._clock.sleep_until(self._clock.now() + CATCH_UP_PAUSE)
        return Open.STUCK

    async def _take_up(self, lead: Lead, opened: list[EntryState], read_at: datetime) -> _Taken:
        """Looks after each of these."""
        unexpanded = [state for state in opened if _waits_for_expansion(state, read_at)]
        unhandled = [state for state in opened if state.handled_at is None]
        waiting = [state for state in unhandled if not lead.under_way(state.entry)]
        under_way = len(unhandled) - len(waiting)
        ended = await self._closer.end(lead, waiting)
        waiting, unexpanded = ended.left, unexpanded + ended.unexpanded
        records = await self._examiner.records(waiting, read_at)
        taken = _Taken(settled=ended.settled, under_way=under_way)
        for state in waiting:
            verdict = await self._examiner.verdict(lead, state, records, read_at)
            if verdict is Verdict.SETTLED:
                taken.settled += 1
            elif verdict is Verdict.EXPAND:
                unexpanded.append(state)
            elif verdict is Verdict.CLAIM and self._reader.hold(lead, state, read_at, recheck=True):
                taken.claimed += 1
                self._metrics.reopened("recheck")
        await self._refire(lead, unexpanded)
        return taken

    async def _refire(self, lead: Lead, states: list[EntryState]) -> None:
        """Tells the expanders again, but not all the time, nor while they are far behind."""
        untold = [state for state in states if state.entry.key.entry_id not in lead.refired]
        if not untold:
            return
        lengths = await self._coordination.fires.lengths([lead.shard])
        if lengths[lead.shard] >= LONG_FIRES:
            return
        answer = await self._coordination.claims.refire(lead.shard, lead.token, untold)
        if answer is not LeaseAnswer.HELD:
            lead.end(answer.name.lower())
            return
        for state in untold:
            lead.refired.add(state.entry.key.entry_id)
            self._metrics.reopened("refire")


def _waits_for_expansion(state: EntryState, now: datetime) -> bool:
    return state.handled_at is not None and now - state.handled_at > REFIRE_AFTER

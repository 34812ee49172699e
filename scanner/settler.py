"""The trailing scan: nothing is believed to have rung until Cassandra says so.

A few seconds after a stretch's time, and until its minute is settled, its counts are compared; only
where
they differ are its rows looked at:

| found                              | done                                                   |
|------------------------------------|--------------------------------------------------------|
| handled, and expanded if it recurs | nothing: settled                                       |
| handled, not expanded              | `fires` again                                          |
| void, its record not changing      | closed                                                 |
| void, its record changing          | the change is finished; looked at again                |
| late, no record                    | closed as `orphan`                                     |
| late, overtaken by its rule's next | skipped: `superseded`, `too_old`, `catch_up_none`      |
| open                               | claimed with `recheck`; a job that is gone is re-added |

`settled_through` moves over a minute when all of it is settled and the grace has passed since then.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

import structlog

from reminders.buckets import MINUTE
from reminders.errors import StoreUnavailable, Unavailable
from reminders.lifecycle.planning import body_of
from reminders.model.codec import decode_body
from reminders.model.definition import CatchUp
from reminders.model.entry import Body, DueEntry, DueKey, EntryState, Fate, Kind
from reminders.model.ledger import LedgerRow, OccurrenceStatus
from reminders.model.record import Stored
from reminders.platform import Platform
from scanner.lead import Lead
from scanner.metrics import Metrics
from scanner.reader import Reader

log = structlog.get_logger(__name__)

TRAIL = timedelta(seconds=5)
"""How far behind the clock the scan trails: time for an ordinary delivery to be handled."""
ROUND = timedelta(seconds=2)
"""Between two rounds over a shard's open stretches."""
STRETCH = timedelta(seconds=10)
LATE = timedelta(seconds=30)
"""From here on a late entry is claimed only after a look at its record."""
REFIRE_AFTER = timedelta(seconds=10)
"""How long an expander may take before its message is sent again."""
PAGE = 500
CATCH_UP_PAUSE = timedelta(milliseconds=200)
"""After each page that is claimed late, so that catching up (2,500/s a shard) leaves room for what
is due."""

Finish = Callable[[str], Awaitable[Stored | None]]


class Settler:
    """Follows a lead's shard a few seconds behind and moves its watermark."""

    def __init__(
        self, platform: Platform, reader: Reader, finish: Finish, metrics: Metrics
    ) -> None:
        self._store = platform.store
        self._claims = platform.coordination.claims
        self._clock = platform.clock
        self._reader = reader
        self._finish = finish
        self._metrics = metrics
        self._grace = platform.limits.grace

    async def run(self, lead: Lead) -> None:
        """Until the lead ends. Starts at the watermark: that is how a new lead catches up."""
        watermark = await self._watermark(lead)
        await self._catch_up(lead, watermark)
        trailed: dict[datetime, datetime] = {}
        """By minute: up to where its stretches were found settled."""
        while not lead.lost.is_set():
            try:
                watermark = await self._round(lead, watermark, trailed)
                lead.forget()
            except Unavailable as error:
                log.warning("settling.waits", shard=lead.shard, operation=error.operation)
            await self._clock.sleep_until(self._clock.now() + ROUND)

    async def _watermark(self, lead: Lead) -> datetime:
        while True:
            try:
                return (await self._store.progress.read())[lead.shard]
            except StoreUnavailable:
                await self._clock.sleep_until(self._clock.now() + ROUND)

    async def _catch_up(self, lead: Lead, watermark: datetime) -> None:
        """Takes up at once what came due before the lead began; the rounds find what this misses."""
        assert lead.began_at is not None
        minute = watermark
        try:
            while minute < lead.began_at and not lead.lost.is_set():
                await self._look(lead, minute, minute, min(minute + MINUTE, lead.began_at))
                minute += MINUTE
        except Unavailable as error:
            log.warning("settling.waits", shard=lead.shard, operation=error.operation)

    async def _round(
        self, lead: Lead, watermark: datetime, trailed: dict[datetime, datetime]
    ) -> datetime:
        now = self._clock.now()
        minute, settled_through = watermark, watermark
        while minute < now - TRAIL and not lead.lost.is_set():
            if now < minute + MINUTE + self._grace:
                await self._trail(lead, minute, now, trailed)
            elif await self._look(lead, minute, minute, minute + MINUTE):
                trailed.pop(minute, None)
                if settled_through == minute:
                    settled_through += MINUTE
            minute += MINUTE
        if settled_through > watermark and not lead.lost.is_set():
            await self._store.progress.advance(lead.shard, settled_through)
        return settled_through

    async def _trail(
        self, lead: Lead, minute: datetime, now: datetime, trailed: dict[datetime, datetime]
    ) -> None:
        """Looks once at each stretch of a young minute, again only at those that were open."""
        start = trailed.get(minute, minute)
        while start < minute + MINUTE and start + STRETCH <= now - TRAIL:
            settled = await self._look(lead, minute, start, start + STRETCH)
            if settled and trailed.get(minute, minute) == start:
                trailed[minute] = start + STRETCH
            start += STRETCH

    async def _look(self, lead: Lead, minute: datetime, start: datetime, before: datetime) -> bool:
        """Whether the stretch is settled; takes up what is open in it."""
        counts = await self._store.due.counts(minute, lead.shard, start=start, before=before)
        if counts.settled:
            return True
        settled = True
        after: DueKey | None = None
        while not lead.lost.is_set():
            read_at = self._clock.now()
            states = await self._store.due.slice(
                minute, lead.shard, after=after, start=start, before=before, limit=PAGE
            )
            opened = [state for state in states if not state.settled]
            for state in opened:
                settled &= await self._take_up(lead, state, read_at)
            if len(states) < PAGE:
                return settled and not lead.lost.is_set()
            after = states[-1].entry.key
            if opened:
                await self._clock.sleep_until(self._clock.now() + CATCH_UP_PAUSE)
        return False

    # --- one entry --------------------------------------------------------------------------------

    async def _take_up(self, lead: Lead, state: EntryState, read_at: datetime) -> bool:
        """Whether the entry is settled now."""
        if state.handled_at is not None:
            if read_at - state.handled_at > REFIRE_AFTER:
                self._metrics.reopened("refire")
                await self._claims.refire(lead.shard, lead.token, [state])
            return False
        if lead.under_way(state.entry):
            return False
        if state.fate is Fate.VOID or read_at - state.entry.key.ring_at > LATE:
            settled = await self._examine(lead, state, read_at)
            if settled is not None:
                return settled
        if self._reader.hold(lead, state, read_at, recheck=True):
            self._metrics.reopened("recheck")
        return False

    async def _examine(self, lead: Lead, state: EntryState, read_at: datetime) -> bool | None:
        """Looks at the record first: whether the entry is settled; None if it is to be claimed."""
        entry = state.entry
        stored = await self._store.records.read(entry.reminder_id)
        if stored is None:
            return await self._close(entry, "orphan")
        if stored.change is not None:
            await self._finish(entry.reminder_id)
            return False
        if state.fate is Fate.VOID:
            return await self._close(entry, "void")
        reason = await self._overtaken(entry, stored, read_at)
        if reason is None or await self._claimed(lead, entry):
            return None
        return await self._skip(lead, state, reason)

    async def _overtaken(self, entry: DueEntry, stored: Stored, now: datetime) -> str | None:
        """Why a late occurrence of a rule need not ring any more, by its catch-up policy."""
        if entry.kind is not Kind.OCCURRENCE:
            return None
        body = await self._body(entry, stored)
        if body.expire_after is not None:
            return None  # a one-shot: the dispatcher knows when it expires
        late_by = now - entry.promised_at
        if body.catch_up is CatchUp.NONE and late_by > MINUTE:
            return "catch_up_none"
        if body.catch_up is CatchUp.LATEST and entry.next_at and now >= entry.next_at:
            return "superseded"
        return "too_old" if late_by > body.catch_up_max_age else None

    async def _body(self, entry: DueEntry, stored: Stored) -> Body:
        if entry.body:
            return decode_body(entry.body)
        return body_of(stored.record.definition)

    async def _claimed(self, lead: Lead, entry: DueEntry) -> bool:
        """Only asks: nothing is below version 0."""
        found = await self._claims.revoke(
            lead.shard, entry.reminder_id, through_version=0, entries=[entry]
        )
        return bool(found.claimed)

    async def _skip(self, lead: Lead, state: EntryState, reason: str) -> bool:
        """On record, never rung; the rule goes on."""
        entry = state.entry
        assert entry.occurrence is not None
        row = LedgerRow(
            namespace=entry.namespace,
            reminder_id=entry.reminder_id,
            reminder_version=entry.version,
            occurrence=entry.occurrence,
            ended=OccurrenceStatus.SKIPPED,
            reason=reason,
        )
        now = self._clock.now()
        await self._store.ledger.write([row], at=now)
        await self._store.due.handled([entry], at=now)
        self._metrics.closed(reason)
        log.info(
            "occurrence.skipped",
            reminder_id=entry.reminder_id,
            occurrence_id=entry.occurrence.occurrence_id,
            reason=reason,
        )
        if entry.recurs:
            await self._claims.refire(lead.shard, lead.token, [state])
            return False
        return True

    async def _close(self, entry: DueEntry, reason: str) -> bool:
        """Nothing will ring here and nothing follows from it."""
        now = self._clock.now()
        if entry.recurs:
            await self._store.due.expanded([entry], at=now)
        await self._store.due.handled([entry], at=now)
        self._metrics.closed(reason)
        log.info("entry.closed", entry_id=entry.key.entry_id, reason=reason)
        return True

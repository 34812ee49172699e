"""Backfill: what a rule names in a past range and has not rung, at a bounded pace.

```
 backfill ──▶ due[backfill, page 1] ──claimed, as everything that waits──▶ Backfills.turn
     ▲                                                                        │
     └───── due[backfill, page n+1] ◀── due[backfilled] × PAGE ◀── rule, ledger
```
The call writes one entry: that makes it durable. Whoever turns a page writes the entries of its
occurrences, then the next page's, then marks its own handled; died in between, it is turned again
and writes the same. An occurrence is rung by whoever claims it first, under the identity that it
always had; where Redis has forgotten, the ledger decides, here and again before it is sent.

It stays behind everything that is due: a page a second, its occurrences spread over that second,
and none while the shard's jobs are not taken as they come.

A backfill belongs to the version of the reminder that it was asked of: any change ends it, also for
what is not sent yet (`dispatcher.gate`). Asked for again, it goes on where it was.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
import structlog

from reminders.buckets import (
    parked_entry_id,
    shard_of,
)
from reminders.errors import AlreadyEnded, NotReady, NotRecurring, ReminderPaused
from reminders.lifecycle.past import backfilled, backfilled_entries, named, page_entry
from reminders.lifecycle.planning import SCHEDULE, instant_ms
from reminders.lifecycle.reading import Finish, Reads, unrecorded_view
from reminders.lifecycle.recurrences import rule_refused
from reminders.lifecycle.request_ids import first_of, id_of
from reminders.lifecycle.requests import Backfilled
from reminders.lifecycle.writing import EntryWriter, stamp_of
from reminders.model.codec import decode_page, encode
from reminders.model.definition import Recurring
from reminders.model.entry import (
    BackfillPage,
    DueEntry,
    Fate,
    Occurrence,
)
from reminders.model.record import Record, Status, Stored
from reminders.platform import Platform
from reminders.recurrence import Planned, RecurrenceError
from reminders.reminder_id import new_reminder_id

log = structlog.get_logger(__name__)

PAGE = 100
"""Occurrences of one page."""
PACE = timedelta(seconds=1)
"""From one page to the next: no more than 100 rings a second come of one backfill."""
BUSY = 1_000
"""Jobs of the shard that wait: above it, a page waits as well."""
WAIT = timedelta(seconds=5)
COUNTED = 10_000
"""Counts are exact up to this."""
SHOWN = 100
CHUNK = 500
"""Occurrences computed in one go, about 10 ms; then others have their turn."""
ROWS = 500
"""Of the ledger, in one read."""
MILLISECOND = timedelta(milliseconds=1)


class Backfills:
    """The use case, and its pages."""

    def __init__(
        self, platform: Platform, writer: EntryWriter, reads: Reads, finish: Finish
    ) -> None:
        self._store = platform.store
        self._jobs = platform.coordination.jobs
        self._clock = platform.clock
        self._shards = platform.limits.shards
        self._writer = writer
        self._reads = reads
        self._finish = finish

    async def backfill(
        self,
        namespace: str,
        reminder_id: str,
        *,
        start: datetime,
        end: datetime | None,
        validate_only: bool,
        request_id: str | None,
    ) -> Backfilled:
        """What the rule names from `start` until before `end` (None: now); durable when it answers,
        unless it only validates.

        Raises `NotFound`, `NotRecurring`, `AlreadyEnded`, `ReminderPaused`, `KeyConflict`.
        """
        if not self._clock.in_bounds():
            raise NotReady(operation="backfill")
        stored = await self._reads.finished(namespace, reminder_id, self._finish)
        _check(stored)
        asked_at = instant_ms(self._clock.now())
        backfill_id = new_reminder_id()
        if request_id is not None and not validate_only:
            first = await first_of(
                self._store.dedup,
                namespace,
                reminder_id,
                f"backfill:{reminder_id}:{request_id}",
                content=encode((start, end)),
                at=asked_at,
            )
            asked_at, backfill_id = first.created_at, id_of(first)
        page = BackfillPage(backfill_id=backfill_id, page=1, start=start, end=end or asked_at)
        try:
            answer = await self._answer(stored, page)
        except RecurrenceError as error:
            raise rule_refused(error, stored.record.definition.schedule, SCHEDULE) from error
        if answer.count and not validate_only:
            await self._put_first(stored.record, page, asked_at)
        return answer

    async def _answer(self, stored: Stored, page: BackfillPage) -> Backfilled:
        """Counts, and shows the first."""
        count = 0
        shown: list[Planned] = []
        for chunk in named(stored, page, CHUNK):
            shown += chunk[: SHOWN - len(shown)]
            count += len(chunk)
            if count > COUNTED:
                break
            await asyncio.sleep(0)
        record = stored.record
        return Backfilled(
            count=min(count, COUNTED),
            capped=count > COUNTED,
            first=tuple(
                unrecorded_view(record, one, version=record.version)
                for one in backfilled(record, shown, None)
            ),
        )

    async def _put_first(self, record: Record, page: BackfillPage, asked_at: datetime) -> None:
        """Unless an earlier call with the same request id has."""
        shard = shard_of(record.reminder_id, self._shards)
        entry = page_entry(record, page, ring_at=asked_at, shard=shard)
        if await self._store.due.read(entry.key) is None:
            await self._writer.put([entry], stamp=stamp_of(self._clock.now()))

    # --- pages ------------------------------------------------------------------------------------

    async def turn(self, entry: DueEntry) -> None:
        """Writes the entries of a page's occurrences, then the next page's. Repeating is safe. When
        it returns, nothing is left to do for `entry`.
        """
        known_at = self._clock.now()
        page = decode_page(entry.body)
        stored = await self._finish(entry.reminder_id)
        if stored is not None:
            stored = await self._reads.seen(stored)
        if stored is None or not _goes_on(stored.record, entry):
            log.info("backfill.ended", reminder_id=entry.reminder_id, page=page.page, why="changed")
            return
        lengths = await self._jobs.lengths([entry.key.shard])
        if lengths[entry.key.shard] > BUSY:
            await self._put_off(entry)
            return
        record = stored.record
        try:
            ahead = next(named(stored, page, PAGE + 1), [])
        except RecurrenceError as error:
            log.exception("rule.broken", reminder_id=entry.reminder_id, why=str(error))
            return
        this = backfilled(record, ahead, page.previous)[:PAGE]
        spoken_for = await self._spoken_for(stored, this)
        ringing = [one for one in this if one.occurrence_id not in spoken_for]
        now = instant_ms(self._clock.now())
        entries = backfilled_entries(
            record, ringing, begin=now, apart=PACE / PAGE, shard=entry.key.shard
        )
        await self._writer.put(entries, stamp=stamp_of(now), known_at=known_at)
        if len(ahead) > PAGE:
            await self._put_next(record, entry, page, this[-1].planned_at)
        log.info(
            "backfill.turned",
            reminder_id=record.reminder_id,
            page=page.page,
            ringing=len(ringing),
            last=len(ahead) <= PAGE,
        )

    async def _spoken_for(self, stored: Stored, page: Sequence[Occurrence]) -> set[str]:
        """Of a page, what rang, is on its way, or will ring by itself."""
        ids = {one.occurrence_id for one in page}
        if not ids:
            return set()
        found = await self._in_ledger(stored.record.reminder_id, min(ids), max(ids))
        for entry in stored.current:
            if entry.occurrence is not None and entry.occurrence.occurrence_id in ids:
                state = await self._store.due.read(entry.key)
                if state is None or (state.handled_at is None and state.fate is not Fate.VOID):
                    found.add(entry.occurrence.occurrence_id)
        return found & ids

    async def _in_ledger(self, reminder_id: str, first: str, last: str) -> set[str]:
        """Occurrences that have a delivery; one that was skipped has none."""
        found: set[str] = set()
        after = (f"{last}~", "", "")  # behind all rows of `last`
        while True:
            rows = await self._store.ledger.page(reminder_id, after=after, limit=ROWS)
            found |= {row.occurrence.occurrence_id for row in rows if row.rang}
            if len(rows) < ROWS or rows[-1].occurrence.occurrence_id < first:
                return found
            end = rows[-1]
            after = (end.occurrence.occurrence_id, end.channel_id, end.target)

    async def _put_next(
        self, record: Record, entry: DueEntry, page: BackfillPage, through: datetime
    ) -> None:
        """A second after this one was due, or from now if it comes late: pages never pile up. So
        after a crash there may be two of the next page, which write the same entries.
        """
        following = msgspec.structs.replace(
            page, page=page.page + 1, start=through + MILLISECOND, previous=through
        )
        ring_at = max(entry.key.ring_at, instant_ms(self._clock.now() - PACE)) + PACE
        made = page_entry(record, following, ring_at=ring_at, shard=entry.key.shard)
        await self._writer.put([made], stamp=stamp_of(self._clock.now()))

    async def _put_off(self, entry: DueEntry) -> None:
        """The same page, later."""
        counter = entry.parked + 1
        key = msgspec.structs.replace(
            entry.key,
            ring_at=instant_ms(self._clock.now() + WAIT),
            entry_id=parked_entry_id(entry.key.entry_id, counter),
        )
        later = msgspec.structs.replace(entry, key=key, parked=counter)
        await self._writer.put([later], stamp=stamp_of(self._clock.now()))


def _check(stored: Stored) -> None:
    record = stored.record
    if not isinstance(record.definition.schedule, Recurring):
        raise NotRecurring(reminder_id=record.reminder_id)
    if record.status is Status.PAUSED:
        raise ReminderPaused(reminder_id=record.reminder_id)
    if record.status is not Status.SCHEDULED:
        raise AlreadyEnded(status=record.status.value)


def _goes_on(record: Record, entry: DueEntry) -> bool:
    return record.status is Status.SCHEDULED and record.version == entry.version

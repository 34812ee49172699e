"""What still waits of a reminder that is cancelled: retries, and deliveries without a place.

```
 ledger  rows that wait, each naming when and where      found after step 1 of the cancel
 Redis   which of them were claimed before?              the others are counted
 step 5  records the number
 ledger, due   row CANCELLED, entry void                 by whoever ended the change
```
Nothing here makes them stop. Whoever claims one after step 1 looks at the record before he sends
(`dispatcher.gate`), and it is changing, or cancelled. So what nobody had claimed when we asked is
never sent, and what was claimed at that very moment is not counted: it may have looked before.

The last line only brings forward what is on record anyway at the entry's time. If its process dies
there, the entry rings and ends unsent. That is also why an entry is made void only where its
dispatcher is long done with it: one that writes its row once more would bring it back to life, and
nobody would come for a void entry.

Not looked for, and not counted: deliveries of a topic's subscribers, which may be a million;
replays; backfilled occurrences; rows behind the newest `ROWS * PAGES`. They end at their time.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

import structlog
from msgspec import Struct
from msgspec.structs import replace

from reminders.buckets import MINUTE, parked_entry_id, retry_entry_id, shard_of
from reminders.errors import StoreUnavailable
from reminders.lifecycle.writing import CLOCKS_DIFFER, stamp_of
from reminders.model.entry import DueEntry, DueKey, Fate, Kind, Leg
from reminders.model.ledger import DeliveryStatus, LedgerRow
from reminders.model.record import Change, OccurrenceAnswer, Outcome
from reminders.platform import Platform
from reminders.ports import Revocation

ROWS = 500
"""Of the ledger, in one read."""
PAGES = 4
ANSWERED = 16
"""Occurrences that an outcome names beyond those that were live: it is kept in the record."""
AT_REST = timedelta(minutes=1)
"""So long after an attempt ended its dispatcher has put it on record, and does so no more."""
CANCELLED = "cancelled"
"""The reason on record, as for those that ring and end unsent."""

log = structlog.get_logger(__name__)


class Waiting(Struct, frozen=True, kw_only=True):
    """A delivery that nobody has claimed, and its due entry as far as a claim is concerned."""

    row: LedgerRow
    entry: DueEntry


def waiting_key(row: LedgerRow, shards: int) -> DueKey | None:
    """Where the entry of a delivery's next attempt was put; None if none is to come. It may have
    been moved since, if it is long overdue.
    """
    if row.next_attempt_at is None:
        return None
    occurrence_id = row.occurrence.occurrence_id
    name = retry_entry_id(row.reminder_id, occurrence_id, row.channel_id, row.attempt_count + 1)
    if row.parked:
        name = parked_entry_id(name, row.parked)
    shard = shard_of(row.reminder_id, shards)
    return DueKey(ring_at=row.next_attempt_at, entry_id=name, shard=shard)


class Stopping:
    """Finds what waits, and ends it."""

    def __init__(self, platform: Platform) -> None:
        self._store = platform.store
        self._claims = platform.coordination.claims
        self._clock = platform.clock
        self._limits = platform.limits

    async def waiting(self, change: Change) -> tuple[Waiting, ...]:
        """What will not be sent any more because of a cancel that has begun."""
        now = self._clock.now()
        found = [
            Waiting(row=row, entry=_entry(row, key, change))
            for row in await self._rows(change.previous.reminder_id)
            if (key := waiting_key(row, self._limits.shards)) is not None
            and not self._may_have_moved(key, now)
        ]
        horizon = now + self._limits.lookahead + self._limits.margin
        near = [one.entry for one in found if one.entry.key.ring_at <= horizon]
        if not near:  # what is further ahead is in no scanner's heap
            return tuple(found)
        asked = await self._claims.claimed(change.finish.shard, near)
        return tuple(one for one in found if _unclaimed(one.entry, asked))

    async def end(self, waiting: Sequence[Waiting]) -> None:
        """Puts it on record that they were cancelled. It may fail: they end at their time, too."""
        if not waiting:
            return
        now = self._clock.now()
        rows = [
            replace(
                one.row,
                delivery=DeliveryStatus.CANCELLED,
                reason=CANCELLED,
                next_attempt_at=None,
                parked=0,
            )
            for one in waiting
        ]
        resting = [one.entry.key for one in waiting if _at_rest(one.row, now)]
        try:
            await self._store.ledger.write(rows, at=now)
            if resting:
                await self._store.due.mark(resting, Fate.VOID, stamp=stamp_of(now))
        except StoreUnavailable as error:
            name = waiting[0].row.reminder_id
            log.warning("stopping.unrecorded", reminder_id=name, operation=error.operation)

    async def _rows(self, reminder_id: str) -> list[LedgerRow]:
        """Those that wait, newest occurrence first."""
        found: list[LedgerRow] = []
        after: tuple[str, str, str] | None = None
        for _ in range(PAGES):
            page = await self._store.ledger.page(reminder_id, after=after, limit=ROWS)
            found += [row for row in page if _waits(row)]
            if len(page) < ROWS:
                break
            last = page[-1]
            after = (last.occurrence.occurrence_id, last.channel_id, last.target)
        return found

    def _may_have_moved(self, key: DueKey, now: datetime) -> bool:
        """Whether its writer came so late that he put it elsewhere: who claims it there, we would
        not see.
        """
        return key.minute + MINUTE + self._limits.grace / 2 <= now + CLOCKS_DIFFER


def with_stopped(outcome: Outcome, waiting: Sequence[Waiting]) -> Outcome:
    """With the number of deliveries that were stopped, in all and of each occurrence. One that was
    not live any more had fired.
    """
    if not waiting:
        return outcome
    counts = Counter(one.row.occurrence.occurrence_id for one in waiting)
    live = [replace(each, stopped=counts[each.occurrence_id]) for each in outcome.answers]
    known = {each.occurrence_id for each in live}
    occurrences = {one.row.occurrence.occurrence_id: one.row.occurrence for one in waiting}
    past = [
        OccurrenceAnswer(
            occurrence_id=name, planned_at=one.planned_at, was_fired=True, stopped=counts[name]
        )
        for name, one in occurrences.items()
        if name not in known
    ]
    answers = (*live, *past[:ANSWERED])
    return replace(outcome, answers=answers, stopped=len(waiting))


def _unclaimed(entry: DueEntry, asked: Revocation) -> bool:
    """Nor claimed before Redis lost its data, or by a server before this one."""
    known_since = asked.known_since or asked.server_now
    return entry.dedupe_id not in asked.claimed and entry.key.ring_at > known_since + CLOCKS_DIFFER


def _waits(row: LedgerRow) -> bool:
    if row.next_attempt_at is None or row.delivery is None or row.delivery.terminal:
        return False
    replayed = bool(row.attempts) and bool(row.attempts[-1].replay)
    return not row.target and not replayed


def _at_rest(row: LedgerRow, now: datetime) -> bool:
    if row.parked or not row.attempts:
        return False
    last = row.attempts[-1]
    return last.started_at + last.duration + AT_REST < now


def _entry(row: LedgerRow, key: DueKey, change: Change) -> DueEntry:
    """As its dispatcher wrote it, but for what no claim looks at."""
    return DueEntry(
        key=key,
        kind=Kind.PARKED if row.parked else Kind.RETRY,
        namespace=row.namespace,
        reminder_id=row.reminder_id,
        version=row.reminder_version,
        occurrence=row.occurrence,
        record_created_at=change.previous.created_at,
        leg=Leg(channel_id=row.channel_id, target=row.target, attempt=row.attempt_count + 1),
        parked=row.parked,
    )

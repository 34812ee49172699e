"""Counts how far a fan-out has come, into the occurrence's one row of the ledger.

Whoever lists occurrences reads that row and never the deliveries. While the pages run, they tell
what they came to, which is cheap: 5,000 small rows for a million. Where deliveries changed since
(retries, replays), and once the pages are through, the store adds up the deliveries themselves.

A tally writes the next one's entry before the row that names its time: so of two that run side by
side after a crash, the one that finds a later time in the row ends. They come less and less often,
and the more there is to count the less: counting takes a small part of the store's time.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import structlog
from msgspec.structs import replace

from dispatcher.insistence import Insistence
from reminders.lifecycle.endings import ended_by
from reminders.lifecycle.fanning import COUNT_AFTER, buckets_of, tally_entry
from reminders.lifecycle.planning import instant_ms
from reminders.lifecycle.writing import EntryWriter, stamp_of
from reminders.model.entry import DueEntry
from reminders.model.fanout import Fanout, PageCount, TargetCounts
from reminders.model.ledger import LedgerRow, OccurrenceStatus
from reminders.platform import Platform
from reminders.ports import Job

SELDOM = timedelta(minutes=10)
"""The longest time between two."""
SHARE = 20
"""It is counted again after a 20th of the time that has passed."""
FOR_EACH = timedelta(microseconds=200)
"""And after so much for each row that counting reads: 20 times what it takes."""
LONGEST = timedelta(days=30)
"""Then nobody counts any more, whatever is open."""
_WEIGHT = 0.5
"""Of the last interval in the rate."""

log = structlog.get_logger()


class Tallies:
    """Counts fan-outs."""

    def __init__(self, platform: Platform) -> None:
        self._clock = platform.clock
        self._store = platform.store
        self._writer = EntryWriter(platform)
        self._insist = Insistence(platform.clock)

    async def count(self, job: Job, entry: DueEntry) -> None:
        """For a job of kind `tally`. Repeating it is safe."""
        row = await self._insist(self._store.ledger.read, entry.reminder_id, entry.occurrence_id)
        if row is None or row.fanout is None or _superseded(row.fanout, entry.key.ring_at):
            return
        replayed = row.fanout.replayed or entry.replay is not None
        row = replace(row, fanout=replace(row.fanout, replayed=replayed))
        counted, complete, read = await self._counted(row)
        assert counted.fanout is not None
        fanout = counted.fanout
        now = self._clock.now()
        if not (complete and fanout.counts.open == 0) and now < fanout.started_at + LONGEST:
            at = next_at(entry, job.claimed_at, fanout.started_at, read)
            fanout = replace(fanout, next_at=at)
            following = tally_entry(entry, at)
            await self._insist(self._writer.put, [following], stamp=stamp_of(now))
        counted = _ended(counted, replace(fanout, counted_at=now))
        await self._insist(self._store.ledger.write, [counted], at=now)
        if fanout.next_at is None:
            log.info(
                "fanout.finished",
                reminder_id=entry.reminder_id,
                occurrence_id=entry.occurrence_id,
                topic_id=fanout.topic_id,
                targets=fanout.counts.targets,
                taken=fanout.counts.taken,
                failed=fanout.counts.failed,
                stopped=fanout.counts.stopped,
            )

    async def _counted(self, row: LedgerRow) -> tuple[LedgerRow, bool, int]:
        """With the present counts; whether all pages are through; how many rows that took."""
        fanout = row.fanout
        assert fanout is not None
        place = row.reminder_id, row.occurrence.occurrence_id
        pages = await self._insist(self._store.fanouts.pages, *place)
        buckets = buckets_of(fanout.only_subscriber)
        complete = through(pages, buckets)
        counts = sum((page.counts for page in pages), TargetCounts())
        why = next((page.why for page in pages if page.why), "")
        read = len(pages)
        if complete and (counts.open or fanout.replayed or why):
            counts = TargetCounts()
            for bucket in buckets:  # one after the other: nobody waits for it
                counts += await self._insist(self._store.fanouts.counts, *place, bucket)
            read += counts.targets
        subscribers = fanout.subscribers or await self._subscribers(row, fanout)
        present = replace(
            fanout,
            subscribers=subscribers,
            counts=counts,
            paused=sum(page.paused for page in pages),
            filtered=sum(page.filtered for page in pages),
            why=why,
            next_at=None,
        )
        present = replace(present, per_second=rate(fanout, present.passed, self._clock.now()))
        return replace(row, fanout=present), complete, read

    async def _subscribers(self, row: LedgerRow, fanout: Fanout) -> int:
        if fanout.only_subscriber:
            return 1
        return await self._insist(self._store.subscribers.count, row.namespace, fanout.topic_id)


def _superseded(fanout: Fanout, ring_at: datetime) -> bool:
    """Whether another tally has taken this one's place."""
    if fanout.next_at is not None:
        return fanout.next_at > ring_at
    return fanout.counted_at is not None and fanout.counted_at > ring_at


def through(pages: Sequence[PageCount], buckets: Iterable[int]) -> bool:
    """Whether every chain has come to its end, with no page missing."""
    chains: dict[int, list[PageCount]] = {bucket: [] for bucket in buckets}
    for page in pages:
        chains.setdefault(page.bucket, []).append(page)
    return all(
        bool(chain) and chain[-1].last and chain[-1].page == len(chain) for chain in chains.values()
    )


def next_at(entry: DueEntry, claimed_at: datetime, started_at: datetime, read: int) -> datetime:
    """When it is counted again: the same for whoever repeats the job and reads as much."""
    base = max(entry.key.ring_at, claimed_at)
    wait = max(COUNT_AFTER, (base - started_at) / SHARE, read * FOR_EACH)
    return instant_ms(base + min(wait, SELDOM))


def rate(before: Fanout, passed: int, now: datetime) -> float:
    """Subscribers a second: since the last tally, smoothed."""
    since = before.counted_at or before.started_at
    seconds = (now - since).total_seconds()
    if seconds <= 0:
        return before.per_second
    lately = (passed - before.passed) / seconds
    if before.counted_at is None:
        return lately
    return before.per_second + _WEIGHT * (lately - before.per_second)


def _ended(row: LedgerRow, fanout: Fanout) -> LedgerRow:
    """An occurrence that nobody was told of says why."""
    ended, reason = None, fanout.why
    if fanout.finished and not fanout.counts.targets:
        ended = OccurrenceStatus.SKIPPED
        if fanout.why:
            ended = ended_by(fanout.why)
        elif fanout.only_subscriber:
            reason = "unsubscribed"
        else:
            reason = "left_out" if fanout.passed else "no_subscribers"
    return replace(row, fanout=fanout, ended=ended, reason=reason)

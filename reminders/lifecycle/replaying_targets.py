"""Replay of a topic's occurrence: to some of its subscribers, or to all that nobody took it for.

```
 some of them   their rows ──▶ due[replay, one for each], as for a user's channels
 all of them    counts     ──▶ due[fanout with a replay] × 16 ──▶ … pages over the deliveries
```
A call to all writes seventeen entries, however many there are. The pages come at a pace of their
own (`dispatcher.fanout`), and each looks at its rows when it is turned: what was taken is left.
"""

import asyncio
from collections.abc import Sequence

from msgspec import Struct

from reminders.lifecycle.fanning import COUNT_AFTER, first_pages, tally_entry
from reminders.lifecycle.replay_entries import occurrence_entry
from reminders.lifecycle.writing import EntryWriter
from reminders.model.entry import DueEntry, Replay
from reminders.model.ledger import LedgerRow
from reminders.model.record import Record
from reminders.model.subscriber import bucket_of
from reminders.platform import Platform

CHANNELS = 16
"""Rows of one subscriber, at most: its endpoint may have been of several kinds."""


class ReplayedAll(Struct, frozen=True, kw_only=True):
    """What a replay to all does, by the last count: `Fanout.counted_at`."""

    again: int
    """Deliveries that had ended otherwise than well, and are sent again."""
    taken: int
    """Those that are left alone because they arrived."""


class TargetReplays:
    """The half of a replay that is about subscribers."""

    def __init__(self, platform: Platform, writer: EntryWriter) -> None:
        self._store = platform.store
        self._clock = platform.clock
        self._shards = platform.limits.shards
        self._writer = writer

    async def rows(
        self, reminder_id: str, occurrence_id: str, subscriber_ids: Sequence[str]
    ) -> dict[str, LedgerRow]:
        """By subscriber; those who were not told are left out."""
        found = await asyncio.gather(
            *(
                self._store.fanouts.targets(
                    reminder_id,
                    occurrence_id,
                    bucket_of(each),
                    after=(each, ""),
                    through=each,
                    limit=CHANNELS,
                )
                for each in subscriber_ids
            )
        )
        return {rows[-1].target: rows[-1] for rows in found if rows}

    async def present(self, record: Record, rows: Sequence[LedgerRow]) -> set[str]:
        """Those of the subscribers who are still there."""
        topic_id = record.definition.topic_id
        wanted = {row.target for row in rows if row.target}
        if not wanted:
            return set()
        return set(await self._store.subscribers.read_many(record.namespace, topic_id, wanted))

    async def count_again(self, of: DueEntry) -> None:
        """After single deliveries were sent again. `of`: an entry of the replay."""
        tally = tally_entry(of, of.key.ring_at + COUNT_AFTER, replay=of.replay)
        await self._writer.put_missing([tally])

    async def all(
        self, record: Record, row: LedgerRow, replay: Replay, *, dry_run: bool
    ) -> ReplayedAll:
        """`row`: the occurrence's own, whose counts are answered. Durable when it answers."""
        assert row.fanout is not None
        counts = row.fanout.counts
        answer = ReplayedAll(again=counts.failed + counts.stopped, taken=counts.taken)
        if dry_run or (row.fanout.finished and not answer.again):
            return answer
        of = occurrence_entry(record, row, replay, shards=self._shards)
        at = replay.asked_at
        await self._writer.put_missing(
            [*first_pages(of, at, replay=replay), tally_entry(of, at + COUNT_AFTER, replay=replay)]
        )
        return answer

"""The entries of a fan-out: its pages, and its tallies. Pure.

```
 occurrence ──▶ due[fanout, bucket 0, page 1] ──▶ … page 2 ──▶ … the last one
            ──▶ due[fanout, bucket 1, page 1] ──▶ …                 sixteen chains side by side
            ──▶ due[tally] ──▶ due[tally] ──▶ … until every delivery has ended
```
A replay of all that failed has the same chains, over the deliveries instead of the subscribers.
"""

from datetime import datetime, timedelta

from msgspec.structs import replace

from reminders.buckets import fanout_entry_id, tally_entry_id
from reminders.lifecycle.writing import stamp_of
from reminders.model.entry import DueEntry, DueKey, FanoutPage, Kind, Replay
from reminders.model.subscriber import SUBSCRIBER_BUCKETS, bucket_of

COUNT_AFTER = timedelta(seconds=1)
"""From a beginning to the first tally."""


def buckets_of(only_subscriber: str = "") -> range:
    """Those that a fan-out goes through."""
    if only_subscriber:
        return range(bucket_of(only_subscriber), bucket_of(only_subscriber) + 1)
    return range(SUBSCRIBER_BUCKETS)


def first_pages(
    of: DueEntry, at: datetime, *, only_subscriber: str = "", replay: Replay | None = None
) -> list[DueEntry]:
    """The first page of each chain. `of`: an entry of the occurrence, with its body."""
    return [
        page_entry(of, FanoutPage(bucket=bucket, replay=replay), at)
        for bucket in buckets_of(only_subscriber)
    ]


def page_entry(of: DueEntry, page: FanoutPage, at: datetime) -> DueEntry:
    """A page; whoever repeats writes the same."""
    entry_id = fanout_entry_id(
        of.reminder_id,
        of.occurrence_id,
        page.bucket,
        page.page,
        page.replay.replay_id if page.replay is not None else "",
    )
    return _entry(of, Kind.FANOUT, page, entry_id, at)


def tally_entry(of: DueEntry, at: datetime, *, replay: Replay | None = None) -> DueEntry:
    """A count of the whole. `replay`: the one that it belongs to."""
    entry_id = tally_entry_id(of.reminder_id, of.occurrence_id, stamp_of(at) // 1_000)
    page = FanoutPage(page=0, replay=replay)
    return replace(_entry(of, Kind.TALLY, page, entry_id, at), body=b"")


def _entry(of: DueEntry, kind: Kind, page: FanoutPage, entry_id: str, at: datetime) -> DueEntry:
    return replace(
        of,
        key=DueKey(ring_at=at, entry_id=entry_id, shard=of.key.shard),
        kind=kind,
        # The occurrence's own entry is expanded and superseded; these only deliver.
        next_at=None,
        recurs=False,
        leg=None,
        parked=0,
        page=page,
    )

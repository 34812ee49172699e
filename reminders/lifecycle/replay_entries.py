"""The due entries of a replay. Pure."""

from datetime import datetime, timedelta

from msgspec.structs import replace

from reminders.buckets import replay_entry_id, shard_of
from reminders.lifecycle.planning import body_of
from reminders.model.codec import encode
from reminders.model.entry import DueEntry, DueKey, Kind, Leg, Replay
from reminders.model.ledger import LedgerRow
from reminders.model.record import Record

APART = timedelta(milliseconds=10)
"""From one delivery to the next: at most 100 a second come of one call."""


def delivery_entry(
    record: Record,
    row: LedgerRow,
    name: tuple[str, datetime],
    *,
    force: bool,
    place: int,
    shards: int,
) -> DueEntry:
    """The entry of one delivery. `name`: id of the replay, and when it was asked for; `place`: how
    many deliveries of it go before this one.
    """
    replay_id, asked_at = name
    assert row.delivery is not None
    replay = Replay(
        replay_id=replay_id,
        asked_at=asked_at,
        after=row.attempt_count,
        stood=row.delivery.value,
        forced=force,
    )
    of = occurrence_entry(record, row, replay, shards=shards)
    entry_id = replay_entry_id(
        of.reminder_id, of.occurrence_id, row.channel_id, replay_id, row.target
    )
    return replace(
        of,
        key=DueKey(ring_at=asked_at + place * APART, entry_id=entry_id, shard=of.key.shard),
        kind=Kind.REPLAY,
        leg=Leg(
            channel_id=row.channel_id,
            target=row.target,
            attempt=row.attempt_count + 1,
            replay=replay,
        ),
    )


def occurrence_entry(record: Record, row: LedgerRow, replay: Replay, *, shards: int) -> DueEntry:
    """What a delivery's entry, and the pages of a replay to all, are made of; it has no id yet. A
    forced one is in no group, whose fence would stop it.
    """
    return DueEntry(
        key=DueKey(
            ring_at=replay.asked_at, entry_id="", shard=shard_of(record.reminder_id, shards)
        ),
        kind=Kind.FANOUT,
        namespace=record.namespace,
        reminder_id=record.reminder_id,
        version=record.version,
        occurrence=row.occurrence,
        record_created_at=record.created_at,
        group_id=None if replay.forced else record.definition.group_id,
        body=encode(body_of(record.definition)),
    )

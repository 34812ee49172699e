"""What rings beside the schedule: the entries of triggers, and what a change makes of them."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from reminders.buckets import trigger_entry_id
from reminders.lifecycle.endings import ended_row
from reminders.lifecycle.planning import body_of
from reminders.model.codec import encode
from reminders.model.entry import DueEntry, DueKey, Kind, Occurrence, Origin
from reminders.model.ledger import LedgerRow, OccurrenceStatus
from reminders.model.record import Record, Stored
from reminders.ports import Store
from reminders.recurrence import instant_key, zone_data_version

ABANDONED_AFTER = timedelta(minutes=5)
"""A call that has not written its due entry by then has died: it takes seconds."""


def trigger_occurrence(at: datetime) -> Occurrence:
    """Of an instant: no local time, and no count, is behind it."""
    local = at.astimezone(UTC).replace(tzinfo=None)
    return Occurrence(
        occurrence_id=instant_key(at),
        nominal_local=local,
        planned_local=local,
        zone="UTC",
        planned_at=at,
        fire_at=at,
        zone_data=zone_data_version(),
        ordinal=0,
        origin=Origin.TRIGGER,
    )


def trigger_entry(
    record: Record, occurrence: Occurrence, *, ring_at: datetime, shard: int
) -> DueEntry:
    """The entry of a triggered occurrence under the record's version. It expires as a one-shot
    does, whatever the schedule: somebody asked for this very ring.
    """
    definition = record.definition
    body = msgspec.structs.replace(
        body_of(definition), expire_after=definition.policies.expire_after
    )
    return DueEntry(
        key=DueKey(
            ring_at=ring_at,
            entry_id=trigger_entry_id(record.reminder_id, occurrence.occurrence_id, record.version),
            shard=shard,
        ),
        kind=Kind.OCCURRENCE,
        namespace=record.namespace,
        reminder_id=record.reminder_id,
        version=record.version,
        occurrence=occurrence,
        record_created_at=record.created_at,
        group_id=definition.group_id,
        body=encode(body),
    )


async def entries_beside(store: Store, stored: Stored) -> tuple[DueEntry, ...]:
    """The live entries of triggers, of all versions; read where the record came without them."""
    if stored.beside is not None:
        return stored.beside
    return await store.records.beside(stored.record.reminder_id)


async def outstanding(
    store: Store, stored: Stored, version: int, now: datetime
) -> tuple[DueEntry, ...]:
    """The triggers of a version that nobody is known to have handled. One whose due entry is not
    there is on its way, or its call died; then it was never answered, and is left out.
    """
    own = [entry for entry in await entries_beside(store, stored) if entry.version == version]
    states = await asyncio.gather(*(store.due.read(entry.key) for entry in own))
    return tuple(
        entry
        for entry, state in zip(own, states, strict=True)
        if (
            state.handled_at is None
            if state is not None
            else now < entry.key.ring_at + ABANDONED_AFTER
        )
    )


def not_rung(silenced: Sequence[DueEntry], reason: str) -> list[LedgerRow]:
    """On record: a repeat of their calls finds what became of them."""
    return [
        ended_row(entry, entry.occurrence, OccurrenceStatus.CANCELLED, reason)
        for entry in silenced
        if entry.occurrence is not None
    ]


def carried(record: Record, pending: Sequence[DueEntry]) -> tuple[DueEntry, ...]:
    """Triggers that a change met before they were claimed, under its new version. The same for
    whoever completes the change.
    """
    return tuple(
        trigger_entry(record, entry.occurrence, ring_at=entry.key.ring_at, shard=entry.key.shard)
        for entry in pending
        if entry.occurrence is not None
    )

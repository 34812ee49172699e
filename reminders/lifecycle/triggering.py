"""Trigger: one ring now, beside the schedule, which goes on unchanged.

```
 keys   claim: the request id names an instant; the instant (whole ms) belongs to one request
 live   the entry, under the version that was read
 read   the record again: same version, not changing?  no ─▶ over again, with the new version
 due    the entry, announced; moved if its minute may be settled
```
As in an expansion, either a change that begins meanwhile sees the live entry and decides about it,
or our second read sees the change. A change that silences (cancel, pause) makes a trigger void that
nobody claimed yet; any other one carries it over into its own version: `carried`.

A trigger is no part of the schedule: its live entry stands apart (`Stored.beside`), so that neither
the expander's cursor nor a count nor what is ahead knows of it.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

import structlog
from msgspec import Struct

from reminders.buckets import shard_of
from reminders.errors import (
    AlreadyEnded,
    CoordinationUnavailable,
    NotFound,
    NotReady,
    StoreUnavailable,
)
from reminders.lifecycle.beside import entries_beside, trigger_entry, trigger_occurrence
from reminders.lifecycle.grouping import fences_of
from reminders.lifecycle.planning import instant_ms
from reminders.lifecycle.reading import (
    MAX_CHANNELS,
    Finish,
    Reads,
    occurrence_view,
    unrecorded_view,
)
from reminders.lifecycle.request_ids import REMEMBERED, claim_of, first_of
from reminders.lifecycle.requests import OccurrenceView
from reminders.lifecycle.writing import EntryWriter, stamp_of
from reminders.model.entry import DueEntry, Fate, Origin
from reminders.model.record import Record, Status, Stored
from reminders.platform import Platform
from reminders.recurrence import instant_key
from reminders.reminder_id import new_reminder_id

log = structlog.get_logger(__name__)

LONGER = timedelta(days=1)
"""Instants stay taken so much longer: a repeat must find what it found before."""
ATTEMPTS = 5
"""How often it starts over after it lost to a change."""
MOST_AT_ONCE = 100
"""Triggers of one reminder that ask in the same moment, each a millisecond after the other."""
MILLISECOND = timedelta(milliseconds=1)


class Asked(Struct, frozen=True, kw_only=True):
    """One call, the same for its repeats."""

    name: str
    """Whoever has another name rings at another instant."""
    at: datetime


class Triggers:
    """The use case."""

    def __init__(
        self, platform: Platform, writer: EntryWriter, reads: Reads, finish: Finish
    ) -> None:
        self._store = platform.store
        self._clock = platform.clock
        self._shards = platform.limits.shards
        self._writer = writer
        self._reads = reads
        self._finish = finish

    async def trigger(
        self, namespace: str, reminder_id: str, *, request_id: str | None
    ) -> OccurrenceView:
        """The occurrence that rings; a repeat of the request id answers the same one, and writes
        what a call that died had not written.

        Durable when it answers. A paused reminder and one that has fired may be triggered. Raises
        `NotFound`, and `AlreadyEnded` for one that is cancelled, also with its group, or failed.
        """
        if not self._clock.in_bounds():
            raise NotReady(operation="trigger")
        stored = await self._reads.owned(namespace, reminder_id)
        if request_id is None:
            _refuse_ended(stored)
        asked = await self._asked(namespace, reminder_id, request_id)
        for _ in range(ATTEMPTS):
            known_at = self._clock.now()
            read = await self._finish(reminder_id)
            if read is None:
                raise NotFound(reminder_id=reminder_id, namespace=namespace)
            beside = await entries_beside(self._store, read)
            found = await self._place(read, beside, asked)
            if isinstance(found, OccurrenceView):
                return found
            _refuse_ended(read)
            if await self._write(read.record, found, known_at):
                await self._tidy(read.record, beside, found)
                return _planned(read.record, found)
        raise CoordinationUnavailable(operation="trigger: lost to changes")

    # --- who rings at which instant ---------------------------------------------------------------

    async def _asked(self, namespace: str, reminder_id: str, request_id: str | None) -> Asked:
        """Of a repeat: as of the first time."""
        now = instant_ms(self._clock.now())
        if request_id is None:
            return Asked(name=new_reminder_id(), at=now)
        key = f"trigger:{reminder_id}:{request_id}"
        first = await first_of(
            self._store.dedup, namespace, reminder_id, key, content=key.encode(), at=now
        )
        return Asked(name=key, at=first.created_at)

    async def _place(
        self, stored: Stored, beside: Sequence[DueEntry], asked: Asked
    ) -> DueEntry | OccurrenceView:
        """The entry that is to be written for this call; or what became of it, if it was written.

        Its instant is the first one from `asked.at` on that is neither another call's nor the
        schedule's own.
        """
        record = stored.record
        of_schedule = {entry.occurrence_id for entry in stored.live}
        for number in range(MOST_AT_ONCE):
            at = asked.at + number * MILLISECOND
            occurrence_id = instant_key(at)
            if not await self._taken(record, occurrence_id, asked):
                continue
            mine = [e for e in beside if e.occurrence_id == occurrence_id]
            known = await self._known(record, occurrence_id, mine)
            if known is not None:
                if known.occurrence.origin is Origin.TRIGGER:
                    return known
            elif occurrence_id not in of_schedule:
                shard = shard_of(record.reminder_id, self._shards)
                begun = next((e for e in mine if e.version == record.version), None)
                ring_at = at if begun is None else begun.key.ring_at
                return trigger_entry(record, trigger_occurrence(at), ring_at=ring_at, shard=shard)
        raise CoordinationUnavailable(operation="trigger: too many at once")

    async def _taken(self, record: Record, occurrence_id: str, asked: Asked) -> bool:
        """Whether the instant is ours, now or since before."""
        claim = claim_of(
            record.namespace,
            record.reminder_id,
            f"instant:{record.reminder_id}:{occurrence_id}",
            content=asked.name.encode(),
            at=asked.at,
            life=REMEMBERED + LONGER,
        )
        (stands,) = await self._store.dedup.claim([claim])
        return stands.content_hash == claim.content_hash

    async def _known(
        self, record: Record, occurrence_id: str, live: Sequence[DueEntry]
    ) -> OccurrenceView | None:
        """What became of an occurrence, if it was written."""
        rows = await self._store.ledger.page(
            record.reminder_id, occurrence_id=occurrence_id, limit=MAX_CHANNELS
        )
        if rows:
            return occurrence_view(rows)
        for entry in live:  # of several versions where it was carried over
            state = await self._store.due.read(entry.key)
            if state is not None and state.fate is not Fate.VOID:
                return _planned(record, entry)
        return None

    # --- writing ----------------------------------------------------------------------------------

    async def _write(self, record: Record, entry: DueEntry, known_at: datetime) -> bool:
        """Whether it is on disk, and no change can miss it."""
        await self._store.records.add_live([entry], stamp=record.stamp)
        again = await self._store.records.read(record.reminder_id)
        if again is None or again.change is not None or again.record.version != record.version:
            return False
        if (await fences_of(self._store.fences, [entry])).stops(entry):
            raise AlreadyEnded(status=Status.CANCELLED.value)
        await self._writer.put([entry], stamp=record.stamp, known_at=known_at)
        return True

    async def _tidy(self, record: Record, beside: Sequence[DueEntry], new: DueEntry) -> None:
        """Drops live entries of triggers that are done. It may fail: the next one tries again."""
        try:
            others = [entry for entry in beside if entry.key.entry_id != new.key.entry_id]
            states = await asyncio.gather(*(self._store.due.read(e.key) for e in others))
            done = [
                entry.key.entry_id
                for entry, state in zip(others, states, strict=True)
                if (state.handled_at is not None if state else entry.version < record.version)
            ]
            if done:
                stamp = stamp_of(self._clock.now())
                await self._store.records.drop_live(record.reminder_id, done, stamp=stamp)
        except StoreUnavailable as error:
            log.warning("trigger.untidy", reminder_id=record.reminder_id, operation=error.operation)


def _planned(record: Record, entry: DueEntry) -> OccurrenceView:
    assert entry.occurrence is not None
    return unrecorded_view(record, entry.occurrence, version=entry.version)


def _refuse_ended(stored: Stored) -> None:
    if stored.record.over is not None:
        raise AlreadyEnded(status=stored.record.over.value)

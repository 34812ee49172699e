"""One job: its sends. What they came to, `settler` puts on record."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Protocol

import structlog
from msgspec import Struct

from dispatcher.fanout import Fanouts
from dispatcher.gate import Finish
from dispatcher.insistence import Insistence
from dispatcher.leg import LegRunner
from dispatcher.receivers import Receivers
from dispatcher.settler import LegEnd, Settler
from dispatcher.tally import Tallies
from dispatcher.work import LegWork, Work
from reminders.lifecycle.endings import ended_row, write_ends
from reminders.lifecycle.planning import body_of
from reminders.model.codec import decode_body, decode_entry, encode
from reminders.model.entry import DueEntry, Kind, Occurrence
from reminders.model.ledger import OccurrenceStatus
from reminders.platform import Platform
from reminders.ports import Job

log = structlog.get_logger()

Turn = Callable[[DueEntry], Awaitable[None]]
"""Writes the entries of a backfill's page, and the next page's."""


class Steps(Struct, frozen=True, kw_only=True):
    """What lifecycle does for jobs that deliver nothing themselves."""

    finish: Finish
    turn: Turn


class Until(Protocol):
    """Waits for a time, such as `Hold.until`."""

    async def __call__(self, at: datetime, *, exact: bool) -> None:
        """Returns when it has surely come; `exact`: at once."""


class Start(Struct, frozen=True, kw_only=True):
    """When a job's legs begin."""

    until: Until
    opened: Callable[[Job], None]
    """Told right before they do: from then on each counts by itself."""


class Sent(Struct, frozen=True, kw_only=True, gc=False):
    """A job of which nothing is left to send."""

    entry: DueEntry
    """To be marked handled once `end` is on record."""
    end: LegEnd | None


class JobRunner:
    """Runs jobs."""

    def __init__(
        self,
        platform: Platform,
        legs: LegRunner,
        fanouts: Fanouts,
        settler: Settler,
        steps: Steps,
        start: Start,
    ) -> None:
        self._clock = platform.clock
        self._store = platform.store
        self._legs = legs
        self._fanouts = fanouts
        self._tallies = Tallies(platform)
        self._receivers = Receivers(platform)
        self._settler = settler
        self._finish = steps.finish
        self._turn = steps.turn
        self._until, self._opened = start.until, start.opened
        self._insist = Insistence(platform.clock)

    async def run(self, job: Job) -> Sent:
        """When this returns, all that is left is to write what it answers. A raise is a bug."""
        entry = decode_entry(job.raw)
        if entry.kind is Kind.FINISH:
            await self._insist(self._finish, entry.reminder_id)
            return Sent(entry=entry, end=None)
        if entry.kind is Kind.BACKFILL:
            await self._insist(self._turn, entry)
            return Sent(entry=entry, end=None)
        if entry.kind is Kind.TALLY:
            await self._tallies.count(job, entry)
            return Sent(entry=entry, end=None)
        return Sent(entry=entry, end=await self._deliver(job, entry))

    async def _deliver(self, job: Job, entry: DueEntry) -> LegEnd | None:
        occurrence = entry.occurrence
        if occurrence is None:
            raise ValueError(f"{entry.kind} entry without an occurrence")
        raw_body = entry.body or await self._body(entry)
        if raw_body is None:
            await self._bodiless(job, entry, occurrence)
            return None
        work = Work(
            job=job,
            entry=entry,
            occurrence=occurrence,
            raw_body=raw_body,
            body=decode_body(raw_body),
        )
        if job.claimed_at < entry.key.ring_at:
            # Nobody was promised the instant of a retry, or of what was put off.
            await self._until(entry.key.ring_at, exact=entry.kind is Kind.OCCURRENCE)
        if work.fans_out:
            await self._fanouts.begin(work)
            return None
        if entry.page is not None:
            self._opened(job)  # `dispatcher.room` bounds pages
            await self._fanouts.turn(work)
            return None
        legs = await self._receivers.legs(work)
        self._opened(job)
        if len(legs) == 1:
            return await self._legs.run(legs[0])
        # Each to its end, whatever happens to the others: an attempt can't be taken back.
        ends = await asyncio.gather(*(self._recorded(leg) for leg in legs), return_exceptions=True)
        for end in ends:
            if end is not None:
                raise end
        return None

    async def _recorded(self, leg: LegWork) -> None:
        """One of several: a slow one must not keep the others' outcomes from the ledger."""
        end = await self._legs.run(leg)
        if end is not None:
            await self._settler.record(end)

    async def _body(self, entry: DueEntry) -> bytes | None:
        if entry.kind in (Kind.BACKFILLED, Kind.REPLAY, Kind.FANOUT):  # no live entry, but a record
            stored = await self._insist(self._store.records.read, entry.reminder_id)
            return encode(body_of(stored.record.definition)) if stored is not None else None
        return await self._insist(self._store.records.body, entry.reminder_id, entry.key.entry_id)

    async def _bodiless(self, job: Job, entry: DueEntry, occurrence: Occurrence) -> None:
        """Its live entry is gone. Without a record, the create was never acknowledged."""
        stored = await self._insist(self._store.records.read, entry.reminder_id)
        if stored is None:
            log.warning("delivery.orphan", entry_id=entry.key.entry_id)
            return
        log.error("delivery.body_missing", entry_id=entry.key.entry_id)
        failed = OccurrenceStatus.FAILED
        row = ended_row(entry, occurrence, failed, "body_missing", claimed_at=job.claimed_at)
        await self._insist(write_ends, self._store, [row], at=self._clock.now())

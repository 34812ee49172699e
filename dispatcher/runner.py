"""One job: its sends. What they came to, `settler` puts on record."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog
from msgspec import Struct

from dispatcher.gate import Finish
from dispatcher.insistence import Insistence
from dispatcher.leg import LegRunner
from dispatcher.settler import LegEnd, Settler
from dispatcher.work import LegWork, Work
from reminders.lifecycle.endings import ended_row
from reminders.lifecycle.planning import body_of
from reminders.model.codec import decode_body, decode_entry, encode
from reminders.model.entry import DueEntry, Kind, Leg, Occurrence
from reminders.model.ledger import OccurrenceStatus
from reminders.platform import Platform
from reminders.ports import Job

log = structlog.get_logger()

Turn = Callable[[DueEntry], Awaitable[None]]
"""Writes the entries of a backfill's page, and the next page's."""


class Sent(Struct, frozen=True, kw_only=True):
    """A job of which nothing is left to send."""

    entry: DueEntry
    """To be marked handled once `end` is on record."""
    end: LegEnd | None


class JobRunner:
    """Runs jobs."""

    def __init__(
        self, platform: Platform, legs: LegRunner, settler: Settler, finish: Finish, turn: Turn
    ) -> None:
        self._clock = platform.clock
        self._store = platform.store
        self._legs = legs
        self._settler = settler
        self._finish = finish
        self._turn = turn
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
        legs = work.legs()
        if len(legs) == 1:
            return await self._leg(work, legs[0])
        # Each to its end, whatever happens to the others: an attempt can't be taken back.
        ends = await asyncio.gather(
            *(self._recorded(work, leg) for leg in legs), return_exceptions=True
        )
        for end in ends:
            if end is not None:
                raise end
        return None

    async def _recorded(self, work: Work, leg: Leg) -> None:
        """One of several: a slow one must not keep the others' outcomes from the ledger."""
        end = await self._leg(work, leg)
        if end is not None:
            await self._settler.record(end)

    async def _leg(self, work: Work, leg: Leg) -> LegEnd | None:
        channel = next(each for each in work.body.channels if each.channel_id == leg.channel_id)
        return await self._legs.run(
            LegWork(
                work=work,
                channel=channel,
                target=leg.target,
                attempt=leg.attempt,
                replay=leg.replay,
            )
        )

    async def _body(self, entry: DueEntry) -> bytes | None:
        if entry.kind in (Kind.BACKFILLED, Kind.REPLAY):  # has no live entry, but its record
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
        await self._insist(self._store.ledger.write, [row], at=self._clock.now())

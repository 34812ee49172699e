"""Fan-out: what a topic's reminder says goes to each of its subscribers, page by page.

```
 occurrence's job ──▶ its row in the ledger ──▶ due[fanout] × 16, due[tally] ──▶ handled
 a page's job ──▶ record's word, subscribers, what is on record ──▶ due[fanout], the next page
              ──▶ a leg for each subscriber: sent, recorded, or an entry of its own
              ──▶ what the page came to ──▶ handled
```
Each leg is a delivery like any other: its own key, row, retries, and place at its destination. The
next page's entry is written before the first send of this one, so a slow page delays nobody, and
any dispatcher may have it. An entry is due when its predecessor was claimed, so a fan-out that
takes an hour never keeps the watermark of its shard back for longer than a page takes.

| crashed after            | what the repeat finds      | and does                         |
|--------------------------|----------------------------|----------------------------------|
| the occurrence's row     | the row, not counted yet   | writes the same entries          |
| the next page's entry    | no rows of this stretch    | the entry again, sends all       |
| some sends               | rows of what was recorded  | sends the others, as of unknown  |
|                          |                            | outcome                          |
| a retry's or parked row  | the row, with its time     | writes the same entry again      |
| the count of the page    | rows of all                | counts and is handled            |

A page that comes for the third time sends one by one, so what takes the process down is the only
one that is counted as crashed. What is cancelled, paused or expired meanwhile ends the chain at its
next page; retries ask by themselves.
"""

import asyncio
from collections import Counter
from datetime import timedelta

import structlog
from msgspec.structs import replace
from opentelemetry import metrics

from dispatcher import rows
from dispatcher.gate import RecordGate
from dispatcher.insistence import Insistence
from dispatcher.leg import LegRunner
from dispatcher.requeue import put_off_for
from dispatcher.retry import expired, share
from dispatcher.room import Room
from dispatcher.settings import DispatcherSettings
from dispatcher.settler import Settler
from dispatcher.stretch import Stretch, Stretches
from dispatcher.work import LegWork, Work
from reminders.buckets import parked_entry_id
from reminders.lifecycle.endings import ended_by, ended_row, write_ends
from reminders.lifecycle.fanning import COUNT_AFTER, first_pages, page_entry, tally_entry
from reminders.lifecycle.planning import instant_ms
from reminders.lifecycle.writing import EntryWriter, stamp_of
from reminders.model.entry import DueEntry, Kind, Origin
from reminders.model.fanout import PageCount, Standing, TargetCounts
from reminders.model.ledger import LedgerRow, OccurrenceStatus
from reminders.platform import Platform

ALONE_FROM = 3
"""A page that is delivered so often sends one by one."""
REPLAY_PACE = timedelta(seconds=4)
"""From one page to the next of a replay: at most 800 a second come of one call."""

_METER = metrics.get_meter("tocsin.dispatcher")

log = structlog.get_logger()


class Fanouts:
    """Begins fan-outs, and turns their pages."""

    def __init__(
        self,
        platform: Platform,
        settings: DispatcherSettings,
        legs: LegRunner,
        gate: RecordGate,
        settler: Settler,
        meter: metrics.Meter = _METER,
    ) -> None:
        self._clock = platform.clock
        self._store = platform.store
        self._legs = legs
        self._gate = gate
        self._settler = settler
        self._writer = EntryWriter(platform)
        self._stretches = Stretches(platform)
        self._room = Room(platform.clock, legs.turn)
        self._park_for = settings.park_for / 2
        self._insist = Insistence(platform.clock)
        self._begun = meter.create_counter("tocsin_fanouts", description="Fan-outs begun")
        self._subscribers = meter.create_counter(
            "tocsin_fanout_subscribers",
            description="Subscribers that pages came to, by what was done: told, paused, filtered",
        )

    async def begin(self, work: Work) -> None:
        """Writes the first page of each chain. When it returns, the occurrence itself is done."""
        row: LedgerRow | None = None
        if not work.first_hand:
            entry = work.entry
            row = await self._insist(
                self._store.ledger.read, entry.reminder_id, entry.occurrence_id
            )
        if row is not None and _over(row):
            return  # it has ended, or its pages are on their way
        if row is None or row.fanout is None:
            why = await self._objection(work)
            if why is not None:
                await self._end(work, why)
                return
            row = await self._open(work, row)
        assert row.fanout is not None
        at, only = row.fanout.started_at, work.body.only_subscriber
        pages = first_pages(work.entry, at, only_subscriber=only)
        tally = tally_entry(work.entry, at + COUNT_AFTER)
        for entries in (pages, [tally]):  # a tally means that the pages are there
            await self._insist(self._writer.put, entries, stamp=stamp_of(self._clock.now()))

    async def turn(self, work: Work) -> None:
        """A page. When it returns, all of it is on record, or has an entry of its own."""
        if not await self._room.take_page():
            await self._insist(self._put_off, work.entry)
            return
        came: Counter[Standing] = Counter()
        failures: list[Exception] = []
        async with asyncio.TaskGroup() as group:
            try:
                why = await self._objection(work)
                if why is not None:
                    await self._stop(work, why)
                    return
                stretch = await self._hand_out(work, group, came, failures)
            finally:
                self._room.give_page()
        if failures:
            raise failures[0]
        await self._turned(work, stretch, came)

    async def _stop(self, work: Work, why: str) -> None:
        """The chain ends here."""
        page = work.entry.page
        assert page is not None
        count = PageCount(bucket=page.bucket, page=page.page, last=True, why=why)
        await self._record(work, count)
        log.info("fanout.stopped", reminder_id=work.entry.reminder_id, page=page.page, why=why)

    async def _hand_out(
        self,
        work: Work,
        group: asyncio.TaskGroup,
        came: Counter[Standing],
        failures: list[Exception],
    ) -> Stretch:
        """Returns when the last send has begun."""
        stretch = await self._stretches.read(work)
        await self._write_following(work, stretch)
        for leg in stretch.legs:
            await self._room.enter()
            task = group.create_task(self._deliver(leg, came, failures), name="dispatcher-leg")
            if work.job.deliveries >= ALONE_FROM:
                await asyncio.wait((task,))
            await asyncio.sleep(0)  # it takes its place now, so that the next one sees how many do
        return stretch

    async def give_up(self, work: Work) -> None:
        """Of a page that raises again and again: what is not on record has failed."""
        stretch = await self._stretches.read(work)
        await self._write_following(work, stretch)
        ends = [rows.given_up(leg, leg.found or rows.blank(leg), "poison") for leg in stretch.legs]
        if ends:
            await self._insist(write_ends, self._store, ends, at=self._clock.now())
        await self._turned(work, stretch, Counter(row.standing for row in ends))

    # --- a beginning ------------------------------------------------------------------------------

    async def _objection(self, work: Work) -> str | None:
        entry = work.entry
        if entry.replay is None and expired(work.body, work.occurrence, self._clock.now()):
            return "expired"
        if entry.kind is Kind.OCCURRENCE:
            return None
        return await self._insist(self._gate.objection, entry)

    async def _open(self, work: Work, skipped: LedgerRow | None) -> LedgerRow:
        """The occurrence's row: from here on the times of the entries are given. `skipped`: what it
        said before a backfill; a run of skipped ones stays with its first.
        """
        entry, now = work.entry, self._clock.now()
        row = rows.fanned_out(work, instant_ms(now), skipped)
        await self._insist(self._store.ledger.write, [row], at=now)
        self._begun.add(1)
        log.info(
            "fanout.begun",
            reminder_id=entry.reminder_id,
            occurrence_id=entry.occurrence_id,
            topic_id=work.body.topic_id,
        )
        return row

    async def _end(self, work: Work, why: str) -> None:
        entry = work.entry
        log.info("fanout.ended", reminder_id=entry.reminder_id, why=why)
        if work.occurrence.origin is Origin.BACKFILL:
            return  # no row: another backfill may ring it
        status = ended_by(why)
        row = ended_row(entry, work.occurrence, status, why, claimed_at=work.job.claimed_at)
        await self._insist(write_ends, self._store, [row], at=self._clock.now())

    # --- a page -----------------------------------------------------------------------------------

    async def _put_off(self, entry: DueEntry) -> None:
        """The same page, later: others are being handed out."""
        counter = entry.parked + 1
        drawn = share(entry.key.entry_id, entry.parked)
        at = instant_ms(self._clock.now() + put_off_for(self._park_for, entry.parked, drawn))
        entry_id = parked_entry_id(entry.key.entry_id, counter)
        key = replace(entry.key, ring_at=at, entry_id=entry_id)
        later = replace(entry, key=key, parked=counter)
        await self._writer.put([later], stamp=stamp_of(self._clock.now()))

    async def _write_following(self, work: Work, stretch: Stretch) -> None:
        """Due when this one was claimed: the same for whoever repeats this job."""
        if stretch.following is None:
            return
        at = instant_ms(work.job.claimed_at)
        if stretch.following.replay is not None:
            at += REPLAY_PACE
        entry = page_entry(work.entry, stretch.following, at)
        await self._insist(self._writer.put, [entry], stamp=stamp_of(self._clock.now()))

    async def _deliver(
        self, leg: LegWork, came: Counter[Standing], failures: list[Exception]
    ) -> None:
        """One leg to its end, whatever happens to the others."""
        row = leg.found
        try:
            end = await self._legs.run(leg)
            if end is not None:
                await self._settler.record(end)
                row = end.row
        except Exception as error:  # noqa: BLE001 - raised when the page's others have ended
            failures.append(error)
        else:
            came[row.standing if row is not None else Standing.OPEN] += 1
        finally:
            self._room.settled()

    async def _turned(self, work: Work, stretch: Stretch, came: Counter[Standing]) -> None:
        page = work.entry.page
        assert page is not None
        now_ended = TargetCounts(
            open=came[Standing.OPEN],
            taken=came[Standing.TAKEN],
            stopped=came[Standing.STOPPED],
            failed=came[Standing.FAILED],
        )
        fates = {"told": came.total(), "paused": stretch.paused, "filtered": stretch.filtered}
        for fate, number in fates.items():
            if number:
                self._subscribers.add(number, {"fate": fate})
        count = PageCount(
            bucket=page.bucket,
            page=page.page,
            last=stretch.following is None,
            paused=stretch.paused,
            filtered=stretch.filtered,
            counts=stretch.done + now_ended,
        )
        await self._record(work, count)

    async def _record(self, work: Work, count: PageCount) -> None:
        """Of a replay only that it is over: what it changed is counted anew."""
        entry = work.entry
        if entry.replay is None:
            await self._insist(
                self._store.fanouts.record,
                entry.reminder_id,
                entry.occurrence_id,
                count,
                at=self._clock.now(),
            )
        elif count.last:
            tally = tally_entry(
                entry, instant_ms(work.job.claimed_at) + COUNT_AFTER, replay=entry.replay
            )
            await self._insist(self._writer.put, [tally], stamp=stamp_of(self._clock.now()))


def _over(row: LedgerRow) -> bool:
    """Whether nothing is left to begin. What was skipped may be backfilled."""
    if row.fanout is None:
        return row.ended is not OccurrenceStatus.SKIPPED
    return row.fanout.counted_at is not None

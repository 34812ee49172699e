"""What comes back later: retries, parked deliveries and what quiet hours put off, as due entries.

Both carry the leg, its attempt and the body itself (the live entry may be gone by then). Their
entry ids name the leg and the attempt, and a retry's time is recorded, so a repeat writes the same
row. Where the time differs nevertheless (a parked job, a repeat long after), two entries may ring
for one attempt: both read the ledger, and the second is suppressed.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

import structlog
from msgspec.structs import replace

from dispatcher import rows
from dispatcher.retry import share
from dispatcher.settings import DispatcherSettings
from dispatcher.standing import BUSY, TurnedAway
from dispatcher.work import LegWork
from reminders.buckets import MINUTE, parked_entry_id, retry_entry_id
from reminders.errors import StoreUnavailable
from reminders.lifecycle.grouping import CLOCKS_APART
from reminders.lifecycle.planning import instant_ms
from reminders.lifecycle.writing import EntryWriter, stamp_of
from reminders.model.entry import DueEntry, DueKey, Kind, Leg, Origin
from reminders.model.ledger import LedgerRow
from reminders.platform import Platform

AHEAD = timedelta(seconds=1)
"""Where an entry is put whose own minute may be settled."""
MAX_DOUBLINGS = 4

log = structlog.get_logger()


class Requeue:
    """Writes the entries, before what they come from is settled."""

    def __init__(self, platform: Platform, settings: DispatcherSettings) -> None:
        self._due = platform.store.due
        self._ledger = platform.store.ledger
        self._clock = platform.clock
        self._grace = platform.limits.grace
        self._park_for = settings.park_for
        self._schedule = settings.retry_schedule
        self._writer = EntryWriter(platform)

    async def again(self, ends: Sequence[tuple[LegWork, LedgerRow]]) -> None:
        """Has the next attempts made at the recorded times, of those that are to have one."""
        entries = [
            following_entry(leg, row, row.next_attempt_at)
            for leg, row in ends
            if row.next_attempt_at is not None
        ]
        await self._put(entries)

    async def park(self, leg: LegWork, turned: TurnedAway = BUSY) -> None:
        """Has the same attempt made later."""
        now = self._clock.now()
        at = now + parking(leg, turned, self._park_for, self._schedule)
        entry = parked_entry(leg, instant_ms(at))
        if leg.target:
            await self._count(leg, entry, now)
        await self._put([entry])
        await self._note(leg, entry, now)

    async def _count(self, leg: LegWork, entry: DueEntry, since: datetime) -> None:
        """On record before it waits: a fan-out has not ended while one of its deliveries waits, and
        a page that comes again must not send what waits already.
        """
        known = leg.found if leg.looked else await self._ledger.read(*leg.place)
        await self._record(leg, known, entry, since)

    async def _note(self, leg: LegWork, entry: DueEntry, since: datetime) -> None:
        """Where it waits, on record: else nobody would find it before its time. It may fail."""
        work = leg.work
        if leg.target or leg.replay is not None or work.occurrence.origin is Origin.BACKFILL:
            return
        try:
            known = None if work.first_hand else await self._ledger.read(*leg.place)
            await self._record(leg, known, entry, since)
        except StoreUnavailable as error:
            log.warning("parking.unnoted", entry_id=entry.key.entry_id, operation=error.operation)

    async def _record(
        self, leg: LegWork, known: LedgerRow | None, entry: DueEntry, since: datetime
    ) -> None:
        """The stamp is before that of any attempt to come, by whatever process's clock."""
        row = rows.parked(leg, known or rows.blank(leg), entry)
        if row is not None:
            await self._ledger.write([row], at=since - CLOCKS_APART)

    async def _put(self, entries: Sequence[DueEntry]) -> None:
        now = self._clock.now()
        settled_before = now - MINUTE - self._grace / 2
        found = [entry for entry in entries if entry.key.minute > settled_before]
        if len(found) < len(entries):
            old = [entry for entry in entries if entry.key.minute <= settled_before]
            moved = await asyncio.gather(*(self._moved(entry, now) for entry in old))
            found += [entry for entry in moved if entry is not None]
        await self._writer.put(found, stamp=stamp_of(now))

    async def _moved(self, entry: DueEntry, now: datetime) -> DueEntry | None:
        """Of a repeat long after: its minute may be settled, and nobody would look into it again;
        so it is put where it is found. None: it was handled there.
        """
        state = await self._due.read(entry.key)
        if state is not None and state.handled_at is not None:
            return None
        return replace(entry, key=replace(entry.key, ring_at=instant_ms(now + AHEAD)))


def put_off_for(park_for: timedelta, parked: int, drawn: float) -> timedelta:
    """The wait after it was put off so often: it doubles, up to a bound. `drawn`: `share` of it."""
    return park_for * (1 << min(parked, MAX_DOUBLINGS)) * drawn


def parking(
    leg: LegWork, turned: TurnedAway, park_for: timedelta, schedule: Sequence[timedelta]
) -> timedelta:
    """For how long it is parked: back-off with jitter, so that many do not come back at once.

    A time that was named for this one is kept to: `rate`, `asked`. A place aside is not looked for
    before there may be one: `slow`. A breaker that stays open longer
    than the back-off is waited for, but never longer than the retries of a delivery that failed as
    often as this one was parked: so a breaker delays nothing more than its destination's failures
    would have.
    """
    parked = leg.work.entry.parked
    drawn = share(leg.delivery_key, parked)
    backoff = put_off_for(park_for, parked, drawn)
    named = timedelta(seconds=turned.wait_s)
    if turned.reason == "rate":
        return named
    if turned.reason == "asked":
        return named * (1 + (drawn - 0.5) / 5)
    if turned.reason == "slow":
        return max(backoff, named)
    schedule = leg.work.body.retry.schedule or schedule
    longest = schedule[min(leg.attempt - leg.before + parked, len(schedule) - 1)]
    return max(backoff, min(named * (0.5 + drawn), longest))


def following_entry(leg: LegWork, row: LedgerRow, at: datetime) -> DueEntry:
    """The entry of the attempt after those on record: a retry, or one that quiet hours put off."""
    kind = Kind.PARKED if row.parked else Kind.RETRY
    return _entry(leg, kind, row.attempt_count + 1, row.parked, at)


def parked_entry(leg: LegWork, at: datetime) -> DueEntry:
    """The entry of an attempt whose destination could not be tried in time."""
    return _entry(leg, Kind.PARKED, leg.attempt, leg.work.entry.parked + 1, at)


def _entry(leg: LegWork, kind: Kind, attempt: int, parked: int, at: datetime) -> DueEntry:
    entry, channel_id = leg.work.entry, leg.channel.channel_id
    entry_id = retry_entry_id(
        entry.reminder_id, leg.work.occurrence.occurrence_id, channel_id, attempt, leg.target
    )
    if parked:
        entry_id = parked_entry_id(entry_id, parked)
    return replace(
        entry,
        key=DueKey(ring_at=at, entry_id=entry_id, shard=entry.key.shard),
        kind=kind,
        # The occurrence's own entry is expanded and superseded; these only deliver.
        next_at=None,
        recurs=False,
        leg=Leg(channel_id=channel_id, target=leg.target, attempt=attempt, replay=leg.replay),
        parked=parked,
        body=leg.work.raw_body,
        page=None,
    )

"""What comes back later: retries and parked deliveries, as due entries.

Both carry the leg, its attempt and the body itself (the live entry may be gone by then). Their
entry ids name the leg and the attempt, and a retry's time is recorded, so a repeat writes the same
row. Where the time differs nevertheless (a parked job, a repeat long after), two entries may ring
for one attempt: both read the ledger, and the second is suppressed.
"""

from datetime import datetime, timedelta

from msgspec.structs import replace

from dispatcher.retry import share
from dispatcher.settings import DispatcherSettings
from dispatcher.work import LegWork
from reminders.buckets import MINUTE, parked_entry_id, retry_entry_id
from reminders.lifecycle.planning import instant_ms
from reminders.lifecycle.writing import EntryWriter, stamp_of
from reminders.model.entry import DueEntry, DueKey, Kind, Leg
from reminders.platform import Platform

AHEAD = timedelta(seconds=1)
"""Where an entry is put whose own minute may be settled."""
MAX_DOUBLINGS = 4


class Requeue:
    """Writes the entries, before what they come from is settled."""

    def __init__(self, platform: Platform, settings: DispatcherSettings) -> None:
        self._due = platform.store.due
        self._clock = platform.clock
        self._grace = platform.limits.grace
        self._park_for = settings.park_for
        self._writer = EntryWriter(platform)

    async def retry(self, leg: LegWork, attempt: int, at: datetime) -> None:
        """Has that attempt made at the recorded time."""
        await self._put(retry_entry(leg, attempt, at))

    async def park(self, leg: LegWork) -> None:
        """Has the same attempt made a little later."""
        parked = leg.work.entry.parked
        wait = self._park_for * (1 << min(parked, MAX_DOUBLINGS))
        at = self._clock.now() + wait * share(leg.delivery_key, parked)
        await self._put(parked_entry(leg, instant_ms(at)))

    async def _put(self, entry: DueEntry) -> None:
        now = self._clock.now()
        if entry.key.minute + MINUTE + self._grace / 2 <= now:
            # A repeat long after: that minute may be settled, and nobody would look into it again.
            state = await self._due.read(entry.key)
            if state is not None and state.handled_at is not None:
                return
            entry = replace(entry, key=replace(entry.key, ring_at=instant_ms(now + AHEAD)))
        await self._writer.put([entry], stamp=stamp_of(now))


def retry_entry(leg: LegWork, attempt: int, at: datetime) -> DueEntry:
    """The entry of a later attempt."""
    return _entry(leg, Kind.RETRY, attempt, 0, at)


def parked_entry(leg: LegWork, at: datetime) -> DueEntry:
    """The entry of an attempt that found no place in time."""
    return _entry(leg, Kind.PARKED, leg.attempt, leg.work.entry.parked + 1, at)


def _entry(leg: LegWork, kind: Kind, attempt: int, parked: int, at: datetime) -> DueEntry:
    entry, channel_id = leg.work.entry, leg.channel.channel_id
    entry_id = retry_entry_id(
        entry.reminder_id, leg.work.occurrence.occurrence_id, channel_id, attempt
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
    )

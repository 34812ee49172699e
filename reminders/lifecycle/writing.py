"""Due entries onto disk, such that the scanner finds them in time.

Three things can go wrong between deciding on a time and the write's acknowledgement:

* The scanner has read that stretch already. So after the write, with the clock read *then*,
  everything due within the look-ahead is announced as a hint (`announcing`). An entry that a
  slice missed was written after that slice was read, hence is due within the look-ahead of the
  acknowledgement: it is always announced.
* The minute may even be settled, if the write took very long. So after the write the writer looks
  at the clock, and moves what is too late for its minute to the current one (DESIGN §3, late
  writer). A move is safe against the old place because claims are unique by occurrence, not by
  place.
* The reminder was cancelled meanwhile, so long ago that the revocation has left Redis. So a hint is
  dated by the clock before the writer *learned* that the entry may ring, not before it wrote: such
  a copy is too old to be believed, and the scanner reads the row, which is void.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
import structlog

from reminders.buckets import MINUTE
from reminders.lifecycle.announcing import Announcer
from reminders.lifecycle.planning import instant_ms
from reminders.model.entry import DueEntry, Fate, Kind, Origin
from reminders.model.record import Record, Status
from reminders.platform import Platform

log = structlog.get_logger(__name__)
EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
MICROSECOND = timedelta(microseconds=1)
CLOCKS_DIFFER = timedelta(seconds=1)
"""More than any two processes' clocks do: what a scanner may have read by its own is announced by
ours."""


def stamp_of(at: datetime) -> int:
    """µs since 1970, as stamps are."""
    return (at - EPOCH) // MICROSECOND


class EntryWriter:
    """Writes due entries of occurrences and retries; used by whoever creates or changes them."""

    def __init__(self, platform: Platform) -> None:
        self._store = platform.store
        self._coordination = platform.coordination
        self._clock = platform.clock
        self._limits = platform.limits
        self._announcer = Announcer(platform)

    async def put(
        self, entries: Sequence[DueEntry], *, stamp: int, known_at: datetime | None = None
    ) -> None:
        """Writes entries whose live entries are acknowledged (retries have none), and sees them
        found.

        `known_at`: the clock before the record was read that lets these ring; None: now, where no
        record was. It dates the hint: a scanner trusts it no longer than a revocation lives, so a
        writer that was held up for minutes cannot ring what was cancelled meanwhile.
        """
        if not entries:
            return
        written_from = self._clock.now() if known_at is None else known_at
        await self._store.due.put(entries, stamp=stamp)
        await self.written(entries, written_from=written_from)

    async def put_missing(
        self, entries: Sequence[DueEntry], *, known_at: datetime | None = None
    ) -> list[DueEntry]:
        """As `put`, those that no earlier call has written; answers them."""
        states = await asyncio.gather(*(self._store.due.read(each.key) for each in entries))
        new = [each for each, state in zip(entries, states, strict=True) if state is None]
        await self.put(new, stamp=stamp_of(self._clock.now()), known_at=known_at)
        return new

    async def written(self, entries: Sequence[DueEntry], *, written_from: datetime) -> None:
        """The part after the write's acknowledgement, for entries that `Records.create` wrote."""
        now = self._clock.now()
        horizon = now + self._limits.lookahead + CLOCKS_DIFFER
        soon = [entry for entry in entries if entry.key.ring_at <= horizon]  # of most creates none
        late = [entry for entry in soon if self._late(entry, now)]
        near = [entry for entry in soon if not self._late(entry, now)]
        await self._announcer.announce(near, written_from)
        for entry in late:
            await self._move(entry)

    async def move_late(self, entries: Sequence[DueEntry]) -> None:
        """Moves open entries that somebody wrote into a minute that was settled, and died before he
        looked at the clock. What is late in another minute, the trailing scan finds.
        """
        now = self._clock.now()
        late = [entry for entry in entries if self._late(entry, now)]
        if not late:
            return
        settled_through = await self._store.progress.read()
        for entry in late:
            if entry.key.minute < settled_through[entry.key.shard]:
                await self._move(entry)

    # --- moving what is too late for its minute -------------------------------------------------

    def _late(self, entry: DueEntry, now: datetime) -> bool:
        return entry.key.minute + MINUTE + self._limits.grace / 2 <= now

    async def _move(self, entry: DueEntry) -> None:
        """Puts an entry at the current minute unless something became of it where it is."""
        known_at = self._clock.now()
        while self._late(entry, self._clock.now()):
            known_at = self._clock.now()
            moved = await self._moved(entry)
            if moved is None:
                return
            entry = moved
        await self._announcer.announce([entry], known_at)

    async def _moved(self, entry: DueEntry) -> DueEntry | None:
        """Written in this order: live entry, a look at the record, new place, old place void.

        So whoever changes the reminder meanwhile sees the live entry, or we see the change; and
        whoever repeats this after a crash finds the old place open, or the live entry naming the
        new one. While both are there, one of them rings: claims are unique by occurrence.
        """
        if await self._over(entry):
            return None
        now = self._clock.now()
        stamp = stamp_of(now)
        key = msgspec.structs.replace(entry.key, ring_at=instant_ms(now))
        moved = msgspec.structs.replace(entry, key=key)
        if entry.kind is Kind.OCCURRENCE:
            await self._store.records.add_live([moved], stamp=stamp)
            stored = await self._store.records.read(entry.reminder_id)
            if stored is None or not _rings(stored.record, entry):
                return None
        await self._store.due.put([moved], stamp=stamp)
        await self._store.due.mark([entry.key], Fate.VOID, stamp=stamp)
        log.warning("entry.moved", entry_id=key.entry_id, late_by=str(now - entry.key.ring_at))
        return moved

    async def _over(self, entry: DueEntry) -> bool:
        """Whether it was claimed, made void or settled where it is."""
        state = await self._store.due.read(entry.key)
        if state is not None and state.fate is not None:
            return True
        found = await self._coordination.claims.claimed(entry.key.shard, [entry])
        if entry.dedupe_id in found.claimed:
            stamp = stamp_of(self._clock.now()) + 1
            await self._store.due.mark([entry.key], Fate.CLAIMED, stamp=stamp)
            return True
        if state is None or state.handled_at is None:
            return False
        # Handled, but never claimed: skipped, which is in the ledger; or closed as an orphan,
        # because its record was not written yet. Nobody will ring that unless we go on.
        occurrence_id = entry.occurrence.occurrence_id if entry.occurrence else None
        rows = await self._store.ledger.page(
            entry.reminder_id, occurrence_id=occurrence_id, limit=1
        )
        return bool(rows)


def _rings(record: Record, entry: DueEntry) -> bool:
    """Whether the record lets it ring. A change that was refused leaves its version, as fired; a
    trigger rings all the same.
    """
    if record.version != entry.version:
        return False
    triggered = entry.occurrence is not None and entry.occurrence.origin is Origin.TRIGGER
    return record.status is Status.SCHEDULED or triggered

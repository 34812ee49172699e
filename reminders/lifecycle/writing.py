"""Due entries onto disk, such that the scanner finds them in time.

Two things can go wrong between deciding on a time and the write's acknowledgement:

* The scanner has read that stretch already. So after the write, with the clock read *then*,
everything
  due within the look-ahead is announced as a hint. An entry that a slice missed was written after
  that
  slice was read, hence is due within the look-ahead of the acknowledgement: it is always announced.
* The minute may even be settled, if the write took very long. So after the write the writer looks
at
  the clock, and moves what is too late for its minute to the current one (DESIGN §3, late writer).
  A move is safe against the old place because claims are unique by occurrence, not by place.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
import structlog

from reminders.buckets import MINUTE
from reminders.errors import CoordinationUnavailable
from reminders.lifecycle.planning import instant_ms
from reminders.model.entry import DueEntry, Fate, Kind
from reminders.platform import Platform

log = structlog.get_logger(__name__)
EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
MICROSECOND = timedelta(microseconds=1)


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

    async def put(self, entries: Sequence[DueEntry], *, stamp: int) -> None:
        """Writes entries whose live entries are acknowledged (retries have none), and sees them
        found.
        """
        if not entries:
            return
        written_from = self._clock.now()
        await self._store.due.put(entries, stamp=stamp)
        await self.written(entries, written_from=written_from)

    async def written(self, entries: Sequence[DueEntry], *, written_from: datetime) -> None:
        """The part after the write's acknowledgement, for entries that `Records.create` wrote."""
        now = self._clock.now()
        for entry in entries:
            if self._late(entry, now):
                await self._move(entry)
        horizon = now + self._limits.lookahead + timedelta(seconds=1)
        near = [e for e in entries if e.key.ring_at <= horizon and not self._late(e, now)]
        if not near:
            return
        try:
            await self._coordination.hints.announce(near, written_from=written_from)
        except CoordinationUnavailable:
            # Durable already, and the trailing scan finds them: late by seconds, not refused.
            log.warning("hints.unannounced", entries=len(near))

    def _late(self, entry: DueEntry, now: datetime) -> bool:
        return entry.key.minute + MINUTE + self._limits.grace / 2 <= now

    async def _move(self, entry: DueEntry) -> None:
        """Puts an entry at the current minute unless something became of it where it is."""
        while self._late(entry, self._clock.now()):
            state = await self._store.due.read(entry.key)
            if state is not None and (state.fate is not None or state.handled_at is not None):
                return
            stamp = stamp_of(self._clock.now())
            revocation = await self._coordination.claims.revoke(
                entry.key.shard,
                entry.reminder_id,
                through_version=entry.version - 1,  # only asks: the copy has the same version
                entries=[entry],
            )
            if entry.dedupe_id in revocation.claimed:
                await self._store.due.mark([entry.key], Fate.CLAIMED, stamp=stamp + 1)
                return
            moved = msgspec.structs.replace(
                entry,
                key=msgspec.structs.replace(entry.key, ring_at=instant_ms(self._clock.now())),
            )
            if entry.kind is Kind.OCCURRENCE:
                await self._store.records.add_live([moved], stamp=stamp)
            written_from = self._clock.now()
            await self._store.due.put([moved], stamp=stamp)
            # Only then: a crash in between leaves two that may ring, of which one is claimed.
            await self._store.due.mark([entry.key], Fate.VOID, stamp=stamp)
            log.warning(
                "entry.moved",
                entry_id=entry.key.entry_id,
                late_by=str(written_from - entry.key.ring_at),
            )
            entry = moved
        await self._coordination.hints.announce([entry], written_from=self._clock.now())

"""How the shards stand, by what the stores say: whoever runs, or does not, can be asked about.

For `tocsin shards` and the operator's console. Reads only; a look costs about four small queries a
shard, and more only where much is open.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from reminders.buckets import MINUTE, TRUSTED_LIFE, minute_of
from reminders.model.entry import EntryState, Fate
from reminders.platform import Platform

LOOKED_THROUGH = 120
"""Minutes of a shard that are counted, at most, from the oldest unsettled one on."""
OLDEST_SOUGHT = 5_000
"""Rows that are looked at for the oldest open entry, at most."""
PAGE = 500
TOGETHER = 8
"""Shards that are looked at at once."""


class Shard(Struct, frozen=True, kw_only=True):
    """One shard, as the stores have it."""

    shard: int
    holder: str | None
    """The process that holds its lease (a scanner's member id); None: nobody rings it."""
    settled_through: datetime
    """Every minute before it is settled."""
    settled_age: timedelta
    """How far that is behind the clock. Ordinarily the grace and a minute or two."""
    unsettled: int
    """Entries due by now that are not handled, or not expanded; void ones of the last minutes are
    among them until these are closed."""
    unsettled_is_more: bool
    """Not everything was counted: only the oldest minutes."""
    oldest_due: datetime | None
    """When the oldest entry that should have rung and is not handled was to ring."""
    jobs: int
    """Claimed and not settled by a dispatcher yet."""
    fires: int
    """Claimed and not expanded yet."""
    refused: bool
    """The watermark stands before a minute that may have lost entries: `tocsin rebuild`."""

    def oldest_age(self, now: datetime) -> timedelta:
        """Zero if nothing is due."""
        return max(now - self.oldest_due, timedelta(0)) if self.oldest_due else timedelta(0)


class Overview:
    """Looks at all shards."""

    def __init__(self, platform: Platform) -> None:
        self._store = platform.store
        self._coordination = platform.coordination
        self._clock = platform.clock
        self._shards = range(platform.limits.shards)

    async def shards(self) -> Sequence[Shard]:
        """All of them, in order. Raises `Unavailable`."""
        settled = await self._store.progress.read()
        jobs = await self._coordination.jobs.lengths(self._shards)
        fires = await self._coordination.fires.lengths(self._shards)
        places = asyncio.Semaphore(TOGETHER)

        async def one(shard: int) -> Shard:
            async with places:
                return await self._shard(shard, settled[shard], jobs, fires)

        return await asyncio.gather(*map(one, self._shards))

    async def _shard(
        self,
        shard: int,
        settled_through: datetime,
        jobs: Mapping[int, int],
        fires: Mapping[int, int],
    ) -> Shard:
        token = await self._coordination.leases.holder(shard)
        now = self._clock.now()
        minute, last, open_in = settled_through, minute_of(now), 0
        first_open: datetime | None = None
        looked = 0
        while minute <= last and looked < LOOKED_THROUGH:
            counts = await self._store.due.counts(minute, shard, before=min(minute + MINUTE, now))
            if not counts.settled:
                first_open = first_open or minute
                open_in += max(counts.entries - counts.handled, counts.recurring - counts.expanded)
            minute += MINUTE
            looked += 1
        oldest = await self._oldest(shard, first_open, now) if first_open is not None else None
        return Shard(
            shard=shard,
            holder=token.partition("/")[0] if token is not None else None,
            settled_through=settled_through,
            settled_age=max(now - settled_through, timedelta(0)),
            unsettled=open_in,
            unsettled_is_more=minute <= last,
            oldest_due=oldest,
            jobs=jobs[shard],
            fires=fires[shard],
            refused=now >= settled_through + TRUSTED_LIFE,
        )

    async def _oldest(self, shard: int, minute: datetime, now: datetime) -> datetime | None:
        """When the first entry that waits was to ring; the look ends somewhere."""
        seen, after = 0, None
        while minute < now and seen < OLDEST_SOUGHT:
            before = min(minute + MINUTE, now)
            states = await self._store.due.slice(
                minute, shard, after=after, before=before, limit=PAGE
            )
            for state in states:
                if _waits(state):
                    return state.entry.key.ring_at
            seen += max(len(states), 1)
            if len(states) < PAGE:
                minute, after = minute + MINUTE, None
            else:
                after = states[-1].entry.key
        return None


def _waits(state: EntryState) -> bool:
    return state.handled_at is None and state.fate is not Fate.VOID

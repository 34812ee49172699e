"""Hints for scanners, and those that Redis did not take: told again once it is back.

Whoever writes an entry waits for its hint once. If Redis does not answer, the entry is durable all
the same, and only the trailing scan would find it, up to 16 s late; so the hint is kept and told
again in the background until Redis takes it, or the scan has come by anyway. To repeat one is
harmless, and so is one that comes late: it keeps its date, and a scanner does not believe a copy
that is older than what Redis knows (`ports.Copy.read_at`).

What is kept is bounded; beyond it the oldest are left to the scan, and counted.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter

import structlog

from reminders.errors import CoordinationUnavailable
from reminders.model.entry import DueEntry
from reminders.platform import Platform

log = structlog.get_logger(__name__)

MOST_KEPT = 5_000
"""Entries; a few MB."""
AGAIN = timedelta(milliseconds=500)
AT_ONCE = 500
OVER = timedelta(seconds=20)
"""So long after its time the trailing scan has found an entry, or it is not the lack of a hint that
holds it up."""


class Announcer:
    """For one event loop."""

    def __init__(self, platform: Platform) -> None:
        self._hints = platform.coordination.hints
        self._clock = platform.clock
        self._kept: deque[tuple[datetime, DueEntry]] = deque()
        """With the clock that dates their hints."""
        self._telling: asyncio.Task[None] | None = None
        self.dropped = 0
        """Hints that found no room."""

    @property
    def kept(self) -> int:
        """So many wait for Redis."""
        return len(self._kept)

    async def announce(self, entries: Sequence[DueEntry], written_from: datetime) -> None:
        """Tells them, now or as soon as Redis answers; never raises for that."""
        if not entries:
            return
        try:
            await self._hints.announce(entries, written_from=written_from)
        except CoordinationUnavailable:
            log.warning("hints.unannounced", entries=len(entries))
            self._keep(entries, written_from)

    def _keep(self, entries: Sequence[DueEntry], written_from: datetime) -> None:
        self._kept.extend((written_from, entry) for entry in entries)
        excess = len(self._kept) - MOST_KEPT
        if excess > 0:
            self.dropped += excess
            log.warning("hints.dropped", entries=excess, in_all=self.dropped)
            for _ in range(excess):
                self._kept.popleft()
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._tell_again(), name="hints-again")

    async def _tell_again(self) -> None:
        """Until nothing is left."""
        while self._kept:
            await self._clock.sleep_until(self._clock.now() + AGAIN)
            try:
                await self._tell_all()
            except CoordinationUnavailable:
                continue
            except Exception:
                log.exception("hints.lost", entries=len(self._kept))
                self._kept.clear()

    async def _tell_all(self) -> None:
        """What Redis does not take is kept."""
        while self._kept:
            some = [self._kept.popleft() for _ in range(min(AT_ONCE, len(self._kept)))]
            since = self._clock.now() - OVER
            some = [(at, entry) for at, entry in some if entry.key.ring_at > since]
            try:
                for at, of_one in groupby(some, key=itemgetter(0)):
                    await self._hints.announce([entry for _, entry in of_one], written_from=at)
            except BaseException:
                self._kept.extendleft(reversed(some))
                raise
            if some:
                log.info("hints.announced_late", entries=len(some))

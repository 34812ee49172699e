"""Writing due entries again from the records: after the due rows of a minute may have expired.

Ordinarily every due entry is settled within minutes. Where nobody settled for four weeks, rows have
expired unseen, and a watermark refuses to pass their minutes (`scanner.trail`). This walks all
records, the one operation that does, and brings back what is still promised:

| live entry of a scheduled record              | done                                          |
|-----------------------------------------------|-----------------------------------------------|
| its due row is there                          | nothing: scanners see to it                   |
| gone, with a row in the ledger                | nothing: it rang, or was skipped              |
| gone, and the ledger knows nothing            | written again; a late one at the current minute |
| of a rule of which nothing is ahead           | its newest one is written again: expanders go on |

After the whole walk the watermarks that were refused are moved to where rows can be trusted; from
there on scanners catch up as ever. What is not a live entry (retries, pages of a backfill) is not
brought back: it lay more than four weeks ago, and no retry waits longer than three days.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from datetime import datetime

import structlog
from msgspec import Struct

from reminders.buckets import MINUTE, TRUSTED_LIFE, minute_of
from reminders.lifecycle.grouping import Groups
from reminders.lifecycle.planning import Planner
from reminders.lifecycle.sweeping import share_of
from reminders.lifecycle.writing import EntryWriter
from reminders.model.definition import Recurring
from reminders.model.entry import DueEntry
from reminders.model.record import Status, Stored
from reminders.platform import Platform

log = structlog.get_logger(__name__)

PAGE = 200
Finish = Callable[[str], Awaitable[Stored | None]]


class Rebuilt(Struct, frozen=True, kw_only=True):
    """How far a walk is."""

    records: int
    written: int
    """Entries that were brought back."""
    share: float
    """Of all records, 0 to 1."""


class Rebuild:
    """One walk. Repeating it, or running it twice at once, changes nothing that it has done."""

    def __init__(
        self, platform: Platform, writer: EntryWriter, planner: Planner, finish: Finish
    ) -> None:
        self._store = platform.store
        self._clock = platform.clock
        self._groups = Groups(platform)
        self._writer = writer
        self._planner = planner
        self._finish = finish

    async def run(self) -> AsyncGenerator[Rebuilt, None]:
        """Tells how far it is after each page; the watermarks move at its end. After an error
        (`Unavailable`) it begins anew.
        """
        began = self._clock.now()
        records = written = 0
        through: int | None = None
        while True:
            page = await self._store.records.scan(through, limit=PAGE)
            for stored in page.found:
                records += 1
                written += await self._bring_back(stored)
            through = page.through
            if through is None:
                break
            yield Rebuilt(records=records, written=written, share=share_of(through))
        await self._move_watermarks(began)
        yield Rebuilt(records=records, written=written, share=1.0)

    async def _bring_back(self, stored: Stored) -> int:
        """How many entries of a record were written again."""
        known_at = self._clock.now()
        if stored.change is not None:
            stored = await self._finish(stored.record.reminder_id) or stored
        if (await self._groups.seen(stored)).record.status is not Status.SCHEDULED:
            return 0
        missing = [e for e in stored.current if await self._store.due.read(e.key) is None]
        open_ones = [entry for entry in missing if not await self._on_record(entry)]
        if not open_ones and missing and self._stands_still(stored, missing):
            open_ones = missing[-1:]
        for entry in open_ones:
            whole = self._planner.whole(stored.record, entry)
            audience = stored.record.definition.audience
            await self._store.users.add([whole], audience, stamp=stored.record.stamp)
            await self._writer.put([whole], stamp=stored.record.stamp, known_at=known_at)
            log.warning("entry.rebuilt", entry_id=entry.key.entry_id)
        return len(open_ones)

    def _stands_still(self, stored: Stored, missing: list[DueEntry]) -> bool:
        """Whether nothing is left of a rule that would make it go on."""
        recurring = isinstance(stored.record.definition.schedule, Recurring)
        return recurring and len(missing) == len(stored.current) and missing[-1].recurs

    async def _on_record(self, entry: DueEntry) -> bool:
        rows = await self._store.ledger.page(
            entry.reminder_id, occurrence_id=entry.occurrence_id, limit=1
        )
        return bool(rows)

    async def _move_watermarks(self, began: datetime) -> None:
        """To the oldest minute whose rows could not have expired when the walk began."""
        trusted = minute_of(began - TRUSTED_LIFE) + MINUTE
        for shard, settled_through in sorted((await self._store.progress.read()).items()):
            if settled_through < trusted:
                await self._store.progress.advance(shard, trusted)
                log.warning("watermark.moved", shard=shard, to=trusted.isoformat())

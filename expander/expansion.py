"""One expansion, safe against a change of the reminder at the same time (DESIGN §8).

```
 live entry written ──▶ record read again: same version, not changing? ──▶ index row, due entry
```
Either the changer's read of the live entries sees ours and makes it void, or our second read sees
the
change and leaves the due entry unwritten.
"""

from enum import StrEnum

import structlog

from reminders.lifecycle import Reminders
from reminders.lifecycle.writing import stamp_of
from reminders.model.entry import DueEntry
from reminders.model.record import Status, Stored
from reminders.platform import Platform

log = structlog.get_logger(__name__)

KEPT = 2
"""Live entries that stay: the furthest is what the next expansion goes on from."""


class Expanded(StrEnum):
    """What an expansion came to."""

    WRITTEN = "written"
    THERE = "there"
    """The next occurrence was planned already: as many lie ahead as should."""
    ENDED = "ended"
    """The rule has no further occurrence."""
    OVERTAKEN = "overtaken"
    """The reminder was changed or ended, or is gone: its new version has its own entries."""


class Expansion:
    """Writes what comes after a fired entry."""

    def __init__(self, platform: Platform, reminders: Reminders) -> None:
        self._store = platform.store
        self._clock = platform.clock
        self._writer = reminders.writer
        self._planner = reminders.planner
        self._finish = reminders.changes.finish

    async def expand(self, fired: DueEntry) -> Expanded:
        """Makes sure that the occurrence after `fired` is written, then marks it expanded.
        Idempotent.
        """
        result = await self._expand(fired)
        await self._store.due.expanded([fired], at=self._clock.now())
        log.debug("occurrence.expanded", entry_id=fired.key.entry_id, result=result.value)
        return result

    async def _expand(self, fired: DueEntry) -> Expanded:
        stored = await self._store.records.read(fired.reminder_id)
        if stored is not None and stored.change is not None:
            stored = await self._finish(fired.reminder_id)
        if stored is None or not _current(stored, fired):
            return Expanded.OVERTAKEN
        later = tuple(entry for entry in stored.current if entry.key > fired.key)
        if len(later) >= KEPT:
            await self._repair(stored, later)
            return Expanded.THERE
        following = self._planner.following(stored.record, stored.current or (fired,))
        if not following:
            await self._repair(stored, later)
            return Expanded.ENDED
        if not await self._write(stored, following):
            return Expanded.OVERTAKEN
        await self._drop_old(stored, fired, following)
        return Expanded.WRITTEN

    async def _write(self, stored: Stored, following: tuple[DueEntry, ...]) -> bool:
        record = stored.record
        await self._store.records.add_live(following, stamp=record.stamp)
        again = await self._store.records.read(record.reminder_id)
        if again is None or again.change is not None or again.record.version != record.version:
            return False
        await self._store.users.add(following, record.definition.user_id, stamp=record.stamp)
        await self._writer.put(following, stamp=record.stamp)
        return True

    async def _repair(self, stored: Stored, later: tuple[DueEntry, ...]) -> None:
        """Writes the due entry that an expander which died after its live entry did not write."""
        record = stored.record
        for entry in later:
            if await self._store.due.read(entry.key) is None:
                whole = self._planner.whole(record, entry)
                await self._store.users.add([whole], record.definition.user_id, stamp=record.stamp)
                await self._writer.put([whole], stamp=record.stamp)

    async def _drop_old(
        self, stored: Stored, fired: DueEntry, following: tuple[DueEntry, ...]
    ) -> None:
        """Keeps the partition small. An entry that may still ring keeps its live entry: a cancel
        must see it.
        """
        ordered = sorted((*stored.current, *following), key=lambda entry: entry.key)
        old = {entry.key.entry_id for entry in stored.live if entry.version < fired.version}
        for entry in ordered[:-KEPT]:
            if entry.key != fired.key:
                state = await self._store.due.read(entry.key)
                if state is not None and state.handled_at is None:
                    continue
            old.add(entry.key.entry_id)
        if old:
            await self._store.records.drop_live(
                stored.record.reminder_id, sorted(old), stamp=stamp_of(self._clock.now())
            )


def _current(stored: Stored, fired: DueEntry) -> bool:
    return stored.record.version == fired.version and stored.record.status is Status.SCHEDULED

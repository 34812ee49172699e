"""One expansion, safe against a change of the reminder at the same time (DESIGN §8).

```
 live entry written ──▶ record read again: same version, not changing? ──▶ index row, due entry
```
Either the changer, who reads the live entries after its change began, sees ours and makes it void,
or our second read sees the change and leaves the due entry unwritten.

After downtime the next occurrence may itself be long past, and the one after it, and so on. Those
that the catch-up policy would skip are passed over here, in one go and with one row in the ledger:
one by one, a rule that rings more often than the trailing scan comes by would never catch up.
"""

import asyncio
import time
from datetime import datetime
from enum import StrEnum

import structlog

from reminders.lifecycle import Reminders
from reminders.lifecycle.catching_up import overtaken
from reminders.lifecycle.grouping import fences_of
from reminders.lifecycle.planning import AHEAD
from reminders.lifecycle.writing import stamp_of
from reminders.model.entry import DueEntry, EntryState, Fate, Occurrence
from reminders.model.ledger import LedgerRow, OccurrenceStatus
from reminders.model.record import Record, Status, Stored
from reminders.platform import Platform
from reminders.recurrence import RecurrenceError, holiday_data_version, zone_data_version

log = structlog.get_logger(__name__)

KEPT = 4
"""Live entries that stay, as many as a read of the record brings: the furthest is what the next
expansion goes on from, and with fewer a read would go through all that was ever dropped."""
RUN = 1000
"""Occurrences passed over in one go, about 20 ms; then others have their turn."""
PASSING_S = 1.0
"""How long one expansion passes over occurrences, much less than a message may be left alone; the
next expansion goes on."""


MOST_RUNG = 100
"""Occurrences that rang and may stand behind the cursor: far more than other data ever moves."""


class Expanded(StrEnum):
    """What an expansion came to."""

    WRITTEN = "written"
    THERE = "there"
    """The next occurrence was planned already: as many lie ahead as should."""
    ENDED = "ended"
    """The rule has no further occurrence."""
    BROKEN = "broken"
    """The rule can't be computed any more, such as when its zone is gone: it ends here."""
    CANCELLED = "cancelled"
    """Its group was cancelled: the rule ends here."""
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
        self._end_with_group = reminders.changes.end_with_group

    async def expand(self, fired: DueEntry) -> Expanded:
        """Makes sure that the occurrence after `fired` is written, then marks it expanded.
        Idempotent.
        """
        result = await self._expand(fired)
        await self._store.due.expanded([fired], at=self._clock.now())
        log.debug("occurrence.expanded", entry_id=fired.key.entry_id, result=result.value)
        return result

    async def _expand(self, fired: DueEntry) -> Expanded:
        known_at = self._clock.now()
        stored = await self._finish(fired.reminder_id)
        if stored is None or not _current(stored, fired):
            return Expanded.OVERTAKEN
        # After the record was read: whoever reads later what is written here sees the fence.
        if (await fences_of(self._store.fences, [fired])).stops(fired):
            await self._end_with_group(fired.namespace, fired.reminder_id)
            return Expanded.CANCELLED
        later = tuple(each for each in stored.current if _order(each) > _order(fired))
        await self._repair(stored, later, known_at)
        return Expanded.THERE if len(later) >= AHEAD else await self._extend(stored, fired)

    async def _extend(self, stored: Stored, fired: DueEntry) -> Expanded:
        try:
            following = await self._following(stored.record, stored.current or (fired,))
        except RecurrenceError as error:
            log.exception("rule.broken", reminder_id=fired.reminder_id, why=str(error))
            return Expanded.BROKEN
        if not following:
            return Expanded.ENDED
        if not await self._write(stored, following):
            return Expanded.OVERTAKEN
        await self._drop_old(stored, fired, following)
        return Expanded.WRITTEN

    # --- the next one ---------------------------------------------------------------------------

    async def _following(self, record: Record, live: tuple[DueEntry, ...]) -> tuple[DueEntry, ...]:
        """The next one that may still ring."""
        coming = self._planner.after(record, live, limit=2)
        if any(_of_other_data(entry) for entry in live):
            coming = await self._without_rung(record, coming)
        if self._overtaken(record, coming) is not None:
            coming = await self._pass_over(record, live)
        return self._planner.entries(record, coming[:1], coming[1:])

    async def _without_rung(self, record: Record, coming: list[Occurrence]) -> list[Occurrence]:
        """Goes on behind what the ledger knows already (R-REC-7).

        Where occurrences do not come in the order of their local intents, other data can put one
        that rang before the cursor behind it. A claim would not notice: it goes by the new minute.
        """
        for _ in range(MOST_RUNG):
            if not coming:
                break
            name = coming[0].occurrence_id
            if not await self._store.ledger.page(record.reminder_id, occurrence_id=name, limit=1):
                break
            coming = self._planner.behind(record, coming[:1], limit=2)
        return coming

    def _overtaken(self, record: Record, coming: list[Occurrence]) -> str | None:
        """Why the first of these is skipped, if it is."""
        if not coming:
            return None
        policies = record.definition.policies
        return overtaken(
            policies.catch_up,
            policies.catch_up_max_age,
            fire_at=coming[0].fire_at,
            next_at=coming[1].fire_at if len(coming) > 1 else None,
            now=self._clock.now(),
        )

    async def _pass_over(self, record: Record, live: tuple[DueEntry, ...]) -> list[Occurrence]:
        """What comes after those that are skipped, or after as many as there is time for. These are
        on record before that: a repeat finds the same run, or a longer one, and replaces the row.
        """
        until = time.monotonic() + PASSING_S
        run = self._planner.after(record, live, limit=RUN + 2)
        first, last, count = run[0], run[0], 0
        reason = self._overtaken(record, run[:2])
        while True:
            length = 0
            while length < RUN and self._overtaken(record, run[length : length + 2]) is not None:
                length += 1
            if length:
                count, last = count + length, run[length - 1]
            coming = run[length : length + 2]
            if length < RUN or not coming or time.monotonic() >= until:
                break
            await asyncio.sleep(0)
            run = self._planner.behind(record, [last], limit=RUN + 2)
        row = LedgerRow(
            namespace=record.namespace,
            reminder_id=record.reminder_id,
            reminder_version=record.version,
            occurrence=first,
            ended=OccurrenceStatus.SKIPPED,
            reason=reason or "superseded",
            skipped_through=last,
            skipped_count=count,
        )
        await self._store.ledger.write([row], at=self._clock.now())
        log.info("occurrences.skipped", reminder_id=record.reminder_id, count=count)
        return coming

    async def _write(self, stored: Stored, following: tuple[DueEntry, ...]) -> bool:
        record = stored.record
        await self._store.records.add_live(following, stamp=record.stamp)
        known_at = self._clock.now()
        again = await self._store.records.read(record.reminder_id)
        if again is None or again.change is not None or again.record.version != record.version:
            return False
        await self._store.users.add(following, record.definition.audience, stamp=record.stamp)
        await self._writer.put(following, stamp=record.stamp, known_at=known_at)
        return True

    async def _repair(
        self, stored: Stored, later: tuple[DueEntry, ...], known_at: datetime
    ) -> None:
        """Writes the due entry that an expander which died after its live entry did not write, or
        moves it if that one wrote it into a minute that nobody looks at any more.

        Whatever else there is to do: what comes after `later` is written from the live entries, so
        nobody else would ever miss it.
        """
        record = stored.record
        for entry in later:
            state = await self._store.due.read(entry.key)
            whole = self._planner.whole(record, entry)
            if state is None:
                await self._store.users.add([whole], record.definition.audience, stamp=record.stamp)
                await self._writer.put([whole], stamp=record.stamp, known_at=known_at)
            elif state.handled_at is None and state.fate is None:
                await self._writer.move_late([whole])

    # --- the old ones ---------------------------------------------------------------------------

    async def _drop_old(
        self, stored: Stored, fired: DueEntry, following: tuple[DueEntry, ...]
    ) -> None:
        """Keeps the partition small. An entry that may still ring keeps its live entry: a cancel
        must see it, and its body may stand there.
        """
        current = sorted((*stored.current, *following), key=_order)
        older = [entry for entry in stored.live if entry.version < fired.version]
        old = [
            entry.key.entry_id
            for entry in (*older, *current[:-KEPT])
            if entry.key != fired.key and _over(await self._store.due.read(entry.key), entry, fired)
        ]
        if old:
            await self._store.records.drop_live(
                stored.record.reminder_id, old, stamp=stamp_of(self._clock.now())
            )


def _of_other_data(entry: DueEntry) -> bool:
    """Whether its instant was computed with other zone or holiday data than this process has."""
    occurrence = entry.occurrence
    return occurrence is not None and (
        occurrence.zone_data != zone_data_version()
        or occurrence.holiday_data not in ("", holiday_data_version())
    )


def _current(stored: Stored, fired: DueEntry) -> bool:
    return stored.record.version == fired.version and stored.record.status is Status.SCHEDULED


def _order(entry: DueEntry) -> tuple[datetime, str]:
    """Of a rule's occurrences; by `ring_at`, one that was moved would change places."""
    assert entry.occurrence is not None
    return entry.occurrence.planned_at, entry.occurrence.occurrence_id


def _over(state: EntryState | None, entry: DueEntry, fired: DueEntry) -> bool:
    """Whether it will not ring any more. A row that is missing may be one that a repair writes."""
    if state is None or state.fate is Fate.VOID:
        return entry.version < fired.version
    return state.handled_at is not None

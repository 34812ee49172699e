"""Records and their live entries: creating and reading them. Changing them: `changes`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from reminders.buckets import before_schedule
from reminders.model.codec import decode_change, decode_entry, decode_record
from reminders.model.entry import DueEntry
from reminders.model.record import Change, NewReminder, Record, Status, Stored
from reminders.ports import Scanned
from reminders.storage.access import Access
from reminders.storage.bridge import Row, together, translated
from reminders.storage.changes import Changes
from reminders.storage.layout import triggered
from reminders.storage.wire import Mutation
from reminders.storage.writer import MAX_BYTES

LIVE_READ = 4
"""Live entries that a read brings. Whoever drops old ones should leave as many: a read that finds
fewer goes through everything that was ever deleted behind them."""
OLDER_READ = 64
"""Live entries a page, where none of the first belongs to the record's version."""
READ_TOGETHER = 20
"""Partitions a query of `read_many`."""
FIRST_TOKEN = -(2**63)
"""Before every token: Murmur3Partitioner gives this one to no partition."""


class CassandraRecords:
    """`reminders.ports.Records`."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._changes = Changes(access)

    async def create(self, reminders: Sequence[NewReminder]) -> None:
        """One item of a group for each reminder, so that it costs a fraction of a request.

        A reminder with large bodies goes alone, and in two steps: a batch over several partitions
        may not exceed 50 KiB on a default cluster, one within a partition may.
        """
        large: list[tuple[Mutation, Mutation]] = []

        def small() -> Iterator[Mutation]:
            for reminder in reminders:
                own, others = self._access.rows.created(reminder)
                if own.size + others.size > MAX_BYTES:
                    large.append((own, others))
                else:
                    yield Mutation(own.rows + others.rows, own.statements + others.statements)

        await self._access.creates.write(small(), "records.create")
        if large:
            await self._access.creates.write((own for own, _ in large), "records.create")
            await self._access.creates.write((others for _, others in large), "records.create")

    async def read(self, reminder_id: str) -> Stored | None:
        """One query; more only where none of the newest live entries is of the record's version."""
        with translated("records.read"):
            statement = self._access.prepared["record_read"]
            rows = await self._access.bridge.run(statement.bind(reminder_id, LIVE_READ))
            return await self._stored(reminder_id, rows)

    async def read_many(self, reminder_ids: Iterable[str]) -> Mapping[str, Stored]:
        """Twenty partitions a query, all queries at once."""
        wanted = list(dict.fromkeys(reminder_ids))
        parts = [wanted[i : i + READ_TOGETHER] for i in range(0, len(wanted), READ_TOGETHER)]
        with translated("records.read_many"):
            found = await together([self._read_together(part) for part in parts])
        return {reminder_id: stored for part in found for reminder_id, stored in part.items()}

    async def _read_together(self, reminder_ids: list[str]) -> dict[str, Stored]:
        statement = self._access.prepared["record_read_many"]
        by_id: dict[str, list[Row]] = {}
        for reminder_id, *row in await self._access.bridge.run(
            statement.bind(reminder_ids, LIVE_READ)
        ):
            by_id.setdefault(reminder_id, []).append(tuple(row))
        found = {}
        for reminder_id, rows in by_id.items():
            stored = await self._stored(reminder_id, rows)
            if stored is not None:
                found[reminder_id] = stored
        return found

    async def _stored(self, reminder_id: str, rows: list[Row]) -> Stored | None:
        if not rows or rows[0][1] is None:
            return None
        _, record_blob, changing, _ = rows[0]
        record = decode_record(record_blob)
        entries = [decode_entry(entry) for _, _, _, entry in rows if entry is not None]
        live, beside = _split(entries)
        if len(rows) == LIVE_READ and _lacks_current(record, live):
            live += await self._older(reminder_id, record, rows[-1][0])
        return Stored(
            record=record,
            live=tuple(live),
            change=None if changing is None else decode_change(changing),
            beside=tuple(beside) if len(rows) < LIVE_READ else None,
        )

    async def _older(self, reminder_id: str, record: Record, after: str) -> list[DueEntry]:
        """Entries of older versions may lie before those of the record's own, if it was moved
        nearer.
        """
        statement = self._access.prepared["live_read_older"]
        found: list[DueEntry] = []
        while True:
            rows = await self._access.bridge.run(statement.bind(reminder_id, after, OLDER_READ))
            found += _split([decode_entry(entry) for _, entry in rows if entry is not None])[0]
            if len(rows) < OLDER_READ or not _lacks_current(record, found):
                return found
            after = rows[-1][0]

    async def beside(self, reminder_id: str) -> tuple[DueEntry, ...]:
        """One query, unless very many wait: whoever adds one drops those that are done."""
        statement = self._access.prepared["live_read_older"]
        found: list[DueEntry] = []
        after = before_schedule(reminder_id)
        with translated("records.beside"):
            while True:
                rows = await self._access.bridge.run(statement.bind(reminder_id, after, OLDER_READ))
                found += [decode_entry(entry) for _, entry in rows if entry is not None]
                if len(rows) < OLDER_READ:
                    return tuple(found)
                after = rows[-1][0]

    async def begin(self, record: Record, change: Change) -> bool:
        """LWT: see `changes`."""
        return await self._changes.begin(record, change)

    async def end(self, record: Record, change: Change) -> bool:
        """LWT: see `changes`."""
        return await self._changes.end(record, change)

    async def add_live(self, entries: Sequence[DueEntry], *, stamp: int) -> None:
        """Grouped with what others write."""
        rows = self._access.rows
        await self._access.steps.write((rows.live(e, stamp) for e in entries), "records.add_live")

    async def drop_live(self, reminder_id: str, entry_ids: Iterable[str], *, stamp: int) -> None:
        """Grouped with what others write."""
        rows = self._access.rows
        gone = (rows.live_gone(reminder_id, entry_id, stamp) for entry_id in entry_ids)
        await self._access.steps.write(gone, "records.drop_live")

    async def body(self, reminder_id: str, entry_id: str) -> bytes | None:
        """One query."""
        with translated("records.body"):
            statement = self._access.prepared["body_read"]
            rows = await self._access.bridge.run(statement.bind(reminder_id, entry_id))
        body: Any = rows[0][0] if rows else None
        return body if body is None else bytes(body)

    async def scan(self, after: int | None, *, limit: int) -> Scanned:
        """One query by token. Its limit counts rows, so the last partition may have come in part:
        that one begins the next page.
        """
        rows_wanted = max(limit, LIVE_READ + 1)  # one whole partition at least
        with translated("records.scan"):
            statement = self._access.prepared["record_scan"]
            rows = await self._access.bridge.run(
                statement.bind(FIRST_TOKEN if after is None else after, LIVE_READ, rows_wanted)
            )
            more = len(rows) == rows_wanted
            if more:
                cut = rows[-1][0]
                rows = [row for row in rows if row[0] != cut]
            by_id: dict[str, list[Row]] = {}
            for _, reminder_id, *row in rows:
                by_id.setdefault(reminder_id, []).append(tuple(row))
            found = await together([self._stored(*one) for one in by_id.items()])
        return Scanned(
            found=tuple(stored for stored in found if stored is not None),
            through=rows[-1][0] if more else None,
        )


def _split(entries: list[DueEntry]) -> tuple[list[DueEntry], list[DueEntry]]:
    """The schedule's live entries and those of triggers."""
    live: list[DueEntry] = []
    beside: list[DueEntry] = []
    for entry in entries:
        (beside if triggered(entry) else live).append(entry)
    return live, beside


def _lacks_current(record: Record, live: list[DueEntry]) -> bool:
    return record.status is Status.SCHEDULED and all(e.version != record.version for e in live)

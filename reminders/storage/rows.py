"""What every plain write puts into which table: rows, ready to be sent."""

from collections.abc import Mapping
from datetime import datetime

from reminders.model.codec import encode
from reminders.model.entry import DueEntry, DueKey, Fate
from reminders.model.ledger import LedgerRow
from reminders.model.record import NewReminder
from reminders.storage.expiry import SECOND_US, Expiry, to_us
from reminders.storage.layout import bare, body_by_reference, due_form
from reminders.storage.wire import Mutation, Prepared, bigint, integer

MINUTE_US = 60 * SECOND_US


def _due_columns(key: DueKey, ring_at_us: int) -> tuple[bytes, bytes, bytes, bytes]:
    """Minute (a CQL timestamp, ms), shard, ring_at_us, entry_id."""
    return (
        bigint(ring_at_us // MINUTE_US * 60_000),
        integer(key.shard),
        bigint(ring_at_us),
        key.entry_id.encode(),
    )


class Rows:
    """Makes rows with the statements of one session."""

    def __init__(self, prepared: Mapping[str, Prepared], expiry: Expiry) -> None:
        self._expiry = expiry
        self._create = prepared["record_create"].row
        self._create_with_body = prepared["record_create_with_body"].row
        self._create_bare = prepared["record_create_bare"].row
        self._live = prepared["live_put"].row
        self._live_with_body = prepared["live_put_with_body"].row
        self._live_delete = prepared["live_delete"].row
        self._due = prepared["due_put"].row
        self._due_recurring = prepared["due_put_recurring"].row
        self._fate = prepared["due_fate"].row
        self._handled = prepared["due_handled"].row
        self._expanded = prepared["due_expanded"].row
        self._user = prepared["user_put"].row
        self._user_delete = prepared["user_delete"].row
        self._ledger = prepared["ledger_put"].row
        self._progress = prepared["progress_put"].row

    def created(self, new: NewReminder) -> tuple[Mutation, Mutation]:
        """Two parts: the reminder's own partition; due entries and index rows.

        The first is written first where the two are sent apart.
        """
        record, entries = new.record, new.entries
        reminder_id, stamp = record.reminder_id.encode(), bigint(record.stamp)
        version, blob = integer(record.version), encode(record)
        ttl = integer(self._expiry.record(record, entries))
        own = [
            self._created_live(entry, (reminder_id, version, blob, stamp, ttl))
            if first
            else self._live_row(entry, reminder_id, stamp, ttl)
            for first, entry in zip((True, *(False,) * len(entries)), entries, strict=False)
        ] or [self._create_bare(reminder_id, version, blob, stamp, ttl)]
        others: list[bytes] = []
        user_id = record.definition.user_id.encode()
        for entry in entries:
            others.append(self._due_row(entry, stamp))
            others.extend(self._user_row(entry, user_id, stamp))
        return Mutation(b"".join(own), len(own)), Mutation(b"".join(others), len(others))

    def _created_live(self, entry: DueEntry, record: tuple[bytes, ...]) -> bytes:
        reminder_id, version, blob, stamp, ttl = record
        entry_id, live = entry.key.entry_id.encode(), encode(bare(entry))
        if body_by_reference(entry):
            return self._create_with_body(
                reminder_id, entry_id, version, blob, live, entry.body, stamp, ttl
            )
        return self._create(reminder_id, entry_id, version, blob, live, stamp, ttl)

    def live(self, entry: DueEntry, stamp: int) -> Mutation:
        """A live entry, with its body if that is large."""
        reminder_id = entry.reminder_id.encode()
        ttl = integer(self._expiry.live(entry))
        return Mutation(self._live_row(entry, reminder_id, bigint(stamp), ttl), 1)

    def _live_row(self, entry: DueEntry, reminder_id: bytes, stamp: bytes, ttl: bytes) -> bytes:
        entry_id, live = entry.key.entry_id.encode(), encode(bare(entry))
        if body_by_reference(entry):
            return self._live_with_body(reminder_id, entry_id, live, entry.body, stamp, ttl)
        return self._live(reminder_id, entry_id, live, stamp, ttl)

    def live_gone(self, reminder_id: str, entry_id: str, stamp: int) -> Mutation:
        """Deletes a live entry."""
        return Mutation(
            self._live_delete(bigint(stamp), reminder_id.encode(), entry_id.encode()), 1
        )

    def due(self, entry: DueEntry, stamp: int) -> Mutation:
        """A due entry."""
        return Mutation(self._due_row(entry, bigint(stamp)), 1)

    def _due_row(self, entry: DueEntry, stamp: bytes) -> bytes:
        ring_at_us = to_us(entry.key.ring_at)
        put = self._due_recurring if entry.recurs else self._due
        ttl = integer(self._expiry.due(ring_at_us))
        return put(*_due_columns(entry.key, ring_at_us), encode(due_form(entry)), stamp, ttl)

    def fate(self, key: DueKey, fate: Fate, stamp: int) -> Mutation:
        """What a change decided about an entry."""
        ring_at_us = to_us(key.ring_at)
        ttl = integer(self._expiry.outcome(ring_at_us))
        columns = _due_columns(key, ring_at_us)
        return Mutation(self._fate(bigint(stamp), ttl, fate.value.encode(), *columns), 1)

    def handled(self, key: DueKey, at: datetime) -> Mutation:
        """Nothing is left to send."""
        ring_at_us, at_us = to_us(key.ring_at), bigint(to_us(at))
        ttl = integer(self._expiry.outcome(ring_at_us))
        return Mutation(self._handled(at_us, ttl, at_us, *_due_columns(key, ring_at_us)), 1)

    def expanded(self, key: DueKey, at: datetime) -> Mutation:
        """The next occurrence is written."""
        ring_at_us, at_us = to_us(key.ring_at), bigint(to_us(at))
        ttl = integer(self._expiry.outcome(ring_at_us))
        return Mutation(self._expanded(at_us, ttl, at_us, *_due_columns(key, ring_at_us)), 1)

    def indexed(self, entry: DueEntry, user_id: str, stamp: int) -> list[Mutation]:
        """An index row; an entry that is no occurrence has none."""
        user, when = user_id.encode(), bigint(stamp)
        return [Mutation(row, 1) for row in self._user_row(entry, user, when)]

    def _user_row(self, entry: DueEntry, user_id: bytes, stamp: bytes) -> tuple[bytes, ...]:
        if entry.occurrence is None:
            return ()
        fire_at_us = to_us(entry.occurrence.fire_at)
        row = self._user(
            entry.namespace.encode(),
            user_id,
            bigint(fire_at_us),
            entry.reminder_id.encode(),
            entry.key.entry_id.encode(),
            bigint(to_us(entry.key.ring_at)),
            integer(entry.key.shard),
            stamp,
            integer(self._expiry.index(fire_at_us)),
        )
        return (row,)

    def unindexed(self, entry: DueEntry, user_id: str, stamp: int) -> list[Mutation]:
        """Deletes an index row."""
        if entry.occurrence is None:
            return []
        row = self._user_delete(
            bigint(stamp),
            entry.namespace.encode(),
            user_id.encode(),
            bigint(to_us(entry.occurrence.fire_at)),
            entry.reminder_id.encode(),
            entry.key.entry_id.encode(),
        )
        return [Mutation(row, 1)]

    def ledger(self, row: LedgerRow, at: datetime) -> Mutation:
        """A ledger row, whole."""
        at_us = to_us(at)
        return Mutation(
            self._ledger(
                row.reminder_id.encode(),
                row.occurrence.occurrence_id.encode(),
                row.channel_id.encode(),
                row.target.encode(),
                encode(row),
                bigint(at_us),
                integer(self._expiry.ledger(at_us)),
            ),
            1,
        )

    def progress(self, shard: int, settled_through: datetime) -> Mutation:
        """How far a shard is settled, stamped with the value."""
        value = bigint(to_us(settled_through))
        return Mutation(self._progress(integer(shard), value, value), 1)

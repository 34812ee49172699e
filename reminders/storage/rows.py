"""What every plain write puts into which table: rows, ready to be sent."""

from collections.abc import Mapping
from datetime import datetime

from reminders.model.codec import encode
from reminders.model.entry import DueEntry, DueKey, Fate
from reminders.model.fanout import PageCount, Standing
from reminders.model.ledger import LedgerRow
from reminders.model.record import NewReminder
from reminders.model.subscriber import bucket_of
from reminders.storage.expiry import SECOND_US, Expiry, to_us
from reminders.storage.layout import bare, body_by_reference, due_form
from reminders.storage.wire import (
    Mutation,
    Prepared,
    bigint,
    bigint_integer,
    framed,
    integer,
    integer_bigint,
    text,
)

MINUTE_US = 60 * SECOND_US


def _due_key(key: DueKey, ring_at_us: int) -> bytes:
    """Minute (a CQL timestamp, ms), shard, ring_at_us, entry_id."""
    return (
        bigint(ring_at_us // MINUTE_US * 60_000)
        + integer_bigint(key.shard, ring_at_us)
        + text(key.entry_id)
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
        self._delivery = prepared["delivery_put"].row
        self._fanout_page = prepared["fanout_page_put"].row
        self._progress = prepared["progress_put"].row
        self._user_grouped = prepared["user_put_grouped"].row
        self._fence = prepared["fence_put"].row

    def created(self, new: NewReminder) -> tuple[Mutation, Mutation]:
        """Two parts: the reminder's own partition; due entries and index rows.

        The first is written first where the two are sent apart.
        """
        record, entries = new.record, new.entries
        stamp, reminder_id = record.stamp, text(record.reminder_id)
        static = integer(record.version) + framed(encode(record))
        end = bigint_integer(stamp, self._expiry.record(record, entries))
        if entries:
            own = [self._created_live(entries[0], reminder_id, static, end)]
            own += [self._live_row(entry, reminder_id, end) for entry in entries[1:]]
        else:
            own = [self._create_bare(reminder_id, static, end)]
        user = text(record.namespace) + text(record.definition.audience)
        others: list[bytes] = []
        for entry in entries:
            others.append(self._due_row(entry, stamp))
            if entry.occurrence is not None:
                others.append(self._user_row(entry, to_us(entry.occurrence.fire_at), user, stamp))
        return Mutation(b"".join(own), len(own)), Mutation(b"".join(others), len(others))

    def _created_live(
        self, entry: DueEntry, reminder_id: bytes, static: bytes, end: bytes
    ) -> bytes:
        entry_id, live = text(entry.key.entry_id), framed(encode(bare(entry)))
        if body_by_reference(entry):
            body = framed(entry.body)
            return self._create_with_body(reminder_id, entry_id, static, live, body, end)
        return self._create(reminder_id, entry_id, static, live, end)

    def live(self, entry: DueEntry, stamp: int) -> Mutation:
        """A live entry, with its body if that is large."""
        end = bigint_integer(stamp, self._expiry.live(entry))
        return Mutation(self._live_row(entry, text(entry.reminder_id), end), 1)

    def _live_row(self, entry: DueEntry, reminder_id: bytes, end: bytes) -> bytes:
        entry_id, live = text(entry.key.entry_id), framed(encode(bare(entry)))
        if body_by_reference(entry):
            return self._live_with_body(reminder_id, entry_id, live, framed(entry.body), end)
        return self._live(reminder_id, entry_id, live, end)

    def live_gone(self, reminder_id: str, entry_id: str, stamp: int) -> Mutation:
        """Deletes a live entry."""
        return Mutation(self._live_delete(bigint(stamp), text(reminder_id), text(entry_id)), 1)

    def due(self, entry: DueEntry, stamp: int) -> Mutation:
        """A due entry."""
        return Mutation(self._due_row(entry, stamp), 1)

    def _due_row(self, entry: DueEntry, stamp: int) -> bytes:
        ring_at_us = to_us(entry.key.ring_at)
        put = self._due_recurring if entry.recurs else self._due
        return put(
            _due_key(entry.key, ring_at_us),
            framed(encode(due_form(entry))),
            bigint_integer(stamp, self._expiry.due(ring_at_us)),
        )

    def fate(self, key: DueKey, fate: Fate, stamp: int) -> Mutation:
        """What a change decided about an entry."""
        ring_at_us = to_us(key.ring_at)
        end = bigint_integer(stamp, self._expiry.outcome(ring_at_us))
        return Mutation(self._fate(end, text(fate.value), _due_key(key, ring_at_us)), 1)

    def handled(self, key: DueKey, at: datetime) -> Mutation:
        """Nothing is left to send."""
        ring_at_us, at_us = to_us(key.ring_at), to_us(at)
        end = bigint_integer(at_us, self._expiry.outcome(ring_at_us))
        return Mutation(self._handled(end, bigint(at_us), _due_key(key, ring_at_us)), 1)

    def expanded(self, key: DueKey, at: datetime) -> Mutation:
        """The next occurrence is written."""
        ring_at_us, at_us = to_us(key.ring_at), to_us(at)
        end = bigint_integer(at_us, self._expiry.outcome(ring_at_us))
        return Mutation(self._expanded(end, bigint(at_us), _due_key(key, ring_at_us)), 1)

    def indexed(self, entry: DueEntry, user_id: str, stamp: int) -> list[Mutation]:
        """An index row; an entry that is no occurrence has none."""
        if entry.occurrence is None:
            return []
        user = text(entry.namespace) + text(user_id)
        row = self._user_row(entry, to_us(entry.occurrence.fire_at), user, stamp)
        return [Mutation(row, 1)]

    def _user_row(self, entry: DueEntry, fire_at_us: int, user: bytes, stamp: int) -> bytes:
        key = (user, bigint(fire_at_us), text(entry.reminder_id), text(entry.key.entry_id))
        place = bigint_integer(to_us(entry.key.ring_at), entry.key.shard)
        end = bigint_integer(stamp, self._expiry.index(fire_at_us))
        if entry.group_id is None:
            return self._user(*key, place, end)
        created = bigint(to_us(entry.record_created_at))
        return self._user_grouped(*key, place, text(entry.group_id), created, end)

    def unindexed(self, entry: DueEntry, user_id: str, stamp: int) -> list[Mutation]:
        """Deletes an index row."""
        if entry.occurrence is None:
            return []
        row = self._user_delete(
            bigint(stamp),
            text(entry.namespace),
            text(user_id),
            bigint(to_us(entry.occurrence.fire_at)),
            text(entry.reminder_id),
            text(entry.key.entry_id),
        )
        return [Mutation(row, 1)]

    def ledger(self, row: LedgerRow, at: datetime) -> Mutation:
        """A ledger row, whole; that of a subscriber stands with those of its occurrence."""
        at_us = to_us(at)
        if row.target:
            return Mutation(self._delivery_row(row, at_us), 1)
        written = self._ledger(
            text(row.reminder_id),
            text(row.occurrence.occurrence_id),
            text(row.channel_id),
            text(row.target),
            framed(encode(row)),
            bigint_integer(at_us, self._expiry.ledger(at_us)),
        )
        return Mutation(written, 1)

    def _delivery_row(self, row: LedgerRow, at_us: int) -> bytes:
        standing = row.standing
        return self._delivery(
            text(row.reminder_id),
            text(row.occurrence.occurrence_id),
            integer(bucket_of(row.target)),
            text(row.target),
            text(row.channel_id),
            framed(encode(row)),
            integer(standing is Standing.OPEN),
            integer(standing is Standing.TAKEN),
            integer(standing is Standing.STOPPED),
            bigint_integer(at_us, self._expiry.ledger(at_us)),
        )

    def fanout_page(
        self, reminder_id: str, occurrence_id: str, count: PageCount, at: datetime
    ) -> Mutation:
        """What a page of a fan-out came to."""
        at_us = to_us(at)
        row = self._fanout_page(
            text(reminder_id),
            text(occurrence_id),
            integer(count.bucket),
            integer(count.page),
            framed(encode(count)),
            bigint_integer(at_us, self._expiry.ledger(at_us)),
        )
        return Mutation(row, 1)

    def progress(self, shard: int, settled_through: datetime) -> Mutation:
        """How far a shard is settled, stamped with the value."""
        value = to_us(settled_through)
        return Mutation(self._progress(integer_bigint(shard, value), bigint(value)), 1)

    def fence(self, namespace: str, group_id: str, cancelled_at: datetime) -> Mutation:
        """A cancelled group, stamped with the value."""
        value = to_us(cancelled_at)
        row = self._fence(text(namespace), text(group_id), bigint(value), bigint(value))
        return Mutation(row, 1)

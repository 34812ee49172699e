"""How long rows stay, asked of Cassandra."""

from datetime import UTC, datetime, timedelta
from typing import Any

from cassandra.cluster import Session
from msgspec.structs import replace

from reminders.model.entry import Fate
from reminders.model.record import DedupClaim, NewReminder, Status
from reminders.storage.dedup import bucket_of
from reminders.storage.expiry import to_us
from reminders.storage.settings import StorageSettings
from reminders.storage.store import CassandraStore
from tests.contract.store.samples import (
    body,
    change_of,
    ended,
    ledger_row,
    new,
    stamp_now,
    unique,
)

DAY = timedelta(days=1)
TOLERANCE = timedelta(seconds=30)


def assert_expires(ttl: int | None, at: datetime) -> None:
    """Within half a minute of that time."""
    assert ttl is not None
    assert abs(datetime.now(UTC) + timedelta(seconds=ttl) - at) < TOLERANCE


class Ttls:
    """Asks for TTLs in one keyspace."""

    def __init__(self, session: Session, settings: StorageSettings) -> None:
        self._session = session
        self._keyspace = settings.keyspace

    def ask(self, columns: str, table: str, where: str, *values: Any) -> tuple[Any, ...]:
        """Of the first row."""
        wanted = ", ".join(f"ttl({column})" for column in columns.split())
        row = self._session.execute(
            f"SELECT {wanted} FROM {self._keyspace}.{table} WHERE {where}", values
        ).one()
        return tuple(row)

    def record(self, reminder: NewReminder) -> tuple[Any, ...]:
        """Of version, record and a live entry."""
        where = "reminder_id = %s LIMIT 1"
        return self.ask("version record entry", "reminders", where, reminder.record.reminder_id)

    def due(self, reminder: NewReminder) -> tuple[Any, ...]:
        """Of entry, fate and outcomes."""
        key = reminder.entries[0].key
        return self.ask(
            "entry fate handled_at_us expanded_at_us",
            "due",
            "minute = %s AND shard = %s AND ring_at_us = %s AND entry_id = %s",
            key.minute,
            key.shard,
            to_us(key.ring_at),
            key.entry_id,
        )


async def test_a_one_shot_leaves_after_retention(
    store: CassandraStore, admin: Session, shared_settings: StorageSettings
) -> None:
    """Record and live entry: fire time + expire_after + retention."""
    ttls = Ttls(admin, shared_settings)
    for size in (10, 5_000):
        reminder = new(body=body(size))
        await store.records.create([reminder])
        fire_at = reminder.entries[0].key.ring_at
        for ttl in ttls.record(reminder):
            assert_expires(ttl, fire_at + 3 * DAY + shared_settings.retention)


async def test_rules_and_paused_ones_stay(
    store: CassandraStore, admin: Session, shared_settings: StorageSettings
) -> None:
    """Until they end: then every static cell gets the same TTL, by the same LWT."""
    ttls = Ttls(admin, shared_settings)
    rule = new(recurs=True)
    await store.records.create([rule])
    assert ttls.record(rule) == (None, None, None)

    paused = new()
    await store.records.create([paused])
    record, change = change_of(paused)
    record = replace(record, status=Status.PAUSED)
    assert await store.records.begin(record, change)
    assert await store.records.end(ended(record, change), change)
    assert ttls.record(paused)[:2] == (None, None)

    record, change = change_of(rule)
    assert await store.records.begin(record, change)
    assert await store.records.end(ended(record, change), change)
    for ttl in ttls.record(rule)[:2]:
        assert_expires(ttl, record.updated_at + 3 * DAY + shared_settings.retention)


async def test_a_changed_record_expires_as_a_whole(
    store: CassandraStore, admin: Session, shared_settings: StorageSettings
) -> None:
    """Also while the change is in progress; a later fire time keeps the record longer."""
    ttls = Ttls(admin, shared_settings)
    reminder = new()
    await store.records.create([reminder])
    later = reminder.entries[0].key.ring_at + 40 * DAY
    record, change = change_of(reminder, to=later)
    assert await store.records.begin(record, change)
    where = "reminder_id = %s LIMIT 1"
    columns = "version record change_id changing"
    for ttl in ttls.ask(columns, "reminders", where, record.reminder_id):
        assert_expires(ttl, later + 3 * DAY + shared_settings.retention)
    assert await store.records.end(ended(record, change), change)
    for ttl in ttls.record(reminder)[:2]:
        assert_expires(ttl, later + 3 * DAY + shared_settings.retention)


async def test_outcomes_leave_just_after_their_entry(
    store: CassandraStore, admin: Session, shared_settings: StorageSettings
) -> None:
    """Entry: ring_at + 28 days. Fate and outcomes: a minute later, whenever they are written."""
    ttls = Ttls(admin, shared_settings)
    reminder = new()
    (planned,) = reminder.entries
    await store.records.create([reminder])
    await store.due.mark([planned.key], Fate.VOID, stamp=stamp_now())
    await store.due.handled([planned], at=planned.key.ring_at)
    await store.due.expanded([planned], at=planned.key.ring_at)
    entry_ttl, *others = ttls.due(reminder)
    assert_expires(entry_ttl, planned.key.ring_at + 28 * DAY)
    for ttl in others:
        assert 58 <= ttl - entry_ttl <= 62


async def test_what_lies_too_far_ahead_has_no_ttl(
    store: CassandraStore, admin: Session, shared_settings: StorageSettings
) -> None:
    """Cassandra refuses expiries after January 2038; such a row stays rather than leave early."""
    ttls = Ttls(admin, shared_settings)
    far = datetime(2060, 1, 1, tzinfo=UTC)
    edge = datetime(2037, 12, 20, 12, tzinfo=UTC)
    for at in (far, edge):
        reminder = new(at)
        await store.records.create([reminder])
        await store.due.handled(reminder.entries, at=at)
        assert ttls.record(reminder) == (None, None, None)
        entry_ttl, _, handled_ttl, _ = ttls.due(reminder)
        assert (entry_ttl, handled_ttl) == (None, None) if at == far else entry_ttl is not None


async def test_index_ledger_and_dedup_rows(
    store: CassandraStore, admin: Session, shared_settings: StorageSettings
) -> None:
    """3 days after the fire; retention; not after the record."""
    ttls = Ttls(admin, shared_settings)
    user_id = unique("u")
    reminder = new(user_id=user_id)
    (planned,) = reminder.entries
    await store.records.create([reminder])
    where = "namespace = %s AND user_id = %s"
    namespace = reminder.record.namespace
    for ttl in ttls.ask("ring_at_us shard", "reminders_by_user", where, namespace, user_id):
        assert_expires(ttl, planned.key.ring_at + 3 * DAY)

    now = datetime.now(UTC)
    await store.ledger.write([ledger_row(planned.reminder_id, now)], at=now)
    (ttl,) = ttls.ask("row", "ledger", "reminder_id = %s", planned.reminder_id)
    assert_expires(ttl, now + shared_settings.retention)

    for expires_at in (now + 5 * DAY, None):
        claim = DedupClaim(
            namespace=namespace,
            key=unique("key:"),
            reminder_id=planned.reminder_id,
            content_hash=b"",
            created_at=now,
            stamp=stamp_now(),
            expires_at=expires_at,
        )
        await store.dedup.claim([claim])
        bucket = bucket_of(namespace, claim.key)
        where = "bucket = %s AND namespace = %s AND key = %s"
        (ttl,) = ttls.ask("claim", "dedup", where, bucket, namespace, claim.key)
        if expires_at is None:
            assert ttl is None
        else:
            assert_expires(ttl, expires_at)
            assert datetime.now(UTC) + timedelta(seconds=ttl) <= expires_at

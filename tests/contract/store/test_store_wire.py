"""Batches as bytes, against what the driver itself would send: its private parts may change."""

import io
from datetime import timedelta
from typing import Any

import cassandra
import pytest
from cassandra import ConsistencyLevel
from cassandra.protocol import BatchMessage
from cassandra.query import BatchStatement, BatchType

from reminders.model.codec import encode
from reminders.model.entry import Fate
from reminders.model.subscriber import bucket_of
from reminders.storage.expiry import Expiry, to_us
from reminders.storage.layout import bare
from reminders.storage.rows import Rows
from reminders.storage.store import CassandraStore
from reminders.storage.wire import Mutation, batch
from tests.contract.store.samples import body, entry, fresh_minute, ledger_row, new

pytestmark = pytest.mark.asyncio(loop_scope="session")
NOW_S = 1_790_000_000.0


@pytest.fixture
def rows(cassandra_store: CassandraStore) -> Rows:
    """Made at a fixed time, so that TTLs are known."""
    return Rows(cassandra_store._access.prepared, Expiry(timedelta(days=90), lambda: NOW_S))


def ttl(expires_us: int) -> int:
    """Seconds until then."""
    return -(-(expires_us - int(NOW_S) * 1_000_000) // 1_000_000)


def body_of(message: Any, version: int) -> bytes:
    """As it goes out."""
    out = io.BytesIO()
    message.send_body(out, version)
    return out.getvalue()


def ours(store: CassandraStore, mutations: list[Mutation], *, conditional: bool = False) -> Any:
    """Our message."""
    bridge = store._access.bridge
    return batch(bridge._session, bridge._profile, mutations, conditional=conditional).message


def theirs(store: CassandraStore, *rows: tuple[str, tuple[Any, ...]], serial: Any = None) -> Any:
    """The driver's message for the same values."""
    statement = BatchStatement(BatchType.UNLOGGED)
    for name, values in rows:
        statement.add(store._access.prepared[name].statement, values)
    return BatchMessage(
        BatchType.UNLOGGED,
        statement._statements_and_parameters,
        ConsistencyLevel.LOCAL_QUORUM,
        serial,
    )


async def test_the_driver_is_the_one_that_was_looked_at() -> None:
    """Another release must be compared again: `reminders/storage/wire.py`."""
    assert cassandra.__version__ == "3.30.1"


@pytest.mark.parametrize("version", [3, 4, 5])
async def test_a_create_is_what_the_driver_would_send(
    cassandra_store: CassandraStore, rows: Rows, version: int
) -> None:
    """Every column of a rule's first two occurrences, with a large body and without."""
    minute = fresh_minute()
    for size in (0, 3_000):
        reminder = new(minute, minute + timedelta(seconds=1), recurs=True, body=body(size))
        record = reminder.record
        first, second = reminder.entries
        suffix = "_with_body" if size else ""
        bodies = [(one.body,) if size else () for one in reminder.entries]
        expected = theirs(
            cassandra_store,
            (
                f"record_create{suffix}",
                (
                    record.reminder_id,
                    first.key.entry_id,
                    1,
                    encode(record),
                    encode(bare(first)),
                    *bodies[0],
                    record.stamp,
                    0,
                ),
            ),
            (
                f"live_put{suffix}",
                (
                    record.reminder_id,
                    second.key.entry_id,
                    encode(bare(second)),
                    *bodies[1],
                    record.stamp,
                    0,
                ),
            ),
            *(row for one in reminder.entries for row in due_and_user(reminder, one, size)),
        )
        assert body_of(ours(cassandra_store, [*rows.created(reminder)]), version) == body_of(
            expected, version
        )


def due_and_user(reminder: Any, one: Any, size: int) -> list[tuple[str, tuple[Any, ...]]]:
    """Its due row and its index row."""
    at = to_us(one.key.ring_at)
    stamp = reminder.record.stamp
    stored = encode(bare(one) if size else one)
    day = 86_400_000_000
    due = (one.key.minute, one.key.shard, at, one.key.entry_id, stored, stamp, ttl(at + 28 * day))
    user_id = reminder.record.definition.user_id
    place = (one.namespace, user_id, at, one.reminder_id, one.key.entry_id, at, one.key.shard)
    return [("due_put_recurring", due), ("user_put", (*place, stamp, ttl(at + 3 * day)))]


async def test_steps_are_what_the_driver_would_send(
    cassandra_store: CassandraStore, rows: Rows
) -> None:
    """Fates, outcomes, deletions, ledger rows, progress."""
    one = entry()
    at = to_us(one.key.ring_at)
    place = (one.key.minute, one.key.shard, at, one.key.entry_id)
    outcome = ttl(at + (28 * 86_400 + 60) * 1_000_000)
    happened = ledger_row(one.reminder_id, one.key.ring_at)
    told = ledger_row(one.reminder_id, one.key.ring_at, target="t")
    mutations = [
        rows.fate(one.key, Fate.VOID, 7),
        rows.handled(one.key, one.key.ring_at),
        rows.expanded(one.key, one.key.ring_at),
        rows.live_gone(one.reminder_id, one.key.entry_id, 8),
        *rows.unindexed(one, "u", 9),
        rows.ledger(happened, one.key.ring_at),
        rows.ledger(told, one.key.ring_at),
        rows.progress(3, one.key.minute),
    ]
    expected = theirs(
        cassandra_store,
        ("due_fate", (7, outcome, "void", *place)),
        ("due_handled", (at, outcome, at, *place)),
        ("due_expanded", (at, outcome, at, *place)),
        ("live_delete", (8, one.reminder_id, one.key.entry_id)),
        ("user_delete", (9, one.namespace, "u", at, one.reminder_id, one.key.entry_id)),
        (
            "ledger_put",
            (
                one.reminder_id,
                happened.occurrence.occurrence_id,
                "log",
                "",
                encode(happened),
                at,
                ttl(at + 90 * 86_400_000_000),
            ),
        ),
        (
            "delivery_put",
            (
                one.reminder_id,
                told.occurrence.occurrence_id,
                bucket_of("t"),
                "t",
                "log",
                encode(told),
                0,
                1,
                0,
                at,
                ttl(at + 90 * 86_400_000_000),
            ),
        ),
        ("progress_put", (3, to_us(one.key.minute), to_us(one.key.minute))),
    )
    assert body_of(ours(cassandra_store, mutations), 4) == body_of(expected, 4)


@pytest.mark.parametrize("version", [3, 4, 5])
async def test_conditional_batches_name_the_serial_consistency(
    cassandra_store: CassandraStore, version: int
) -> None:
    """And are otherwise the same."""
    name, values = "dedup_claim", (5, "n", "key:k", b"claim", 60)
    statement = cassandra_store._access.prepared[name]
    bound = statement.bind(*values)
    row = Mutation(
        statement.row(*(len(value).to_bytes(4, "big") + value for value in bound.values)), 1
    )
    expected = theirs(cassandra_store, (name, values), serial=ConsistencyLevel.LOCAL_SERIAL)
    message = ours(cassandra_store, [row], conditional=True)
    assert body_of(message, version) == body_of(expected, version)

"""Deliveries to the subscribers of a topic, and what pages of them came to."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from reminders.model.fanout import PageCount, TargetCounts
from reminders.model.ledger import DeliveryStatus, LedgerRow
from reminders.model.subscriber import SUBSCRIBER_BUCKETS, bucket_of
from reminders.ports import Store
from tests.contract.store.samples import US, fresh_minute, ledger_row, unique

pytestmark = pytest.mark.asyncio(loop_scope="session")

NOW = datetime.now(UTC)


def told(
    reminder_id: str, at: datetime, count: int, status: DeliveryStatus = DeliveryStatus.CONFIRMED
) -> list[LedgerRow]:
    """Rows of so many subscribers."""
    return [
        ledger_row(reminder_id, at, "webhook", target=f"s{n:04}", delivery=status)
        for n in range(count)
    ]


async def all_of(
    store: Store, reminder_id: str, occurrence_id: str, bucket: int, limit: int
) -> list[LedgerRow]:
    """Page after page."""
    found: list[LedgerRow] = []
    after = ("", "")
    while True:
        rows = await store.fanouts.targets(
            reminder_id, occurrence_id, bucket, after=after, limit=limit
        )
        found += rows
        if len(rows) < limit:
            return found
        after = (rows[-1].target, rows[-1].channel_id)


async def test_targets_come_bucket_by_bucket_in_order(store: Store) -> None:
    """Every row that the ledger was given, in the bucket of its target, page after page."""
    reminder_id, at = unique("r"), fresh_minute()
    rows = told(reminder_id, at, 120)
    rows.append(replace(rows[7], channel_id="email"))  # another endpoint later
    await store.ledger.write(rows, at=NOW)
    occurrence_id = rows[0].occurrence.occurrence_id
    for limit in (1, 3, 500):
        found: list[LedgerRow] = []
        for bucket in range(SUBSCRIBER_BUCKETS):
            some = await all_of(store, reminder_id, occurrence_id, bucket, limit)
            assert all(bucket_of(row.target) == bucket for row in some)
            places = [(row.target, row.channel_id) for row in some]
            assert places == sorted(places)
            found += some
        assert sorted(found, key=lambda row: row.place) == sorted(rows, key=lambda row: row.place)


async def test_a_stretch_ends_with_its_last_target(store: Store) -> None:
    """`after` is left out, `through` is in, whatever its channel."""
    reminder_id, at = unique("r"), fresh_minute()
    rows = [row for row in told(reminder_id, at, 200) if bucket_of(row.target) == 3]
    await store.ledger.write(rows, at=NOW)
    occurrence_id = rows[0].occurrence.occurrence_id
    first, last = rows[1], rows[4]
    found = await store.fanouts.targets(
        reminder_id,
        occurrence_id,
        3,
        after=(first.target, first.channel_id),
        through=last.target,
        limit=100,
    )
    assert found == rows[2:5]
    assert not await store.fanouts.targets(reminder_id, unique("o"), 3, limit=9)


async def test_targets_are_counted_by_how_they_stand(store: Store) -> None:
    """As the rows are now, not as they were."""
    reminder_id, at = unique("r"), fresh_minute()
    statuses = list(DeliveryStatus)
    rows = [row for row in told(reminder_id, at, 400) if bucket_of(row.target) == 5]
    rows = rows[: len(statuses)]
    assert len(rows) == len(statuses)
    mixed = [replace(row, delivery=status) for row, status in zip(rows, statuses, strict=True)]
    await store.ledger.write(mixed, at=NOW)
    occurrence_id = rows[0].occurrence.occurrence_id
    counts = await store.fanouts.counts(reminder_id, occurrence_id, 5)
    assert counts == TargetCounts(open=3, taken=2, stopped=2, failed=2)
    ended = [replace(row, delivery=DeliveryStatus.DELIVERED) for row in rows]
    await store.ledger.write(ended, at=NOW + US)
    counts = await store.fanouts.counts(reminder_id, occurrence_id, 5)
    assert counts == TargetCounts(taken=len(rows))
    assert await store.fanouts.counts(reminder_id, occurrence_id, 6) == TargetCounts()


async def test_pages_are_kept_by_bucket_and_number(store: Store) -> None:
    """The later write of a page stands; many pages come in order."""
    reminder_id, occurrence_id = unique("r"), unique("o")
    counts = [
        PageCount(bucket=bucket, page=page, counts=TargetCounts(taken=page), last=page == 150)
        for bucket in (0, 15)
        for page in range(1, 151)
    ]
    for count in reversed(counts):
        await store.fanouts.record(reminder_id, occurrence_id, count, at=NOW)
    again = replace(counts[0], paused=1)
    await store.fanouts.record(reminder_id, occurrence_id, again, at=NOW + US)
    await store.fanouts.record(reminder_id, occurrence_id, counts[0], at=NOW)
    assert list(await store.fanouts.pages(reminder_id, occurrence_id)) == [again, *counts[1:]]
    assert not await store.fanouts.pages(reminder_id, unique("o"))

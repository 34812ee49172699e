"""Pending occurrences by user."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from reminders.model.entry import DueEntry, Kind
from reminders.ports import IndexRow, Store
from tests.contract.store.samples import (
    NAMESPACE,
    SECOND,
    US,
    entry,
    fresh_minute,
    new,
    occurrence,
    stamp_now,
    unique,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")


def row_of(one: DueEntry) -> IndexRow:
    """Its row."""
    assert one.occurrence is not None
    return IndexRow(fire_at=one.occurrence.fire_at, reminder_id=one.reminder_id, key=one.key)


async def test_pages_are_in_order_of_time(store: Store) -> None:
    """Soonest first, then by reminder; page after page, none twice and none missing."""
    user_id, minute = unique("u"), fresh_minute()
    entries = [entry(minute + n % 7 * SECOND + n % 2 * US) for n in range(25)]
    await store.users.add(entries, user_id, stamp=stamp_now())
    expected = sorted(row_of(one) for one in entries)
    for limit in (1, 10, 50):
        seen: list[IndexRow] = []
        while True:
            page = await store.users.page(
                NAMESPACE, user_id, start=minute, after=seen[-1] if seen else None, limit=limit
            )
            seen += page
            if len(page) < limit:
                break
        assert seen == expected


async def test_page_starts_at_a_time(store: Store) -> None:
    """`start` itself is in; a time and a row before it hold together."""
    user_id, minute = unique("u"), fresh_minute()
    entries = [entry(minute + n * SECOND) for n in range(5)]
    await store.users.add(entries, user_id, stamp=stamp_now())
    start = minute + 2 * SECOND
    page = await store.users.page(NAMESPACE, user_id, start=start, limit=9)
    assert page == [row_of(one) for one in entries[2:]]
    page = await store.users.page(
        NAMESPACE, user_id, start=start, after=row_of(entries[0]), limit=1
    )
    assert page == [row_of(entries[2])]


async def test_users_and_namespaces_are_apart(store: Store) -> None:
    """Nobody sees another one's."""
    user_id, one = unique("u"), entry()
    start = one.key.ring_at
    await store.users.add([one], user_id, stamp=stamp_now())
    assert await store.users.page(NAMESPACE, unique("u"), start=start, limit=9) == []
    assert await store.users.page(unique("ns"), user_id, start=start, limit=9) == []


async def test_row_stands_at_the_promise_and_names_where_it_was_put(store: Store) -> None:
    """An entry that was moved is listed at its fire time, with its key."""
    user_id, minute = unique("u"), fresh_minute()
    moved = entry(minute + 90 * SECOND, occurrence=occurrence(minute))
    await store.users.add([moved], user_id, stamp=stamp_now())
    (row,) = await store.users.page(NAMESPACE, user_id, start=minute, limit=9)
    assert (row.fire_at, row.key) == (minute, moved.key)


async def test_a_late_add_does_not_bring_back_a_removed_row(store: Store) -> None:
    """A smaller or equal stamp stays out; a larger one is a new row. Repeating is safe."""
    user_id, one, stamp = unique("u"), entry(), stamp_now()

    async def there() -> int:
        page = await store.users.page(NAMESPACE, user_id, start=one.key.ring_at, limit=9)
        return len(page)

    await store.users.add([one], user_id, stamp=stamp)
    await store.users.add([one], user_id, stamp=stamp)
    assert await there() == 1
    await store.users.remove([one], user_id, stamp=stamp + 2)
    await store.users.remove([one], user_id, stamp=stamp + 2)
    for late in (stamp, stamp + 1, stamp + 2):
        await store.users.add([one], user_id, stamp=late)
        assert await there() == 0
    await store.users.add([one], user_id, stamp=stamp + 3)
    assert await there() == 1


async def test_a_removal_before_its_row(store: Store) -> None:
    """The removal may arrive first."""
    user_id, one, stamp = unique("u"), entry(), stamp_now()
    await store.users.remove([one], user_id, stamp=stamp + 1)
    await store.users.add([one], user_id, stamp=stamp)
    assert await store.users.page(NAMESPACE, user_id, start=one.key.ring_at, limit=9) == []


async def test_versions_of_one_time_do_not_hide_each_other(store: Store) -> None:
    """Removing the old version's row leaves the new one's, at the same time and stamp."""
    user_id, stamp = unique("u"), stamp_now()
    old = entry()
    fresh = entry(old.key.ring_at, reminder_id=old.reminder_id, version=2)
    await store.users.add([old], user_id, stamp=stamp)
    await store.users.remove([old], user_id, stamp=stamp + 2)
    await store.users.add([fresh], user_id, stamp=stamp + 2)
    page = await store.users.page(NAMESPACE, user_id, start=old.key.ring_at, limit=9)
    assert page == [row_of(fresh)]


async def test_entries_that_are_no_occurrence_are_not_listed(store: Store) -> None:
    """A finish entry is nobody's pending reminder."""
    user_id = unique("u")
    finish = replace(entry(), kind=Kind.FINISH, occurrence=None)
    await store.users.add([finish], user_id, stamp=stamp_now())
    await store.users.remove([finish], user_id, stamp=stamp_now())
    start = finish.key.ring_at - timedelta(days=1)
    assert await store.users.page(NAMESPACE, user_id, start=start, limit=9) == []


async def test_create_lists_every_planned_occurrence(store: Store) -> None:
    """One row for each entry."""
    user_id, minute = unique("u"), fresh_minute()
    reminder = new(minute, minute + SECOND, user_id=user_id)
    await store.records.create([reminder])
    page = await store.users.page(NAMESPACE, user_id, start=minute, limit=9)
    assert page == [row_of(one) for one in reminder.entries]

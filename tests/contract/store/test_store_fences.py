"""Cancelled groups: a fence for each, and what it is compared with in the user index."""

from datetime import UTC, datetime

import pytest

from reminders.ports import IndexRow, Store
from tests.contract.store.samples import (
    NAMESPACE,
    SECOND,
    US,
    entry,
    fresh_minute,
    new,
    stamp_now,
    unique,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

AT = datetime(2026, 12, 1, 9, 0, 0, 123_457, tzinfo=UTC)


async def test_a_fence_reads_back_to_the_microsecond(store: Store) -> None:
    """Of its namespace and group alone; what was not cancelled is left out."""
    group, other = (NAMESPACE, unique("g")), (NAMESPACE, unique("g"))
    await store.fences.put(*group, AT)
    asked = [group, other, ("elsewhere", group[1])]
    assert await store.fences.read(asked) == {group: AT}
    assert await store.fences.read([]) == {}


async def test_a_fence_only_grows(store: Store) -> None:
    """Whoever writes a smaller value later takes nothing back; repeating is safe."""
    group = (NAMESPACE, unique("g"))
    for at in (AT, AT - SECOND, AT + US, AT + US, AT):
        await store.fences.put(*group, at)
    assert await store.fences.read([group]) == {group: AT + US}


async def test_many_fences_are_read_at_once(store: Store) -> None:
    """More than one query takes, of several namespaces."""
    groups = [(f"{NAMESPACE}.{number % 3}", unique("g")) for number in range(160)]
    for number, group in enumerate(groups[::2]):
        await store.fences.put(*group, AT + number * SECOND)
    expected = {group: AT + number * SECOND for number, group in enumerate(groups[::2])}
    assert await store.fences.read(groups) == expected


async def test_an_index_row_tells_its_group(store: Store) -> None:
    """And when its record was created, as a create and as an expander write it; without a group,
    neither.
    """
    user_id, minute, group = unique("u"), fresh_minute(), unique("g")
    created = new(minute, user_id=user_id, group_id=group)
    added = entry(minute + SECOND, group_id=group, record_created_at=minute - 7 * US)
    await store.records.create([created])
    await store.users.add([added, entry(minute + 2 * SECOND)], user_id, stamp=stamp_now())
    rows: list[IndexRow] = await store.users.page(NAMESPACE, user_id, start=minute, limit=9)
    assert [(row.group_id, row.record_created_at) for row in rows] == [
        (group, created.entries[0].record_created_at),
        (group, minute - 7 * US),
        (None, None),
    ]

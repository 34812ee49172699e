"""Walking over all records, page by page, and remembering how far a walk has come."""

import asyncio
from datetime import timedelta

import pytest

from reminders.model.record import Stored
from reminders.ports import Store
from tests.contract.store.samples import change_of, ended, entry, fresh_minute, new, unique

pytestmark = pytest.mark.asyncio(loop_scope="session")

MINUTE = timedelta(minutes=1)


async def walk(store: Store, *, limit: int, after: int | None = None) -> list[Stored]:
    """All pages from a position on."""
    found: list[Stored] = []
    while True:
        page = await store.records.scan(after, limit=limit)
        found += page.found
        if page.through is None:
            return found
        assert after is None or page.through > after, "it goes on"
        after = page.through


@pytest.mark.parametrize("limit", [1, 5, 7, 1000])
async def test_a_walk_finds_every_record_once_as_a_read_gives_it(store: Store, limit: int) -> None:
    """With live entries and changes in progress, whatever the size of a page and of a partition."""
    made = [new(*(fresh_minute() for _ in range(count)), recurs=True) for count in (1, 2, 6, 3, 4)]
    await store.records.create(made)
    begun, change = change_of(made[0])
    assert await store.records.begin(begun, change)

    walked = await walk(store, limit=limit)
    found = {one.record.reminder_id: one for one in walked}

    assert len(found) == len(walked), "none twice"
    for each in made:
        reminder_id = each.record.reminder_id
        read = await store.records.read(reminder_id)
        assert read is not None
        assert found[reminder_id].record == read.record
        assert found[reminder_id].change == read.change
        assert set(found[reminder_id].live) >= set(read.live[:4])
    assert found[made[0].record.reminder_id].change == change


async def test_a_walk_goes_on_where_any_page_ended(store: Store) -> None:
    """A position is all that is needed: what one walk has not seen, the next one sees."""
    made = [new() for _ in range(20)]
    await store.records.create(made)
    whole = [one.record.reminder_id for one in await walk(store, limit=6)]
    seen: list[str] = []
    position: int | None = None
    while True:
        page = await store.records.scan(position, limit=6)
        seen += [one.record.reminder_id for one in page.found]
        position = page.through
        if position is None:
            break
        rest = [one.record.reminder_id for one in await walk(store, limit=9, after=position)]
        assert seen + rest == whole
    assert {one.record.reminder_id for one in made} <= set(whole)


async def test_a_walk_finds_the_entries_of_the_records_own_version(store: Store) -> None:
    """Though those of an older one, which come first, fill what a page takes of a record."""
    old = new(*(fresh_minute() + 1000 * MINUTE for _ in range(5)))
    await store.records.create([old])
    begun, change = change_of(old, to=fresh_minute())
    # Sorted by entry id: the version is last in it, so these come after all the older ones.
    nearer = entry(fresh_minute(), reminder_id=old.record.reminder_id, version=2, entry_id="!2")
    await store.records.begin(begun, change)
    await store.records.add_live([nearer], stamp=change.stamp)
    await store.records.end(ended(begun, change), change)
    (found,) = [
        one
        for one in await walk(store, limit=10)
        if one.record.reminder_id == old.record.reminder_id
    ]
    assert [each.key for each in found.current] == [nearer.key]


async def test_a_saved_state_is_replaced_only_by_whoever_knows_it(store: Store) -> None:
    """Of two that save at once, one learns that it lost."""
    name = unique("sweep")
    assert await store.sweeps.read(name) is None
    assert await store.sweeps.save(name, b"1", expected=None)
    assert not await store.sweeps.save(name, b"other", expected=None)
    assert not await store.sweeps.save(name, b"other", expected=b"0")
    assert await store.sweeps.read(name) == b"1"
    both = await asyncio.gather(
        *(store.sweeps.save(name, state, expected=b"1") for state in (b"2", b"3"))
    )
    assert sorted(both) == [False, True]
    assert await store.sweeps.read(name) in (b"2", b"3")

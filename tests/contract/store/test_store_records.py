"""Creating, reading and changing records."""

import asyncio
from datetime import timedelta

import pytest
from msgspec.structs import replace

from reminders.model.record import Status
from reminders.ports import Store
from tests.contract.store.samples import (
    SECOND,
    body,
    change_of,
    ended,
    entry,
    fresh_minute,
    new,
    next_record,
    occurrence,
    stamp_now,
    unique,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_create_writes_all_that_a_reminder_is(store: Store) -> None:
    """Record, live entry, due entry and index row are there once create has answered."""
    reminder = new()
    (planned,) = reminder.entries
    await store.records.create([reminder])
    stored = await store.records.read(reminder.record.reminder_id)
    assert stored is not None
    assert stored.record == reminder.record
    assert stored.live == (replace(planned, body=b""),)
    assert stored.current == stored.live
    assert stored.change is None
    state = await store.due.read(planned.key)
    assert state is not None
    assert state.entry == planned
    user_id = reminder.record.definition.user_id
    rows = await store.users.page(
        reminder.record.namespace, user_id, start=fresh_minute() - timedelta(days=1), limit=5
    )
    assert [row.key for row in rows] == [planned.key]


async def test_create_takes_hundreds_at_once(store: Store) -> None:
    """500 reminders of one call are all there, with two entries each."""
    minute = fresh_minute()
    reminders = [new(minute, minute + SECOND, recurs=True) for _ in range(500)]
    await store.records.create(reminders)
    found = await store.records.read_many(r.record.reminder_id for r in reminders)
    assert {i: s.record for i, s in found.items()} == {
        r.record.reminder_id: r.record for r in reminders
    }
    assert all(len(stored.live) == 2 for stored in found.values())


async def test_create_of_nothing_planned(store: Store) -> None:
    """A record without entries can be stored and read."""
    reminder = replace(new(), entries=())
    await store.records.create([reminder])
    stored = await store.records.read(reminder.record.reminder_id)
    assert stored is not None
    assert stored.record == reminder.record
    assert stored.live == ()


async def test_create_of_nothing_answers(store: Store) -> None:
    """An empty call is no error."""
    await store.records.create([])


async def test_repeated_create_changes_nothing(store: Store) -> None:
    """A repeat writes equal bytes, so neither a later version nor an outcome is undone."""
    reminder = new()
    (planned,) = reminder.entries
    await store.records.create([reminder])
    await store.due.handled([planned], at=planned.key.ring_at)
    record, change = change_of(reminder)
    assert await store.records.begin(record, change)
    await store.records.create([reminder])
    stored = await store.records.read(record.reminder_id)
    assert stored is not None
    assert stored.record == record
    assert stored.change == change
    state = await store.due.read(planned.key)
    assert state is not None
    assert state.handled_at == planned.key.ring_at


async def test_read_of_a_stranger(store: Store) -> None:
    """None, also where only live entries are there."""
    stranger = entry()
    await store.records.add_live([stranger], stamp=stamp_now())
    assert await store.records.read(unique("r")) is None
    assert await store.records.read(stranger.reminder_id) is None


async def test_read_many_leaves_out_missing_ones(store: Store) -> None:
    """Only what is there is answered, each once."""
    here = [new() for _ in range(45)]
    await store.records.create(here)
    ids = [r.record.reminder_id for r in here]
    found = await store.records.read_many([*ids, unique("r"), ids[0]])
    assert set(found) == set(ids)
    assert await store.records.read_many([]) == {}


async def test_read_gives_the_newest_live_entries(store: Store) -> None:
    """At least four, newest first by id, however many were added and dropped before."""
    minute = fresh_minute()
    reminder = new(minute, recurs=True)
    reminder_id, stamp = reminder.record.reminder_id, reminder.record.stamp
    await store.records.create([reminder])
    later = [
        entry(minute + timedelta(minutes=n), reminder_id=reminder_id, recurs=True)
        for n in range(1, 12)
    ]
    await store.records.add_live(later, stamp=stamp)
    gone = [reminder.entries[0], *later[:6]]
    await store.records.drop_live(reminder_id, [e.key.entry_id for e in gone], stamp=stamp + 1)
    stored = await store.records.read(reminder_id)
    assert stored is not None
    expected = [replace(e, body=b"") for e in reversed(later[6:])]
    assert list(stored.live)[:4] == expected[:4]
    assert set(stored.live) <= set(expected)
    many = await store.records.read_many([reminder_id])
    assert many[reminder_id] == stored


async def test_current_entries_are_found_behind_later_ones_of_older_versions(
    store: Store,
) -> None:
    """A reminder moved nearer again and again still shows the entry of its own version."""
    minute = fresh_minute()
    reminder = new(minute)
    reminder_id = reminder.record.reminder_id
    await store.records.create([reminder])
    older = [
        entry(minute + timedelta(days=n), reminder_id=reminder_id, version=9) for n in range(90)
    ]
    await store.records.add_live(older, stamp=reminder.record.stamp)
    stored = await store.records.read(reminder_id)
    assert stored is not None
    assert [e.key for e in stored.current] == [reminder.entries[0].key]
    many = await store.records.read_many([reminder_id])
    assert [e.key for e in many[reminder_id].current] == [reminder.entries[0].key]


async def test_live_entries_follow_their_stamps(store: Store) -> None:
    """A late add does not bring back what was dropped; a later one does; repeating is safe."""
    reminder = new()
    reminder_id, stamp = reminder.record.reminder_id, reminder.record.stamp
    extra = entry(reminder_id=reminder_id)
    await store.records.create([reminder])

    async def ids() -> set[str]:
        stored = await store.records.read(reminder_id)
        assert stored is not None
        return {e.key.entry_id for e in stored.live} & {extra.key.entry_id}

    await store.records.add_live([extra], stamp=stamp)
    await store.records.add_live([extra], stamp=stamp)
    assert await ids()
    await store.records.drop_live(reminder_id, [extra.key.entry_id], stamp=stamp + 5)
    await store.records.add_live([extra], stamp=stamp + 5)
    assert not await ids()
    await store.records.add_live([extra], stamp=stamp + 6)
    assert await ids()


async def test_begin_sets_version_and_change(store: Store) -> None:
    """Both at once; until it is ended no other change begins."""
    reminder = new()
    await store.records.create([reminder])
    record, change = change_of(reminder, to=fresh_minute())
    assert await store.records.begin(record, change)
    stored = await store.records.read(record.reminder_id)
    assert stored is not None
    assert (stored.record, stored.change) == (record, change)
    other = replace(change, request_id=unique("req"), version=3)
    assert not await store.records.begin(next_record(record, other), other)


async def test_a_repeated_begin_finds_its_own_change(store: Store) -> None:
    """The same arguments again are answered alike while the change stands; after its end they are
    not.
    """
    reminder = new()
    await store.records.create([reminder])
    record, change = change_of(reminder)
    assert await store.records.begin(record, change)
    assert await store.records.begin(record, change)
    assert not await store.records.begin(record, replace(change, stamp=change.stamp + 1))
    assert await store.records.end(ended(record, change), change)
    assert not await store.records.begin(record, change)


async def test_begin_refuses_another_version_and_a_stranger(store: Store) -> None:
    """It replaces the version before its own, and nothing that is gone."""
    reminder = new()
    record, change = change_of(reminder)
    assert not await store.records.begin(record, change)
    await store.records.create([reminder])
    too_new = replace(record, version=3)
    assert not await store.records.begin(too_new, replace(change, version=3))
    stored = await store.records.read(record.reminder_id)
    assert stored is not None
    assert (stored.record, stored.change) == (reminder.record, None)


async def test_end_replaces_the_record_and_clears_the_change(store: Store) -> None:
    """And the next change can begin."""
    reminder = new()
    await store.records.create([reminder])
    record, change = change_of(reminder, to=fresh_minute())
    assert await store.records.begin(record, change)
    outcome = ended(record, change)
    assert await store.records.end(outcome, change)
    stored = await store.records.read(record.reminder_id)
    assert stored is not None
    assert (stored.record, stored.change) == (outcome, None)
    following = replace(change, request_id=unique("req"), version=3)
    assert await store.records.begin(next_record(outcome, following), following)


async def test_end_needs_its_own_change_to_stand(store: Store) -> None:
    """Not before begin, not twice, not somebody else's."""
    reminder = new()
    await store.records.create([reminder])
    record, change = change_of(reminder)
    assert not await store.records.end(ended(record, change), change)
    assert await store.records.begin(record, change)
    other = replace(change, request_id=unique("req"))
    assert not await store.records.end(ended(record, other), other)
    assert await store.records.end(ended(record, change), change)
    assert not await store.records.end(ended(record, change, applied=False), change)
    stored = await store.records.read(record.reminder_id)
    assert stored is not None
    assert stored.record.status is Status.CANCELLED
    assert stored.record.outcomes[0].applied


async def test_one_of_many_begins_wins(store: Store) -> None:
    """The winner's change is what stands."""
    reminder = new()
    await store.records.create([reminder])
    rivals = [change_of(reminder) for _ in range(12)]
    won = await asyncio.gather(*(store.records.begin(r, c) for r, c in rivals))
    assert sum(won) == 1
    stored = await store.records.read(reminder.record.reminder_id)
    assert stored is not None
    assert stored.change == rivals[won.index(True)][1]


async def test_one_of_many_ends_wins(store: Store) -> None:
    """The winner's outcome is what is recorded."""
    reminder = new()
    await store.records.create([reminder])
    record, change = change_of(reminder)
    assert await store.records.begin(record, change)
    outcomes = [replace(ended(record, change), pause_reason=str(n)) for n in range(12)]
    won = await asyncio.gather(*(store.records.end(o, change) for o in outcomes))
    assert sum(won) == 1
    stored = await store.records.read(record.reminder_id)
    assert stored is not None
    assert stored.record == outcomes[won.index(True)]


async def test_large_bodies_stand_in_the_live_entry(store: Store) -> None:
    """Over 2 KiB: the due entry has none, and `body` answers it; also up to the largest payload."""
    minute = fresh_minute()
    for size in (2_100, 20_000, 64 * 1024):
        reminder = new(minute, minute + SECOND, recurs=True, body=body(size))
        await store.records.create([reminder])
        for planned in reminder.entries:
            state = await store.due.read(planned.key)
            assert state is not None
            assert state.entry == replace(planned, body=b"")
            read = await store.records.body(planned.reminder_id, planned.key.entry_id)
            assert read == body(size)
    added = entry(body=body(3_000))
    await store.records.add_live([added], stamp=stamp_now())
    assert await store.records.body(added.reminder_id, added.key.entry_id) == body(3_000)


async def test_small_bodies_stand_in_the_due_entry_only(store: Store) -> None:
    """Up to 2 KiB firing needs one read; `body` knows nothing of them, nor of strangers."""
    reminder = new(body=b"b" * 2048)
    (planned,) = reminder.entries
    await store.records.create([reminder])
    state = await store.due.read(planned.key)
    assert state is not None
    assert state.entry == planned
    assert await store.records.body(planned.reminder_id, planned.key.entry_id) is None
    assert await store.records.body(unique("r"), "e") is None


async def test_drop_live_takes_the_body_along(store: Store) -> None:
    """Nothing is left of a dropped entry."""
    reminder = new(body=body(3_000))
    (planned,) = reminder.entries
    await store.records.create([reminder])
    stamp = reminder.record.stamp + 1
    await store.records.drop_live(planned.reminder_id, [planned.key.entry_id], stamp=stamp)
    assert await store.records.body(planned.reminder_id, planned.key.entry_id) is None


async def test_live_entries_of_one_occurrence_keep_their_versions_apart(store: Store) -> None:
    """Another version is another entry."""
    reminder = new()
    (planned,) = reminder.entries
    await store.records.create([reminder])
    assert planned.occurrence is not None
    promised = occurrence(planned.key.ring_at, planned.occurrence.occurrence_id)
    second = entry(
        planned.key.ring_at, reminder_id=planned.reminder_id, version=2, occurrence=promised
    )
    await store.records.add_live([second], stamp=stamp_now())
    stored = await store.records.read(planned.reminder_id)
    assert stored is not None
    assert [e.version for e in stored.live] == [2, 1]

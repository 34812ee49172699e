"""Live entries of triggers, beside those of the schedule."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from reminders.buckets import trigger_entry_id
from reminders.model.entry import DueEntry, Origin
from reminders.model.record import NewReminder
from reminders.ports import Store
from tests.contract.store.samples import entry, fresh_minute, new, occurrence

pytestmark = pytest.mark.asyncio(loop_scope="session")


def rule() -> NewReminder:
    """With two planned occurrences."""
    return new(fresh_minute(), fresh_minute(), recurs=True)


def triggered(reminder_id: str, second: int, version: int = 1) -> DueEntry:
    """The live entry of a trigger."""
    at = datetime(2036, 6, 1, 12, 0, second, tzinfo=UTC)
    rung = replace(occurrence(at, f"20360601T1200{second:02}Z"), origin=Origin.TRIGGER)
    entry_id = trigger_entry_id(reminder_id, rung.occurrence_id, version)
    return entry(at, reminder_id=reminder_id, version=version, entry_id=entry_id, occurrence=rung)


async def test_live_entries_of_triggers_stand_apart(store: Store) -> None:
    """However many there are, a read brings the schedule's; the triggers' come newest first, and
    with a read that saw the whole partition.
    """
    made = rule()
    await store.records.create([made])
    reminder_id, stamp = made.record.reminder_id, made.record.stamp
    stored = await store.records.read(reminder_id)
    assert stored is not None
    assert stored.beside == ()
    first = triggered(reminder_id, 1)
    await store.records.add_live([first], stamp=stamp)
    stored = await store.records.read(reminder_id)
    assert stored is not None
    assert [e.key for e in stored.beside or ()] == [first.key]
    others = [triggered(reminder_id, second) for second in range(2, 10)]
    await store.records.add_live([*others, triggered(reminder_id, 10, version=2)], stamp=stamp)
    stored = await store.records.read(reminder_id)
    assert stored is not None
    assert {e.key for e in stored.live} == {e.key for e in made.entries}
    assert stored.beside is None
    beside = await store.records.beside(reminder_id)
    assert [e.key.ring_at.second for e in beside] == [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]
    assert {e.body for e in beside} == {b""}
    gone = [entry.key.entry_id for entry in others]
    await store.records.drop_live(reminder_id, gone, stamp=stamp + 1)
    assert len(await store.records.beside(reminder_id)) == 2
    many = (await store.records.read_many([reminder_id]))[reminder_id]
    assert {e.key for e in many.live} == {e.key for e in made.entries}


async def test_very_many_triggers_are_all_found(store: Store) -> None:
    """More than one page of them; and none of another reminder."""
    made, other = rule(), rule()
    await store.records.create([made, other])
    reminder_id = made.record.reminder_id
    entries = []
    for version in range(1, 4):
        entries += [triggered(reminder_id, second, version) for second in range(50)]
    await store.records.add_live(entries, stamp=made.record.stamp)
    assert len(await store.records.beside(reminder_id)) == 150
    assert await store.records.beside(other.record.reminder_id) == ()
    assert await store.records.beside("r-unknown") == ()

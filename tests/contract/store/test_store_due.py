"""Due entries: puts, fates and outcomes, slices and counts."""

import random
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from reminders.memory.store import MemoryStore
from reminders.model.codec import decode_entry, encode
from reminders.model.entry import DueEntry, EntryState, Fate, Kind
from reminders.ports import Counts, Store
from reminders.storage.session import connect
from tests.contract.store.samples import (
    MS,
    SECOND,
    US,
    body,
    entry,
    fresh_minute,
    retry,
    stamp_now,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def state_of(store: Store, one: DueEntry) -> EntryState:
    """What is stored under its key."""
    state = await store.due.read(one.key)
    assert state is not None
    return state


async def test_an_entry_reads_as_it_was_put(store: Store) -> None:
    """Whole, with the bytes that are handed on."""
    one = entry(fresh_minute() + 1234 * US, recurs=True, group_id="g", next_at=fresh_minute())
    await store.due.put([one], stamp=stamp_now())
    state = await state_of(store, one)
    assert state == EntryState(entry=one, raw=encode(one))
    assert decode_entry(state.raw) == one


async def test_read_of_what_is_not_there(store: Store) -> None:
    """None, also where another entry of the same time is."""
    one = entry()
    await store.due.put([one], stamp=stamp_now())
    assert await store.due.read(replace(one.key, entry_id="other")) is None
    assert await store.due.read(replace(one.key, ring_at=one.key.ring_at + US)) is None


async def test_later_stamps_win(store: Store) -> None:
    """Of two puts under one key the later stamp stands, in whichever order they arrive."""
    one = entry()
    stamp = stamp_now()
    newer = replace(one, parked=1)
    await store.due.put([newer], stamp=stamp + 1)
    await store.due.put([one], stamp=stamp)
    assert (await state_of(store, one)).entry == newer


async def test_at_equal_stamps_the_larger_value_wins(store: Store) -> None:
    """So all replicas agree, in whichever order they were written. Due so far ahead that nothing
    expires: of two expiries, which are whole seconds of when each was written, the later one wins
    before the value is looked at.
    """
    stamp = stamp_now()
    for order in (1, -1):
        one = entry(datetime(2040, 1, 1, 12, tzinfo=UTC))
        versions = sorted([one, replace(one, parked=1), replace(one, parked=2)], key=encode)
        for version in versions[::order]:
            await store.due.put([version], stamp=stamp)
        assert (await state_of(store, one)).entry == versions[-1]


async def test_a_late_put_keeps_the_fate(store: Store) -> None:
    """A void that came before its entry is there when the entry comes; until then there is
    nothing.
    """
    one = entry()
    stamp = stamp_now()
    await store.due.mark([one.key], Fate.VOID, stamp=stamp)
    assert await store.due.read(one.key) is None
    assert await store.due.slice(one.key.minute, one.key.shard, limit=5) == []
    await store.due.put([one], stamp=stamp + 10)
    assert (await state_of(store, one)).fate is Fate.VOID


async def test_claimed_wins_over_void(store: Store) -> None:
    """By its later stamp, in whichever order they arrive."""
    first, second = entry(), entry()
    stamp = stamp_now()
    await store.due.put([first, second], stamp=stamp)
    await store.due.mark([first.key], Fate.VOID, stamp=stamp)
    await store.due.mark([first.key], Fate.CLAIMED, stamp=stamp + 1)
    await store.due.mark([second.key], Fate.CLAIMED, stamp=stamp + 1)
    await store.due.mark([second.key], Fate.VOID, stamp=stamp)
    assert (await state_of(store, first)).fate is Fate.CLAIMED
    assert (await state_of(store, second)).fate is Fate.CLAIMED


async def test_outcomes_are_recorded(store: Store) -> None:
    """To the microsecond, each on its own."""
    one = entry(recurs=True)
    at = one.key.ring_at + 123_456 * US
    await store.due.put([one], stamp=stamp_now())
    await store.due.handled([one], at=at)
    state = await state_of(store, one)
    assert (state.handled_at, state.expanded_at, state.settled) == (at, None, False)
    await store.due.expanded([one], at=at + SECOND)
    state = await state_of(store, one)
    assert (state.handled_at, state.expanded_at, state.settled) == (at, at + SECOND, True)


async def test_put_never_erases_fate_or_outcomes(store: Store) -> None:
    """Not even with a stamp far ahead of theirs."""
    one = entry(recurs=True)
    at = one.key.ring_at
    stamp = stamp_now()
    await store.due.put([one], stamp=stamp)
    await store.due.mark([one.key], Fate.CLAIMED, stamp=stamp)
    await store.due.handled([one], at=at)
    await store.due.expanded([one], at=at)
    await store.due.put([one], stamp=stamp + 10**12)
    state = await state_of(store, one)
    assert (state.fate, state.handled_at, state.expanded_at) == (Fate.CLAIMED, at, at)


async def test_large_bodies_of_retries_and_parked_ones_stay_inline(store: Store) -> None:
    """They have no live entry of their own id."""
    first = entry()
    again = retry(first, fresh_minute(), size=60_000)
    parked = replace(first, kind=Kind.PARKED, body=body(60_000))
    await store.due.put([again, parked], stamp=stamp_now())
    assert (await state_of(store, again)).entry == again
    assert (await state_of(store, parked)).entry == parked


async def test_finish_entries_need_no_occurrence(store: Store) -> None:
    """They wait like everything else."""
    one = replace(entry(entry_id="x.finish.v2"), kind=Kind.FINISH, occurrence=None, body=b"")
    await store.due.put([one], stamp=stamp_now())
    assert (await state_of(store, one)).entry == one


async def filled(store: Store, minute: datetime, times: list[datetime]) -> list[DueEntry]:
    """Entries at these times in shard 3, in the order of their rows."""
    entries = [entry(at, shard=3) for at in times]
    shuffled = random.Random(7).sample(entries, len(entries))
    await store.due.put(shuffled, stamp=stamp_now())
    assert {one.key.minute for one in entries} == {minute}
    return sorted(entries, key=lambda one: one.key)


async def test_slices_page_through_a_partition_in_order(store: Store) -> None:
    """By (ring_at, entry_id), also where many ring at once or microseconds apart."""
    minute = fresh_minute()
    times = [minute] * 7 + [minute + 30 * SECOND] * 23 + [minute + n * US for n in range(1, 9)]
    times += [minute + timedelta(minutes=1) - US]
    entries = await filled(store, minute, times)
    for limit in (1, 4, 100):
        seen: list[DueEntry] = []
        while True:
            page = await store.due.slice(
                minute, 3, after=seen[-1].key if seen else None, limit=limit
            )
            seen += [state.entry for state in page]
            if len(page) < limit:
                break
        assert seen == entries


async def test_slices_are_bounded_by_time(store: Store) -> None:
    """`start` is in, `before` is out, and `after` holds as well."""
    minute = fresh_minute()
    entries = await filled(store, minute, [minute + n * 500 * MS for n in range(20)])
    start, before = minute + 2 * SECOND, minute + 5 * SECOND
    page = await store.due.slice(minute, 3, start=start, before=before, limit=50)
    assert [state.entry for state in page] == entries[4:10]
    page = await store.due.slice(
        minute, 3, after=entries[6].key, start=start, before=before, limit=2
    )
    assert [state.entry for state in page] == entries[7:9]
    page = await store.due.slice(minute, 3, after=entries[1].key, start=start, limit=1)
    assert [state.entry for state in page] == entries[4:5]
    page = await store.due.slice(minute, 3, start=start + US, before=before + US, limit=50)
    assert [state.entry for state in page] == entries[5:11]


async def test_slices_skip_what_has_only_a_fate(store: Store) -> None:
    """And are full all the same while there is more."""
    minute = fresh_minute()
    entries = await filled(store, minute, [minute + n * SECOND for n in range(8)])
    ghosts = [entry(minute + n * SECOND + MS, shard=3) for n in range(6)]
    await store.due.mark([ghost.key for ghost in ghosts], Fate.VOID, stamp=stamp_now())
    page = await store.due.slice(minute, 3, limit=5)
    assert [state.entry for state in page] == entries[:5]
    page = await store.due.slice(minute, 3, after=entries[4].key, limit=5)
    assert [state.entry for state in page] == entries[5:]


async def test_partitions_are_minutes_of_shards(store: Store) -> None:
    """A neighbour is not seen."""
    minute = fresh_minute()
    await filled(store, minute, [minute])
    assert len(await store.due.slice(minute, 3, limit=5)) == 1
    assert await store.due.slice(minute, 4, limit=5) == []
    assert await store.due.slice(minute - timedelta(minutes=1), 3, limit=5) == []


async def test_counts(store: Store) -> None:
    """Entries, handled, recurring and expanded ones, of a stretch or of all."""
    minute = fresh_minute()
    plain = [entry(minute + n * SECOND, shard=1) for n in range(10)]
    rules = [entry(minute + n * SECOND, shard=1, recurs=True) for n in range(10, 20)]
    assert await store.due.counts(minute, 1) == Counts(
        entries=0, handled=0, recurring=0, expanded=0
    )
    await store.due.put(plain + rules, stamp=stamp_now())
    await store.due.handled(plain[:6] + rules, at=minute)
    await store.due.expanded(rules[:3], at=minute)
    counts = await store.due.counts(minute, 1)
    assert counts == Counts(entries=20, handled=16, recurring=10, expanded=3)
    assert not counts.settled
    counts = await store.due.counts(
        minute, 1, start=minute + 5 * SECOND, before=minute + 12 * SECOND
    )
    assert counts == Counts(entries=7, handled=3, recurring=2, expanded=2)
    await store.due.handled(plain, at=minute)
    await store.due.expanded(rules, at=minute)
    assert (await store.due.counts(minute, 1)).settled


async def test_an_outcome_without_entry_does_not_stand_for_an_open_one(store: Store) -> None:
    """Two entries, one handled, and a stray outcome: something is open."""
    minute = fresh_minute()
    first, second, stray = (entry(minute, shard=1) for _ in range(3))
    await store.due.put([first, second], stamp=stamp_now())
    await store.due.handled([first, stray], at=minute)
    assert await store.due.counts(minute, 1) == Counts(
        entries=2, handled=1, recurring=0, expanded=0
    )


async def test_what_can_not_be_decoded_spoils_no_page(
    store: Store, request: pytest.FixtureRequest
) -> None:
    """It is told as unreadable, with its place and outcome; the others are as they are."""
    minute = fresh_minute()
    entries = [entry(minute + n * SECOND, shard=0, recurs=True) for n in range(3)]
    await store.due.put(entries, stamp=stamp_now())
    key = entries[1].key
    if isinstance(store, MemoryStore):
        store.due.spoil(key)
    else:
        settings = request.getfixturevalue("cassandra_settings")
        cluster, session = connect(settings, settings.keyspace)
        session.execute(
            "UPDATE due SET entry = 0xc1 WHERE minute = %s AND shard = 0 AND ring_at_us = %s"
            " AND entry_id = %s",
            (key.minute, int(key.ring_at.timestamp()) * 1_000_000, key.entry_id),
        )
        cluster.shutdown()
    await store.due.handled([entries[1]], at=minute)
    states = await store.due.slice(minute, 0, limit=9)
    assert [state.entry.key for state in states] == [one.key for one in entries]
    kinds = [state.entry.kind for state in states]
    assert kinds == [Kind.OCCURRENCE, Kind.UNREADABLE, Kind.OCCURRENCE]
    assert states[1].handled_at == minute
    assert states[1].entry.reminder_id == entries[1].reminder_id
    read = await store.due.read(key)
    assert read == states[1]
    assert (await store.due.counts(minute, 0)).entries == 3

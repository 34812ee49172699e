"""The trailing scan: what it does about what it finds open, and how far the watermark moves."""

import asyncio
from datetime import datetime

import pytest
from msgspec.structs import replace

from expander.expansion import Expansion
from expander.service import Expander
from reminders.buckets import DUE_LIFE, TRUSTED_LIFE, shard_of
from reminders.errors import StoreUnavailable
from reminders.model.definition import At
from reminders.model.entry import DueEntry, Kind
from reminders.model.ledger import OccurrenceStatus
from reminders.model.record import NewReminder, Record, Status
from reminders.ports import ClaimAnswer
from scanner import examiner
from tests.unit.lifecycle.world import (
    MINUTE,
    NOON,
    SECOND,
    Crash,
    World,
    behind_the_scenes,
    definition,
    every,
)
from tests.unit.scanner.harness import (
    Claimed,
    at_work,
    die,
    occurrence_states,
    put_unwatched,
    scanner_of,
)


async def without_record(world: World, name: str, at: datetime) -> DueEntry:
    """An entry that nothing but its row knows."""
    record = Record(
        namespace="ns",
        reminder_id=name,
        version=1,
        status=Status.SCHEDULED,
        definition=definition(At(instant=at)),
        created_at=NOON,
        updated_at=NOON,
        stamp=1,
    )
    (entry,) = world.reminders.planner.first(record)
    return entry


# --- the watermark --------------------------------------------------------------------------------


async def test_an_idle_shard_settles_minute_by_minute_after_the_grace(world: World) -> None:
    """Every shard does, for itself."""
    world = World(shards=3)
    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + 10 * MINUTE)
        for shard in range(3):
            lag = NOON + 10 * MINUTE - await world.settled_through(shard)
            assert MINUTE + world.limits.grace - MINUTE <= lag
            assert lag <= world.limits.grace + 2 * MINUTE


async def test_the_watermark_waits_for_an_entry_that_is_not_handled_and_goes_on_then(
    world: World,
) -> None:
    """Claimed is not settled."""
    await world.create(At(instant=NOON + 90 * SECOND))
    world.stalled = True
    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + 20 * MINUTE)
        assert await world.settled_through() == NOON + MINUTE
        world.stalled = False
        await world.clock.run_until(NOON + 22 * MINUTE)
        assert await world.settled_through() >= NOON + 18 * MINUTE
    assert len(world.rings) == 1


async def test_the_watermark_waits_for_an_expansion(world: World) -> None:
    """Handled, not expanded: its rule would fall silent."""
    await world.create(every("FREQ=DAILY"))
    async with at_work(world, scanner_of(world), expand=False):
        await world.clock.run_until(NOON + 10 * MINUTE)
        assert await world.settled_through() == NOON


async def test_a_new_lead_goes_on_from_the_watermark_on_disk(world: World) -> None:
    """And never moves it back."""
    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + 10 * MINUTE)
    reached = await world.settled_through()
    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + 11 * MINUTE)
        assert await world.settled_through() >= reached


async def test_a_watermark_that_could_not_be_written_is_written_later(world: World) -> None:
    """By the next round."""

    async def down(point: str) -> None:
        if point == "progress.advance":
            raise StoreUnavailable(operation=point)

    async with at_work(world, scanner_of(world)):
        world.on_point = down
        await world.clock.run_until(NOON + 5 * MINUTE)
        assert await world.settled_through() == NOON
        world.on_point = None
        await world.clock.run_until(NOON + 5 * MINUTE + 3 * SECOND)
        assert await world.settled_through() > NOON


async def test_a_stuck_entry_does_not_make_settled_minutes_be_counted_again(world: World) -> None:
    """Each once in stretches and once as a whole: not every round."""
    await world.create(At(instant=NOON + 30 * SECOND))
    world.stalled = True
    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + 20 * MINUTE)
        before = world.points.count("due.counts")
        await world.clock.run_until(NOON + 25 * MINUTE)
        counted = world.points.count("due.counts") - before
    assert counted <= 5 * (7 + 60 / 16) + 10


@pytest.mark.parametrize("shards", [64])
async def test_many_idle_shards_cost_little(shards: int) -> None:
    """Per shard and minute: a few slices, as many counts, one watermark."""
    world = World(shards=shards)
    async with at_work(world, scanner_of(world), dispatch=False, expand=False):
        await world.clock.run_until(NOON + 4 * MINUTE)
        world.points.clear()
        await world.clock.run_until(NOON + 5 * MINUTE)
    by_name: dict[str, int] = {}
    for point in world.points:
        by_name[point] = by_name.get(point, 0) + 1
    assert by_name["due.slice"] <= 6 * shards
    assert by_name["due.counts"] <= 7 * shards
    assert by_name["progress.advance"] <= shards
    assert by_name["renew.before"] <= 61
    assert by_name.get("claim.before", 0) == 0


# --- open entries -------------------------------------------------------------------------------


async def test_ten_thousand_entries_in_flight_are_not_claimed_over_and_over(world: World) -> None:
    """Claimed once and answered, they are left alone a while, and looked at ever more rarely."""
    claimed = Claimed(world)
    entries = [await without_record(world, f"r{n}", NOON + 5 * SECOND) for n in range(10_000)]
    with behind_the_scenes():
        await world.store.due.put(entries, stamp=1)
    world.stalled = True
    async with at_work(world, scanner_of(world), dispatch=False, expand=False):
        await world.clock.run_until(NOON + 3 * MINUTE)
        slices = world.points.count("due.slice")
    assert len(claimed.of(ClaimAnswer.CLAIMED)) == 10_000
    assert len(claimed.of(ClaimAnswer.DUPLICATE)) <= 12 * 10_000
    assert slices <= 12 * 21 + 60


async def test_a_job_that_is_gone_is_handed_on_again_to_be_rechecked(world: World) -> None:
    """Redis kept the claim and lost the job."""
    name = await world.create(At(instant=NOON + 5 * SECOND))
    async with at_work(world, scanner_of(world), dispatch=False):
        await world.clock.run_until(NOON + 6 * SECOND)
        stream = world.coordination.server.stream("jobs", 0)
        (message,) = stream.messages.values()
        assert not message.recheck
        stream.messages.clear()
        stream.fresh.clear()
        await world.clock.run_until(NOON + 40 * SECOND)
        (message,) = stream.messages.values()
        assert message.recheck
        await world.dispatch()
    assert len(world.rings) == 1
    assert world.rings[0].startswith(name)


async def test_a_claimed_one_is_handed_on_again_though_it_was_made_void(world: World) -> None:
    """The caller was told that it fired."""
    name = await world.create(At(instant=NOON + 5 * SECOND))
    async with at_work(world, scanner_of(world), dispatch=False):
        await world.clock.run_until(NOON + 6 * SECOND)
        assert (await world.cancel(name)).was_fired
        stream = world.coordination.server.stream("jobs", 0)
        stream.messages.clear()
        stream.fresh.clear()
        await world.clock.run_until(NOON + 40 * SECOND)
        await world.dispatch()
    assert len(world.rings) == 1


async def test_an_entry_without_a_record_is_closed_once_nobody_can_be_writing_it(
    world: World,
) -> None:
    """It was never acknowledged. Not at once: the record may be on its way."""
    entry = await without_record(world, "orphan", NOON + 5 * SECOND)
    world.clock.advance(MINUTE)
    await put_unwatched(world, entry)
    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + 2 * MINUTE)
        state = await world.state(entry)
        assert state is not None
        assert state.handled_at is None
        await world.clock.run_until(NOON + 5 * MINUTE)
        state = await world.state(entry)
        assert state is not None
        assert state.settled
        assert await world.settled_through() > NOON
    assert not [name for name in world.rings if name.startswith("orphan")]


async def test_a_void_entry_is_closed_and_does_not_hold_up_the_watermark(world: World) -> None:
    """Recurring or not."""
    at = NOON + 2 * MINUTE
    rule = every("FREQ=HOURLY", start_local=at.replace(tzinfo=None))
    names = [await world.create(At(instant=at)), await world.create(rule)]
    async with at_work(world, scanner_of(world)):
        for name in names:
            assert not (await world.cancel(name)).was_fired
        await world.clock.run_until(NOON + 8 * MINUTE)
        assert await world.settled_through() > NOON + 3 * MINUTE
    assert world.rings == []


async def test_a_change_that_died_is_finished_by_the_scan_that_meets_its_void(
    world: World,
) -> None:
    """Here even without its finish entry."""
    name = await world.create(At(instant=NOON + 2 * MINUTE))
    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + SECOND)

        async def die(point: str) -> None:
            if point == "due.mark.done":
                raise Crash

        world.on_point = die
        with pytest.raises(Crash):
            await world.reschedule(name, At(instant=NOON + 4 * MINUTE))
        world.on_point = None
        stored = await world.stored(name)
        assert stored.change is not None
        finish = replace(
            (await occurrence_states(world, name))[0].entry,
            key=stored.change.finish,
            kind=Kind.FINISH,
        )
        with behind_the_scenes():
            await world.store.due.handled([finish], at=world.now)
        await world.clock.run_until(NOON + 3 * MINUTE)
        assert (await world.stored(name)).change is None
        await world.clock.run_until(NOON + 5 * MINUTE)
    assert [ring[-7:] for ring in world.rings] == ["120400Z"]


async def test_an_old_place_that_was_moved_and_then_changed_never_rings(world: World) -> None:
    """The mover died before he made it void; the change did not know of it."""
    await world.take_lease()
    name = await world.create(At(instant=NOON + 5 * SECOND))
    (entry,) = (await world.stored(name)).current
    stray = replace(entry, key=replace(entry.key, ring_at=NOON + 6 * SECOND))
    assert not (await world.cancel(name)).was_fired
    world.clock.advance(2 * MINUTE)
    await put_unwatched(world, stray)
    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + 8 * MINUTE)
        assert await world.settled_through() > NOON + MINUTE
    assert world.rings == []


async def test_an_entry_in_doubt_that_was_called_fired_rings_whatever_the_policy(
    world: World,
) -> None:
    """Its rule would skip it as overtaken; but somebody was told."""
    name = await world.create(every("FREQ=SECONDLY;INTERVAL=20"))
    first, _ = (await world.stored(name)).current
    await world.take_lease()
    world.coordination.lose_everything()
    changed = await world.cancel(name)
    assert changed.was_fired
    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + 5 * MINUTE)
    assert first.dedupe_id in world.rings


# --- expansions ---------------------------------------------------------------------------------


async def test_a_lost_fires_message_is_sent_again_and_the_rule_goes_on(world: World) -> None:
    """Only to the expanders: it rang already."""
    name = await world.create(every("FREQ=MINUTELY"))
    async with at_work(world, scanner_of(world), expand=False):
        await world.clock.run_until(NOON + 2 * SECOND)
        stream = world.coordination.server.stream("fires", 0)
        assert len(stream.messages) == 1
        stream.messages.clear()
        stream.fresh.clear()
        await world.clock.run_until(NOON + 40 * SECOND)
        assert len(stream.messages) == 1
    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + 4 * MINUTE + SECOND)
    assert len(world.rings) == 5
    assert all(ring.startswith(name) for ring in world.rings)


async def test_absent_expanders_are_not_told_all_the_time(world: World) -> None:
    """Twenty minutes without them leave a message a minute at most, not one a round."""
    await world.create(every("FREQ=DAILY"))
    async with at_work(world, scanner_of(world), expand=False):
        await world.clock.run_until(NOON + 20 * MINUTE)
        stream = world.coordination.server.stream("fires", 0)
        assert 2 <= len(stream.messages) <= 21


async def test_expanders_that_are_far_behind_are_not_told_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their stream does not grow by what is in it already."""
    monkeypatch.setattr("scanner.settler.LONG_FIRES", 3)
    for _ in range(5):
        await world.create(every("FREQ=DAILY"))
    async with at_work(world, scanner_of(world), expand=False):
        await world.clock.run_until(NOON + 10 * MINUTE)
        assert len(world.coordination.server.stream("fires", 0).messages) == 5


async def test_shards_settle_for_themselves(world: World) -> None:
    """One that is stuck holds up no other."""
    world = World(shards=4)
    name = await world.create(At(instant=NOON + 30 * SECOND))
    stuck = shard_of(name, 4)
    world.stalled = True
    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + 10 * MINUTE)
        reached = {shard: await world.settled_through(shard) for shard in range(4)}
    assert reached.pop(stuck) == NOON
    assert min(reached.values()) >= NOON + 6 * MINUTE


# --- what nobody can read ---


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five minutes, for an hour."""
    monkeypatch.setattr(examiner, "READABLE_WITHIN", 5 * MINUTE)


@pytest.mark.usefixtures("impatient")
async def test_an_entry_that_nobody_can_read_comes_to_an_end(world: World) -> None:
    """Its neighbours ring on time, and its minute settles after a while: till then a process of a
    newer release may read it. The ledger says what became of it.
    """
    at = At(instant=NOON + 10 * SECOND)
    spoilt, sound = await world.create(at), await world.create(at)
    (entry,) = (await world.stored(spoilt)).current
    world.store.due.spoil(entry.key)
    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + 5 * MINUTE)
        assert [name.split(".")[0] for name in world.rings] == [sound]
        assert await world.settled_through() == NOON
        await world.clock.run_until(NOON + 7 * MINUTE)
    assert await world.settled_through() > NOON + MINUTE
    (row,) = await world.ledger(spoilt)
    assert (row.ended, row.reason) == (OccurrenceStatus.FAILED, "unreadable")
    assert entry.occurrence is not None
    assert row.occurrence.occurrence_id == entry.occurrence.occurrence_id


@pytest.mark.usefixtures("impatient")
async def test_a_rule_outlives_an_entry_that_nobody_can_read(world: World) -> None:
    """It goes on from its other one."""
    reminder_id = await world.create(every("FREQ=MINUTELY"))
    later = (await world.stored(reminder_id)).current[1]
    world.store.due.spoil(later.key)
    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + 5 * MINUTE)
        assert len(world.rings) == 4
        await world.clock.run_until(NOON + 9 * MINUTE)
    assert await world.settled_through() > NOON + 3 * MINUTE


# --- a minute that may have lost entries ---


async def test_the_watermark_does_not_pass_what_may_have_expired(world: World) -> None:
    """After four weeks in which nobody settled, empty says nothing. What is due now rings all the
    same; once somebody who looked into the records has moved the stored watermark, it goes on.
    """
    world.clock.move_to(NOON + DUE_LIFE)
    scanner = scanner_of(world)
    soon = await world.create(At(instant=world.now + 20 * SECOND))
    async with at_work(world, scanner):
        await world.clock.run_until(NOON + DUE_LIFE + 5 * MINUTE)
        assert [name.split(".")[0] for name in world.rings] == [soon]
        assert await world.settled_through() == NOON
        assert scanner._refused == [0]
        with behind_the_scenes():
            rebuilt = NOON + DUE_LIFE - TRUSTED_LIFE + MINUTE
            await world.store.progress.advance(0, rebuilt)
        await world.clock.run_until(NOON + DUE_LIFE + 8 * MINUTE)
        assert scanner._refused == []
    assert await world.settled_through() > NOON + DUE_LIFE + MINUTE


# --- scans that stop half-way, clocks that can't be trusted, messages that are taken away ---


@pytest.mark.parametrize("stop", ["second page", "killed"])
async def test_a_scan_that_stops_before_the_last_entry_loses_nothing(
    world: World, stop: str
) -> None:
    """Of 501 missed entries the last one is not looked at: the next scan finds it. The watermark
    does not pass before that.
    """
    names = [await without_record(world, f"r{number:03}", NOON + SECOND) for number in range(501)]
    records = [NewReminder(record=_record_of(entry), entries=(entry,)) for entry in names]
    with behind_the_scenes():
        await world.store.records.create(records)
    world.clock.move_to(NOON + 5 * MINUTE)
    seen = 0

    async def point(name: str) -> None:
        nonlocal seen
        seen += name == ("due.slice" if stop == "second page" else "claim.before")
        if stop == "second page" and name == "due.slice" and seen % 2 == 0 and seen < 12:
            raise StoreUnavailable(operation=name)

    world.on_point = point
    scanners = [scanner_of(world), scanner_of(world)]
    async with at_work(world, *scanners) as tasks:
        at = world.now
        while stop == "killed" and seen < 3:
            at += SECOND
            await world.clock.run_until(at)
        if stop == "killed":
            await die(tasks[0 if scanners[0].shards else 1])
        else:
            await world.clock.run_until(at + 3 * SECOND)
            assert await world.settled_through() == NOON
        await world.clock.run_until(NOON + 10 * MINUTE)
    world.on_point = None
    assert sorted(world.rings) == sorted(entry.dedupe_id for entry in names)
    assert await world.settled_through() > NOON + MINUTE


def _record_of(entry: DueEntry) -> Record:
    return Record(
        namespace="ns",
        reminder_id=entry.reminder_id,
        version=1,
        status=Status.SCHEDULED,
        definition=definition(At(instant=entry.key.ring_at)),
        created_at=NOON,
        updated_at=NOON,
        stamp=1,
    )


async def test_nothing_settles_while_the_clock_is_out_of_bounds(world: World) -> None:
    """What is late by a clock that errs need not be: nothing is closed, skipped or passed."""
    orphan = await without_record(world, "nobodys", NOON + SECOND)
    await put_unwatched(world, orphan)
    world.clock.move_to(NOON + 5 * MINUTE)
    world.clock.bounds = False
    async with at_work(world, scanner_of(world)):
        await world.clock.run_until(NOON + 10 * MINUTE)
        state = await world.state(orphan)
        assert state is not None
        assert state.handled_at is None
        assert await world.settled_through() == NOON
        world.clock.bounds = True
        await world.clock.run_until(NOON + 11 * MINUTE)
    assert await world.settled_through() > NOON + MINUTE


@pytest.mark.parametrize("stream", ["jobs", "fires"])
@pytest.mark.parametrize("how", ["trimmed", "deleted"])
async def test_an_operator_may_take_a_stream_away(world: World, stream: str, how: str) -> None:
    """By XTRIM or DEL: what was in it is handed on again, and rings or goes on once."""
    reminder_id = await world.create(every("FREQ=MINUTELY"))
    world.stalled = stream == "jobs"
    async with at_work(world, scanner_of(world), expand=stream == "jobs"):
        await world.clock.run_until(NOON + 61 * SECOND)
        if how == "deleted":
            del world.coordination.server.data.streams[stream, 0]
        else:
            world.coordination.server.stream(stream, 0).messages.clear()
        world.stalled = False
        await world.clock.run_until(NOON + 3 * MINUTE)
        if stream == "fires":
            stop = asyncio.Event()
            expansion = Expansion(world.platform, world.reminders)
            task = asyncio.create_task(Expander(world.platform, expansion).run(stop))
            await world.clock.run_until(NOON + 6 * MINUTE)
            stop.set()
            await task
        else:
            await world.clock.run_until(NOON + 6 * MINUTE)
    assert len(world.rings) == len(set(world.rings))
    first, *_ = sorted(world.rings)
    assert first.endswith("T120000")
    assert len((await world.stored(reminder_id)).live) > 2, "the rule went on"

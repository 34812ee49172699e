"""What a change answers when nobody can know, and who looks after one that is held up."""

import asyncio
from datetime import timedelta

import pytest

from reminders.errors import AlreadyFired
from reminders.lifecycle.beginning import FINISH_AFTER
from reminders.model.definition import After, At
from reminders.model.entry import Fate, Kind
from reminders.model.ledger import LedgerRow, OccurrenceStatus
from reminders.ports import ClaimAnswer
from tests.unit.lifecycle.support import only
from tests.unit.lifecycle.world import (
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    World,
    behind_the_scenes,
    running,
)

SOON = At(instant=NOON + 10 * SECOND)
LATER = At(instant=NOON + 20 * SECOND)


# --- doubt ---


@pytest.mark.parametrize("ahead", [timedelta(0), SECOND])
async def test_after_redis_lost_everything_what_is_due_is_in_doubt_and_rings(
    world: World, ahead: timedelta
) -> None:
    """A claim may have been made that nobody sees, also by a clock that is a little ahead: fired,
    and marked so that it is true.
    """
    reminder_id = await world.create(SOON)
    entry = await only(world, reminder_id)
    await world.take_lease()
    world.clock.move_to(NOON + 10 * SECOND - ahead)
    world.coordination.lose_everything()
    changed = await world.cancel(reminder_id)
    assert changed.was_fired
    state = await world.state(entry)
    assert state is not None
    assert state.fate is Fate.CLAIMED


async def test_what_was_never_written_is_not_in_doubt(world: World) -> None:
    """An expander died after the live entry: there was nothing to be claimed, and nothing to ring.

    Found by the simulation: the answer was "fired", and it never rang.
    """
    reminder_id = await world.create(SOON)
    entry = await only(world, reminder_id)
    (partition,) = world.store.due._partitions.values()
    partition.rows.clear()
    partition.places.clear()
    await world.take_lease()
    world.coordination.lose_everything()
    changed = await world.cancel(reminder_id)
    assert not changed.was_fired
    assert await world.state(entry) is None


async def test_doubt_does_not_outlive_the_answer_of_who_knew(world: World) -> None:
    """Two complete a change; one asked Redis before it lost its data, the other after.

    Found by the simulation: the first one's "not fired" was answered, the second one's mark let it
    ring all the same.
    """
    reminder_id = await world.create(SOON)
    entry = await only(world, reminder_id)
    await world.take_lease()

    async def ended_by_another(point: str) -> None:
        if point != "revoke.before":
            return
        world.on_point = None
        await world.reminders.changes.finish(reminder_id)
        world.coordination.lose_everything()

    world.on_point = ended_by_another
    changed = await world.reschedule(reminder_id, LATER)
    assert not changed.was_fired
    state = await world.state(entry)
    assert state is not None
    assert state.fate is Fate.VOID


async def test_who_is_slow_does_not_write_what_another_refused(world: World) -> None:
    """A change stands still before it inserts; somebody ends it, in doubt, as refused.

    Found by the simulation: what was inserted then rang before its writer learned of the refusal.
    """
    reminder_id = await world.create(SOON)
    written: list[str] = []

    async def ended_by_another(point: str) -> None:
        written.append(point)
        if point != "users.add" or written.count("users.add") > 1:
            return
        with behind_the_scenes():
            world.coordination.lose_everything()
            world.clock.advance(FINISH_AFTER)
            await world.take_lease()
            await world.reminders.changes.finish(reminder_id)

    world.on_point = ended_by_another
    with pytest.raises(AlreadyFired):
        await world.reschedule(reminder_id, At(instant=NOON + 40 * SECOND))
    assert "due.put" not in written[written.index("users.add") :]


async def test_after_redis_lost_everything_what_is_not_due_is_not_in_doubt(world: World) -> None:
    """It cannot have been claimed, and never is: whoever leads the shard next reads its row."""
    reminder_id = await world.create(SOON)
    entry = await only(world, reminder_id)
    await world.take_lease()
    world.clock.move_to(NOON + 8 * SECOND)
    world.coordination.lose_everything()
    assert not (await world.cancel(reminder_id)).was_fired
    state = await world.state(entry)
    assert state is not None
    assert state.fate is Fate.VOID


async def test_a_loss_is_seen_though_the_shard_was_acquired_again(world: World) -> None:
    """What was due before that may have been claimed, and be in a dispatcher's memory alone."""
    reminder_id = await world.create(SOON)
    entry = await only(world, reminder_id)
    world.clock.move_to(NOON + 10 * SECOND)
    assert await world.claim(entry) is ClaimAnswer.CLAIMED
    with behind_the_scenes():
        await world.coordination.jobs.read("d", [0], count=1, wait=timedelta(0))
    world.coordination.lose_everything()
    world.clock.advance(SECOND)
    await world.take_lease()
    assert (await world.cancel(reminder_id)).was_fired


async def test_what_was_not_due_when_data_was_lost_is_not_in_doubt(world: World) -> None:
    """Nobody can have claimed it before: not even by a clock that is a little ahead."""
    reminder_id = await world.create(SOON)
    world.coordination.lose_everything()
    world.clock.advance(5 * SECOND)
    await world.take_lease()
    assert not (await world.cancel(reminder_id)).was_fired


async def test_a_hand_over_leaves_no_doubt(world: World) -> None:
    """A lease that is acquired anew on the same server: all claims are on record."""
    await world.take_lease()
    reminder_id = await world.create(SOON)
    world.clock.move_to(NOON + 11 * SECOND)
    with behind_the_scenes():
        await world.coordination.leases.release(0, "tester")
    await world.take_lease()
    assert not (await world.cancel(reminder_id)).was_fired


@pytest.mark.parametrize(
    ("ended", "fired"),
    [(OccurrenceStatus.SKIPPED, False), (OccurrenceStatus.CANCELLED, False), (None, True)],
)
async def test_in_doubt_the_ledger_decides(
    world: World, ended: OccurrenceStatus | None, fired: bool
) -> None:
    """What it says did not ring did not ring."""
    reminder_id = await world.create(SOON)
    entry = await only(world, reminder_id)
    with behind_the_scenes():
        row = LedgerRow(
            namespace="ns",
            reminder_id=reminder_id,
            reminder_version=1,
            occurrence=entry.occurrence,
            ended=ended,
        )
        await world.store.ledger.write([row], at=world.now)
    world.clock.move_to(NOON + 10 * SECOND)
    world.coordination.lose_everything()
    assert (await world.cancel(reminder_id)).was_fired is fired


async def test_a_time_in_a_settled_minute_is_in_doubt(world: World) -> None:
    """Redis may have forgotten, and the row have expired."""
    reminder_id = await world.create(SOON)
    world.clock.advance(5 * MINUTE)
    await world.take_lease()
    with behind_the_scenes():
        await world.store.progress.advance(0, NOON + MINUTE)
    assert (await world.cancel(reminder_id)).was_fired


# --- the entry that looks after a change ---


async def test_a_change_that_ended_leaves_its_finish_entry_handled(world: World) -> None:
    """Nobody need come back."""
    reminder_id = await world.create(SOON)
    await world.cancel(reminder_id)
    (finish,) = (s for s in await world.entries(reminder_id) if s.entry.kind is Kind.FINISH)
    assert finish.handled_at is not None
    assert finish.entry.key.ring_at == NOON + FINISH_AFTER


async def test_a_change_begins_anew_when_its_finish_entry_came_too_late(world: World) -> None:
    """Written into a stretch that is past, perhaps settled, nobody would find it."""
    reminder_id = await world.create(At(instant=NOON + HOUR))

    async def slow(point: str) -> None:
        if point == "due.put":
            world.on_point = None
            world.clock.advance(5 * MINUTE)

    world.on_point = slow
    await world.reschedule(reminder_id, After(delay=HOUR))
    entry = await only(world, reminder_id)
    assert entry.key.ring_at == NOON + 5 * MINUTE + HOUR
    assert (await world.stored(reminder_id)).record.version == 2


async def test_one_who_was_held_up_while_finishing_cannot_ring_what_was_cancelled_meanwhile(
    world: World,
) -> None:
    """He met a change half-way and stalls; others finish it and cancel the new time, far ahead. He
    wakes up just before that time, writes and announces it: his hint is dated too early.
    """
    reminder_id = await world.create(SOON)
    held, go = asyncio.Event(), asyncio.Event()

    async def stall(point: str) -> None:
        if point == "records.add_live" and not held.is_set():
            held.set()
            await go.wait()

    world.on_point = stall
    far = At(instant=NOON + 10 * MINUTE)
    async with running(world.reschedule(reminder_id, far, request_id="r")) as (slow,):
        await held.wait()
        await world.reschedule(reminder_id, far, request_id="r")
        entry = await only(world, reminder_id)
        assert not (await world.cancel(reminder_id)).was_fired
        world.clock.advance(10 * MINUTE - SECOND)
        go.set()
        await slow
    with behind_the_scenes():
        heard = await world.coordination.hints.tail({0: "0-0"}, wait=timedelta(0))
    written_from = heard[0][-1][2]
    world.clock.advance(SECOND)
    answer = await world.claim(entry, read_at=written_from)
    assert answer in (ClaimAnswer.VOID, ClaimAnswer.STALE)
    state = await world.state(entry)
    assert state is not None
    assert state.fate is Fate.VOID

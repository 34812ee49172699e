"""Create with a dedup_key or a request_id: once, whoever repeats it and wherever it died."""

import asyncio
from datetime import timedelta

import msgspec
import pytest

from reminders.errors import InvalidRequest, KeyConflict, Violation
from reminders.lifecycle import CreateRequest
from reminders.model.definition import After, At
from reminders.model.entry import Fate
from reminders.model.record import Status
from reminders.ports import ClaimAnswer
from tests.unit.lifecycle.support import create_one, request
from tests.unit.lifecycle.world import (
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    Crash,
    World,
    behind_the_scenes,
    created,
    every,
    running,
)


@pytest.mark.parametrize("key", ["dedup_key", "request_id"])
async def test_a_repeat_answers_the_same_reminder_and_instants(world: World, key: str) -> None:
    """Also for "in 2 hours", which is counted from the first call."""
    one = request(schedule=After(delay=2 * HOUR), **{key: "k"})
    first = await create_one(world, one)
    world.clock.advance(7 * MINUTE)
    again = await create_one(world, one)
    assert again.view.record == first.view.record
    assert again.view.ahead[0].key == first.view.ahead[0].key
    assert again.view.ahead[0].key.ring_at == NOON + 2 * HOUR
    assert (first.deduplicated, again.deduplicated) == (False, True)
    assert len(await world.entries(first.view.record.reminder_id)) == 1


@pytest.mark.parametrize("key", ["dedup_key", "request_id"])
async def test_a_repeat_after_its_time_still_answers_the_reminder(world: World, key: str) -> None:
    """What is refused as past to anybody else, and a rule that has ended meanwhile."""
    too_late = (Violation(field="at", reason="TIME_IN_PAST", description="was long ago"),)
    once = request(schedule=At(instant=NOON + MINUTE), **{key: "once"})
    rule = request(schedule=every("FREQ=MINUTELY;COUNT=2"), **{key: "rule"})
    first = [await create_one(world, one) for one in (once, rule)]
    world.clock.advance(HOUR)
    late = [msgspec.structs.replace(once, too_late=too_late), rule]
    again = [await create_one(world, one) for one in late]
    assert [a.view.record for a in again] == [f.view.record for f in first]
    assert all(a.deduplicated for a in again)
    unknown = msgspec.structs.replace(request(**{key: "other"}), too_late=too_late)
    (refused,) = await world.reminders.create([unknown])
    assert isinstance(refused, InvalidRequest)
    assert refused.violations == list(too_late)


@pytest.mark.parametrize("key", ["dedup_key", "request_id"])
async def test_a_key_with_other_content_is_a_conflict(world: World, key: str) -> None:
    """It names the key and the reminder that it stands for, and writes nothing."""
    first = await create_one(world, request(**{key: "k"}))
    (result,) = await world.reminders.create([request(user_id="bob", **{key: "k"})])
    assert isinstance(result, KeyConflict)
    assert (result.key, result.reminder_id) == (key, first.view.record.reminder_id)
    assert (await world.reminders.pending("ns", "bob", limit=10, token=""))[1] == 0


async def test_a_key_of_another_namespace_is_another_key(world: World) -> None:
    """Nobody learns of other tenants' keys."""
    one = request(dedup_key="k")
    other = CreateRequest(namespace="other", definition=one.definition)
    first, second = await create_one(world, one), await create_one(world, other)
    assert first.view.record.reminder_id != second.view.record.reminder_id


async def test_one_key_twice_in_a_batch_makes_one_reminder(world: World) -> None:
    """And a third request with other content fails."""
    results = await world.reminders.create(
        [request(dedup_key="k"), request(dedup_key="k"), request(dedup_key="k", user_id="bob")]
    )
    ids = {created(result).view.record.reminder_id for result in results[:2]}
    assert len(ids) == 1
    assert isinstance(results[2], KeyConflict)
    assert len(await world.entries(ids.pop())) == 1


async def test_both_keys_stand_for_one_reminder(world: World) -> None:
    """A new request with the same dedup_key gets the reminder; its request_id then repeats that."""
    first = await create_one(world, request(dedup_key="k", request_id="r1"))
    second = await create_one(world, request(dedup_key="k", request_id="r2"))
    third = await create_one(world, request(dedup_key="k", request_id="r2"))
    ids = {answer.view.record.reminder_id for answer in (first, second, third)}
    assert len(ids) == 1
    assert [a.deduplicated for a in (first, second, third)] == [False, True, True]


async def test_a_request_id_that_made_another_reminder_conflicts_with_a_new_dedup_key(
    world: World,
) -> None:
    """The dedup_key stays usable: it was claimed by a call that made nothing."""
    await create_one(world, request(request_id="r"))
    (result,) = await world.reminders.create([request(dedup_key="k", request_id="r")])
    assert isinstance(result, KeyConflict)
    assert result.key == "request_id"
    again = await create_one(world, request(dedup_key="k", request_id="other"))
    assert (await world.state(again.view.ahead[0])) is not None


@pytest.mark.parametrize("keys", [("dedup_key",), ("request_id",), ("dedup_key", "request_id")])
@pytest.mark.parametrize("wait", [timedelta(0), 3 * MINUTE, 2 * HOUR])
async def test_a_create_that_died_anywhere_is_completed_by_its_repeat(
    keys: tuple[str, ...], wait: timedelta
) -> None:
    """Whatever step it died at, and however late the repeat: one reminder, which rings once."""
    one = request(schedule=After(delay=HOUR), **dict.fromkeys(keys, "k"))
    steps = 0
    while True:
        world = World()
        died = await world.dies_at(steps, create_one(world, one))
        world.clock.advance(wait)
        answer = await create_one(world, one)
        # it died before its claim: the repeat is the first one
        assert answer.view.record.created_at == (NOON + wait if steps == 0 and died else NOON)
        (entry,) = {s.entry for s in await world.entries(answer.view.record.reminder_id)
                    if s.fate is None}  # fmt: skip
        world.clock.move_to(max(world.now, entry.key.ring_at))
        assert await world.claim(entry) is ClaimAnswer.CLAIMED
        await world.dispatch()
        assert len(world.rings) == 1
        assert (await world.stored(entry.reminder_id)).live[0].key == entry.key
        if not died:
            break
        steps += 1
    assert steps >= 6


async def test_a_repeat_makes_up_for_a_missing_index_row(world: World) -> None:
    """A create may die between any two tables: what rings is also listed."""
    one = request(dedup_key="k")

    async def die(point: str) -> None:
        if point == "records.create.users":
            raise Crash

    world.on_point = die
    with pytest.raises(Crash):
        await create_one(world, one)
    world.on_point = None
    answer = await create_one(world, one)
    page, _, _ = await world.reminders.pending("ns", "ann", limit=10, token="")
    assert [v.record.reminder_id for v in page.items] == [answer.view.record.reminder_id]


async def test_a_repeat_revives_nothing_that_was_cancelled(world: World) -> None:
    """It answers the cancelled reminder."""
    one = request(dedup_key="k")
    first = await create_one(world, one)
    await world.cancel(first.view.record.reminder_id)
    again = await create_one(world, one)
    assert again.view.status is Status.CANCELLED
    (state,) = (s for s in await world.entries(first.view.record.reminder_id) if s.entry.occurrence)
    assert state.fate is Fate.VOID


async def test_a_repeat_finishes_a_change_that_it_meets(world: World) -> None:
    """Whoever meets `changing` does."""
    one = request(dedup_key="k")
    first = await create_one(world, one)
    reminder_id = first.view.record.reminder_id

    async def die(point: str) -> None:
        if point == "records.begin.done":
            raise Crash

    world.on_point = die
    with pytest.raises(Crash):
        await world.cancel(reminder_id)
    world.on_point = None
    assert (await create_one(world, one)).view.status is Status.CANCELLED
    assert (await world.stored(reminder_id)).change is None


async def test_a_creator_that_was_held_up_cannot_ring_what_was_cancelled_meanwhile(
    world: World,
) -> None:
    """It claims its key, stalls; a repeat makes the reminder, a cancel ends it (far ahead, so Redis
    is not asked). Then the first one wakes up and writes and announces it, just before its time:
    the hint is dated too early to be believed.
    """
    one = request(dedup_key="k", schedule=At(instant=NOON + 10 * MINUTE))
    held, go = asyncio.Event(), asyncio.Event()

    async def stall(point: str) -> None:
        if point == "records.create" and not held.is_set():
            held.set()
            await go.wait()

    world.on_point = stall
    async with running(create_one(world, one)) as (slow,):
        await held.wait()
        quick = await create_one(world, one)
        changed = await world.cancel(quick.view.record.reminder_id)
        assert not changed.was_fired
        world.clock.advance(10 * MINUTE - SECOND)
        go.set()
        await slow
    with behind_the_scenes():
        heard = await world.coordination.hints.tail({0: "0-0"}, wait=timedelta(0))
    ((_, _, written_from),) = heard[0]
    world.clock.advance(SECOND)
    answer = await world.claim(quick.view.ahead[0], read_at=written_from)
    assert answer is ClaimAnswer.STALE

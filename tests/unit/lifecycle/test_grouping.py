"""Cancelling a group: what it stops, what it does not, and that its cost does not grow."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from reminders.buckets import occurrence_entry_id, shard_of
from reminders.errors import AlreadyEnded, AlreadyFired, CoordinationUnavailable, NotReady
from reminders.lifecycle import CreateRequest
from reminders.lifecycle.grouping import CLOCKS_APART
from reminders.model.definition import At, Channel, Definition, Log
from reminders.model.entry import DueEntry, DueKey, Kind
from reminders.model.record import NewReminder, Record, Status
from reminders.ports import ClaimAnswer
from tests.unit.lifecycle.world import (
    HOUR,
    NOON,
    SECOND,
    World,
    behind_the_scenes,
    created,
    definition,
    every,
)

SOON = At(instant=NOON + 10 * SECOND)
CAMPAIGN = {"group_id": "campaign"}
MILLISECOND = timedelta(milliseconds=1)


async def cancel_group(world: World, group: str = "campaign", namespace: str = "ns") -> Any:
    """As the edge calls it; the clock goes on meanwhile."""
    at = world.now + 4 * CLOCKS_APART + timedelta(milliseconds=5)
    moving = asyncio.create_task(world.clock.run_until(at))
    try:
        return await world.reminders.cancel_group(namespace, group)
    finally:
        await moving


async def get(world: World, reminder_id: str) -> Any:
    """As the edge calls it."""
    return await world.reminders.get("ns", reminder_id)


async def pending(world: World, user_id: str = "ann") -> tuple[list[str], int]:
    """Ids and total."""
    page, total, _ = await world.reminders.pending("ns", user_id, limit=50, token="")
    return [view.record.reminder_id for view in page.items], total


# --- what is stopped, and when ---


async def test_the_answer_comes_when_the_fence_lies_behind_every_clock(world: World) -> None:
    """By 2δ on both sides; in all 4δ, which fits in a second."""
    began = world.now
    cancelled_at = await cancel_group(world)
    assert cancelled_at == began + 2 * CLOCKS_APART
    assert cancelled_at + 2 * CLOCKS_APART < world.now < began + SECOND


async def test_what_was_acknowledged_before_does_not_ring(world: World) -> None:
    """Neither a copy that a scanner holds, nor one that it reads later: fenced, or void."""
    reminder_id = await world.create(SOON, **CAMPAIGN)
    (entry,) = (await world.stored(reminder_id)).current
    held_since = world.now
    await cancel_group(world)
    world.clock.move_to(NOON + 11 * SECOND)
    assert await world.claim(entry, read_at=held_since) is ClaimAnswer.VOID
    assert await world.claim(entry) is ClaimAnswer.VOID


async def test_what_is_created_after_the_answer_rings(world: World) -> None:
    """The group is a name; it can be used again."""
    await world.create(SOON, **CAMPAIGN)
    await cancel_group(world)
    reminder_id = await world.create(SOON, **CAMPAIGN)
    (entry,) = (await world.stored(reminder_id)).current
    world.clock.move_to(NOON + 11 * SECOND)
    assert await world.claim(entry) is ClaimAnswer.CLAIMED
    assert (await get(world, reminder_id)).status is Status.SCHEDULED
    assert await pending(world) == ([reminder_id], 1)


async def test_a_creator_whose_clock_is_ahead_was_before_the_call(world: World) -> None:
    """By δ, as far as it may be: what it acknowledged is stopped."""
    cancelling_at = world.now
    world.clock.advance(CLOCKS_APART)
    reminder_id = await world.create(SOON, **CAMPAIGN)
    created_at = (await world.stored(reminder_id)).record.created_at
    fence = cancelling_at + 2 * CLOCKS_APART
    assert created_at <= fence - CLOCKS_APART


async def test_a_creator_whose_clock_is_behind_comes_after_the_answer(world: World) -> None:
    """By δ: what it creates then rings."""
    cancelled_at = await cancel_group(world)
    its_now = world.now - CLOCKS_APART
    assert its_now > cancelled_at + CLOCKS_APART - MILLISECOND


async def test_other_groups_and_other_namespaces_go_on(world: World) -> None:
    """The same name elsewhere is another group."""
    others = [await world.create(SOON, group_id="other"), await world.create(SOON)]
    mine = await world.create(SOON, **CAMPAIGN)
    await cancel_group(world, namespace="elsewhere")
    world.clock.move_to(NOON + 11 * SECOND)
    for reminder_id in (*others, mine):
        (entry,) = (await world.stored(reminder_id)).current
        assert await world.claim(entry) is ClaimAnswer.CLAIMED


async def test_redis_down_is_unavailable_and_safe_to_repeat(world: World) -> None:
    """It may be half in force then; the repeat makes it whole."""
    reminder_id = await world.create(SOON, **CAMPAIGN)

    async def down(point: str) -> None:
        if point == "fence.before":
            raise CoordinationUnavailable(operation="fence")

    world.on_point = down
    with pytest.raises(CoordinationUnavailable):
        await world.reminders.cancel_group("ns", "campaign")
    world.on_point = None
    world.clock.advance(SECOND)
    assert await cancel_group(world) > NOON + SECOND
    (entry,) = (await world.stored(reminder_id)).current
    world.clock.move_to(NOON + 11 * SECOND)
    assert await world.claim(entry) is ClaimAnswer.VOID


@pytest.mark.parametrize("when", ["before", "meanwhile"])
async def test_a_clock_out_of_bounds_cancels_no_group(world: World, when: str) -> None:
    """Its "now" may be anybody's; nor does it answer if that came over it while it waited."""
    world.clock.bounds = when != "before"

    async def drift(point: str) -> None:
        world.clock.bounds = world.clock.bounds and point != "fence.after"

    world.on_point = drift
    with pytest.raises(NotReady):
        await cancel_group(world)


# --- what others see ---


async def test_get_list_and_total_show_it_at_once(world: World) -> None:
    """Also what is overdue, and a rule; what is of another group stays."""
    one = await world.create(SOON, **CAMPAIGN)
    rule = await world.create(every("FREQ=MINUTELY"), **CAMPAIGN)
    other = await world.create(SOON)
    world.clock.move_to(NOON + 20 * SECOND)
    assert (await pending(world))[1] == 3
    await cancel_group(world)
    for reminder_id in (one, rule):
        view = await get(world, reminder_id)
        assert view.status is Status.CANCELLED
        assert view.ahead == ()
    assert await pending(world) == ([other], 1)


async def test_a_long_list_of_cancelled_ones_is_passed_over(world: World) -> None:
    """Page after page, without reading their records."""
    for _ in range(130):
        await world.create(At(instant=NOON + HOUR), **CAMPAIGN)
    last = await world.create(At(instant=NOON + 2 * HOUR))
    await cancel_group(world)
    world.points.clear()
    page, total, _ = await world.reminders.pending("ns", "ann", limit=10, token="")
    assert [view.record.reminder_id for view in page.items] == [last]
    assert total == 1
    read_many = world.points.count("records.read_many")
    assert read_many <= world.points.count("users.page")


async def test_what_fired_before_shows_as_fired(world: World) -> None:
    """The ledger knows; a cancel that comes later does not make it unrung."""
    reminder_id = await world.create(SOON, **CAMPAIGN)
    (entry,) = (await world.stored(reminder_id)).current
    world.clock.move_to(NOON + 11 * SECOND)
    assert await world.claim(entry) is ClaimAnswer.CLAIMED
    await world.dispatch()
    await cancel_group(world)
    assert (await get(world, reminder_id)).status is Status.FIRED
    with pytest.raises(AlreadyFired):
        await world.reschedule(reminder_id, At(instant=NOON + HOUR))


async def test_a_cancelled_one_can_not_be_changed(world: World) -> None:
    """It has ended, as after a cancel of its own."""
    reminder_id = await world.create(SOON, **CAMPAIGN)
    await cancel_group(world)
    with pytest.raises(AlreadyEnded) as caught:
        await world.reschedule(reminder_id, At(instant=NOON + HOUR))
    assert caught.value.status == "cancelled"
    with pytest.raises(AlreadyEnded):
        await world.cancel(reminder_id)
    assert (await world.stored(reminder_id)).record.version == 1


async def test_a_repeated_create_answers_the_cancelled_one(world: World) -> None:
    """By its key: the record exists, and it has ended."""
    await world.create(SOON, dedup_key="k", **CAMPAIGN)
    await cancel_group(world)
    reminder_id = await world.create(SOON, dedup_key="k", **CAMPAIGN)
    assert (await get(world, reminder_id)).status is Status.CANCELLED


async def test_a_repeat_of_a_create_that_died_says_that_its_group_was_cancelled(
    world: World,
) -> None:
    """It keeps the instant of the first call, which was before: nothing of it rings, and nobody is
    told that it would.
    """

    async def die(point: str) -> None:
        if point == "records.create":
            raise CoordinationUnavailable(operation=point)

    world.on_point = die
    with pytest.raises(CoordinationUnavailable):
        await world.create(SOON, dedup_key="k", **CAMPAIGN)
    world.on_point = None
    await cancel_group(world)
    request = CreateRequest(namespace="ns", definition=definition(SOON, dedup_key="k", **CAMPAIGN))
    (result,) = await world.reminders.create([request])
    view = created(result).view
    assert view.status is Status.CANCELLED
    assert view.record.created_at == NOON
    assert (await get(world, view.record.reminder_id)).status is Status.CANCELLED


# --- what it costs ---


def member(number: int, shards: int) -> NewReminder:
    """One of many, made without the use cases: only its size counts."""
    reminder_id, at = f"r{number}", NOON + HOUR + timedelta(milliseconds=number)
    record = Record(
        namespace="ns",
        reminder_id=reminder_id,
        version=1,
        status=Status.SCHEDULED,
        definition=Definition(
            user_id=f"u{number % 1000}",
            schedule=At(instant=at),
            channels=(Channel(channel_id="log", target=Log()),),
            group_id="campaign",
        ),
        created_at=NOON,
        updated_at=NOON,
        stamp=1,
    )
    shard = shard_of(reminder_id, shards)
    entry = DueEntry(
        key=DueKey(ring_at=at, entry_id=occurrence_entry_id(reminder_id, "o", 1), shard=shard),
        kind=Kind.OCCURRENCE,
        namespace="ns",
        reminder_id=reminder_id,
        version=1,
        occurrence=None,
        record_created_at=NOON,
        group_id="campaign",
    )
    return NewReminder(record=record, entries=(entry,))


async def commands_of_a_cancel(members: int) -> list[str]:
    """What the ports were asked while a group of so many was cancelled."""
    world = World(shards=8)
    with behind_the_scenes():
        await world.store.records.create([member(number, 8) for number in range(members)])
    world.points.clear()
    await cancel_group(world)
    return list(world.points)


async def test_the_cost_does_not_depend_on_how_many_there_are() -> None:
    """Two calls, whatever the size: a fence in the store, one round to Redis."""
    few, many = await commands_of_a_cancel(10), await commands_of_a_cancel(100_000)
    assert few == many
    assert few == ["fences.put", "fences.put.done", "fence.before", "fence.after"]


async def test_seeing_it_cancelled_costs_the_same(world: World) -> None:
    """One read of the fence for a reminder, however large its group; none without a group."""
    for grouped in (True, False):
        reminder_id = await world.create(SOON, **(CAMPAIGN if grouped else {}))
        world.points.clear()
        await get(world, reminder_id)
        assert world.points.count("fences.read") == grouped

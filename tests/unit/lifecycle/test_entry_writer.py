"""Due entries onto disk: announced where a scanner may have read already, moved where late."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from reminders.errors import CoordinationUnavailable
from reminders.model.definition import After, At
from reminders.model.entry import DueEntry, Fate, Kind, Leg
from reminders.ports import ClaimAnswer
from tests.unit.lifecycle.world import (
    DAY,
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    Crash,
    World,
    behind_the_scenes,
    every,
)


def slowed(world: World, at: str, by: timedelta) -> None:
    """The write takes so long, once."""

    async def slow(point: str) -> None:
        if point == at:
            world.on_point = None
            world.clock.advance(by)

    world.on_point = slow


async def announced(world: World) -> list[tuple[str, Any]]:
    """Hints: when they are due, and from when they date."""
    with behind_the_scenes():
        heard = await world.coordination.hints.tail({0: "0-0"}, wait=timedelta(0))
    return [(name, written_from) for found in heard.values() for name, _, written_from in found]


async def open_entries(world: World, reminder_id: str) -> list[DueEntry]:
    """What can still ring."""
    states = await world.entries(reminder_id)
    return [s.entry for s in states if s.fate is not Fate.VOID and s.handled_at is None]


async def test_a_hint_dates_from_before_the_write(world: World) -> None:
    """However long that took: a scanner judges by it whether a void may have come and gone."""
    slowed(world, "records.create", 20 * SECOND)
    await world.create(At(instant=NOON + 30 * SECOND))
    ((_, written_from),) = await announced(world)
    assert written_from == NOON


async def test_what_became_near_during_the_write_is_announced(world: World) -> None:
    """The clock counts that is read afterwards."""
    slowed(world, "records.create.done", 40 * SECOND)
    await world.create(At(instant=NOON + MINUTE))
    assert len(await announced(world)) == 1


async def test_a_hint_that_redis_refuses_does_not_fail_the_create(world: World) -> None:
    """It is durable, and the trailing scan finds it."""

    async def down(point: str) -> None:
        if point.startswith("announce"):
            raise CoordinationUnavailable(operation="announce")

    world.on_point = down
    reminder_id = await world.create(At(instant=NOON + SECOND))
    assert len(await open_entries(world, reminder_id)) == 1


@pytest.mark.parametrize("ahead", [SECOND, 50 * SECOND])
async def test_an_entry_that_could_be_in_a_settled_minute_is_moved_to_now(
    world: World, ahead: timedelta
) -> None:
    """The old place is void, the live entry names the new one, and it keeps its promise's time."""
    slowed(world, "records.create.done", 10 * MINUTE)
    reminder_id = await world.create(At(instant=NOON + ahead))
    (entry,) = await open_entries(world, reminder_id)
    assert entry.key.ring_at == NOON + 10 * MINUTE
    assert entry.promised_at == NOON + ahead
    assert (await world.stored(reminder_id)).current[0].key == entry.key
    assert await world.claim(entry) is ClaimAnswer.CLAIMED
    assert len(await announced(world)) == 1


async def test_an_entry_is_moved_only_when_half_the_grace_is_over(world: World) -> None:
    """Until then its minute is looked at once more."""
    slowed(world, "records.create.done", MINUTE + world.limits.grace / 2 - SECOND)
    reminder_id = await world.create(At(instant=NOON + SECOND))
    (entry,) = await open_entries(world, reminder_id)
    assert entry.key.ring_at == NOON + SECOND


async def test_a_move_that_takes_too_long_itself_moves_again(world: World) -> None:
    """It looks at the clock once more."""
    waits = [10 * MINUTE, 7 * MINUTE]

    async def slow(point: str) -> None:
        if waits and point in ("records.create.done", "due.put.done"):
            world.clock.advance(waits.pop(0))

    world.on_point = slow
    reminder_id = await world.create(At(instant=NOON + SECOND))
    (entry,) = await open_entries(world, reminder_id)
    assert entry.key.ring_at == NOON + 17 * MINUTE


async def test_what_was_claimed_where_it_is_is_not_moved(world: World) -> None:
    """It rings once, from there."""

    async def claim_first(point: str) -> None:
        if point == "records.create.done":
            world.on_point = None
            world.clock.advance(10 * MINUTE)
            (reminder_id,) = world.store.records._reminders
            (state,) = await world.entries(reminder_id)
            await world.claim(state.entry)

    world.on_point = claim_first
    reminder_id = await world.create(At(instant=NOON + SECOND))
    (state,) = await world.entries(reminder_id)
    assert state.fate is Fate.CLAIMED
    await world.dispatch()
    assert len(world.rings) == 1


async def test_what_was_closed_as_an_orphan_is_moved_once_its_record_is_there(
    world: World,
) -> None:
    """The scanner met the entry before the record was written; the create is acknowledged, so it
    rings.
    """

    async def close(point: str) -> None:
        if point == "records.create.done":
            world.on_point = None
            world.clock.advance(10 * MINUTE)
            (reminder_id,) = world.store.records._reminders
            (state,) = await world.entries(reminder_id)
            with behind_the_scenes():
                await world.store.due.handled([state.entry], at=world.now)

    world.on_point = close
    reminder_id = await world.create(At(instant=NOON + SECOND))
    (entry,) = await open_entries(world, reminder_id)
    assert entry.key.ring_at == NOON + 10 * MINUTE


async def test_a_move_meets_a_cancel_and_nothing_rings() -> None:
    """At every step: either the change sees the moved entry, or the mover sees the change."""
    step = 0
    while True:
        world = await World.led()
        cancelled: list[Any] = []
        state = {"passed": 0, "moving": False, "reminder_id": ""}

        async def point(name: str, world: World = world, state: Any = state, at: int = step,
                        cancelled: list[Any] = cancelled) -> None:  # fmt: skip
            if name == "records.create.done":
                state["moving"] = True
                world.clock.advance(10 * MINUTE)
            elif state["moving"]:
                state["passed"] += 1
                if state["passed"] == at + 1:
                    (reminder_id,) = world.store.records._reminders
                    with behind_the_scenes():
                        cancelled.append(await world.cancel(reminder_id))

        world.on_point = point
        reminder_id = await world.create(At(instant=NOON + SECOND))
        world.on_point = None
        if not cancelled:
            break
        (changed,) = cancelled
        assert not changed.was_fired
        world.clock.advance(HOUR)
        for each in await world.entries(reminder_id):
            if each.fate is None and each.handled_at is None and each.entry.occurrence:
                # an old place that nobody names: the trailing scan closes it as outdated
                assert each.entry.version < (await world.stored(reminder_id)).record.version
                assert each.entry.key.ring_at == NOON + SECOND
        step += 1
    assert step > 5


@pytest.mark.parametrize("way", ["create", "reschedule"])
async def test_a_move_that_died_anywhere_is_completed_by_who_repeats(way: str) -> None:
    """One entry is left, or two of which one is claimed; and a cancel knows of it."""
    step = 0
    while True:
        world = await World.led()
        name = await world.create(At(instant=NOON + DAY)) if way == "reschedule" else ""

        async def act(world: World = world, name: str = name) -> str:
            if way == "create":
                return await world.create(After(delay=SECOND), dedup_key="k")
            await world.reschedule(name, After(delay=SECOND), request_id="r")
            return name

        moving = {"passed": -1}
        first = "records.create.done" if way == "create" else "due.put.done"

        async def point(at: str, world: World = world, moving: Any = moving, first: str = first,
                        step: int = step) -> None:  # fmt: skip
            planned = any(kind == "records.add_live.done" for kind in world.points[-6:])
            if at == first and moving["passed"] < 0 and (way == "create" or planned):
                moving["passed"] = 0
                world.clock.advance(10 * MINUTE)
            elif moving["passed"] >= 0:
                moving["passed"] += 1
                if moving["passed"] == step + 1:
                    raise Crash

        world.on_point = point
        died = False
        try:
            await act()
        except Crash:
            died = True
        world.on_point = None
        assert moving["passed"] >= 0
        world.clock.advance(30 * SECOND)
        reminder_id = await act()
        world.clock.advance(SECOND)
        answers = [await world.claim(e) for e in await open_entries(world, reminder_id)
                   if e.occurrence and e.key.ring_at <= world.now]  # fmt: skip
        assert answers.count(ClaimAnswer.CLAIMED) == 1
        live = (await world.stored(reminder_id)).current[0]
        assert live.key in {e.key for e in await open_entries(world, reminder_id)}
        if not died:
            break
        step += 1
    assert step > 4


async def test_a_retry_is_moved_without_a_live_entry(world: World) -> None:
    """Retries have none."""
    reminder_id = await world.create(At(instant=NOON + HOUR))
    (entry,) = (await world.stored(reminder_id)).current
    key = replace(entry.key, ring_at=NOON + SECOND, entry_id="retry")
    retry = replace(entry, key=key, kind=Kind.RETRY, leg=Leg(channel_id="log", attempt=2))
    slowed(world, "due.put.done", 10 * MINUTE)
    await world.reminders.writer.put([retry], stamp=1)
    moved = [e for e in await open_entries(world, reminder_id) if e.kind is Kind.RETRY]
    assert [e.key.ring_at for e in moved] == [NOON + 10 * MINUTE]
    assert (await world.stored(reminder_id)).live == (entry,)


async def test_nothing_to_write_asks_nobody(world: World) -> None:
    """An empty batch."""
    await world.reminders.writer.put([], stamp=1)
    assert world.points == []


async def test_the_body_of_a_moved_entry_moves_with_it(world: World) -> None:
    """A large one stands in the live entry."""
    slowed(world, "records.create.done", 10 * MINUTE)
    reminder_id = await world.create(At(instant=NOON), params_json='{"x":"' + "y" * 5000 + '"}')
    (entry,) = await open_entries(world, reminder_id)
    with behind_the_scenes():
        body = await world.store.records.body(reminder_id, entry.key.entry_id)
    assert body is not None
    assert len(body) > 5000


async def test_a_rule_created_late_goes_on_from_its_moved_occurrence(world: World) -> None:
    """Its next occurrence is where it was."""
    slowed(world, "records.create.done", 10 * MINUTE)
    reminder_id = await world.create(every("FREQ=HOURLY"))
    first, second = sorted(e.key.ring_at for e in await open_entries(world, reminder_id))
    assert (first, second) == (NOON + 10 * MINUTE, NOON + HOUR)

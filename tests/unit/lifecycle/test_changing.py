"""Cancel and reschedule where nobody dies: answers, versions, ids, and what rings."""

import asyncio
from datetime import timedelta

import pytest

from reminders.errors import (
    AlreadyEnded,
    AlreadyFired,
    InvalidRequest,
    KeyConflict,
    NotFound,
    NotReady,
    VersionMismatch,
)
from reminders.model.definition import After, At
from reminders.model.entry import Fate
from reminders.model.record import Status
from reminders.ports import ClaimAnswer
from tests.unit.lifecycle.support import only, open_kinds
from tests.unit.lifecycle.world import (
    DAY,
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    World,
    every,
)

SOON = At(instant=NOON + 10 * SECOND)
LATER = At(instant=NOON + 20 * SECOND)


# --- cancel ---


@pytest.mark.parametrize("ahead", [10 * SECOND, HOUR, 400 * DAY])
async def test_cancelled_before_its_time_it_never_rings(world: World, ahead: timedelta) -> None:
    """Near or far: not fired, void on disk, and a copy in a scanner's heap is refused."""
    reminder_id = await world.create(At(instant=NOON + ahead))
    entry = await only(world, reminder_id)
    changed = await world.cancel(reminder_id)
    assert (changed.was_fired, changed.view.status) == (False, Status.CANCELLED)
    state = await world.state(entry)
    assert state is not None
    assert state.fate is Fate.VOID
    world.clock.move_to(entry.key.ring_at)
    answer = await world.claim(entry, read_at=NOON - SECOND)
    assert answer in (ClaimAnswer.VOID, ClaimAnswer.STALE)
    assert await open_kinds(world, reminder_id) == []
    stored = await world.stored(reminder_id)
    assert (stored.record.version, stored.change, stored.live) == (2, None, ())


async def test_a_far_cancel_needs_no_redis(world: World) -> None:
    """No scanner holds what is further ahead than voids live."""
    reminder_id = await world.create(At(instant=NOON + DAY))
    await world.cancel(reminder_id)
    assert not any(point.startswith("revoke") for point in world.points)


async def test_cancelled_after_its_claim_it_was_fired_and_rings(world: World) -> None:
    """Also if Redis loses the job: the entry is marked."""
    reminder_id = await world.create(SOON)
    entry = await only(world, reminder_id)
    world.clock.advance(10 * SECOND)
    assert await world.claim(entry) is ClaimAnswer.CLAIMED
    changed = await world.cancel(reminder_id)
    assert (changed.was_fired, changed.view.status) == (True, Status.FIRED)
    state = await world.state(entry)
    assert state is not None
    assert (state.fate, state.handled_at) == (Fate.CLAIMED, None)
    await world.dispatch()
    assert world.rings == [entry.dedupe_id]


@pytest.mark.parametrize("wait", [timedelta(0), 7 * HOUR])
async def test_cancelled_after_its_delivery_it_was_fired(world: World, wait: timedelta) -> None:
    """However long ago: when Redis has forgotten the claim, the outcome tells."""
    reminder_id = await world.create(SOON)
    entry = await only(world, reminder_id)
    world.clock.advance(10 * SECOND)
    await world.claim(entry)
    await world.dispatch()
    world.clock.advance(wait)
    assert (await world.cancel(reminder_id)).was_fired
    assert (await world.reminders.get("ns", reminder_id)).status is Status.FIRED


async def test_a_cancel_repeated_answers_the_same(world: World) -> None:
    """With or without an id, and whatever etag the repeat carries."""
    reminder_id = await world.create(SOON)
    first = await world.cancel(reminder_id)
    for options in ({}, {"request_id": "r"}, {"expected_version": 1}):
        again = await world.cancel(reminder_id, **options)
        assert (again.was_fired, again.answers) == (first.was_fired, first.answers)
    assert (await world.stored(reminder_id)).record.version == 2


async def test_a_wrong_etag_changes_nothing(world: World) -> None:
    """It names the version that stands."""
    reminder_id = await world.create(SOON)
    await world.reschedule(reminder_id, LATER)
    with pytest.raises(VersionMismatch) as caught:
        await world.cancel(reminder_id, expected_version=1)
    assert caught.value.actual == 2
    assert not (await world.cancel(reminder_id, expected_version=2)).was_fired


async def test_a_reminder_that_is_not_theirs_is_not_found(world: World) -> None:
    """Nor changed."""
    reminder_id = await world.create(SOON)
    with pytest.raises(NotFound):
        await world.reminders.cancel("other", reminder_id, expected_version=None, request_id=None)
    assert (await world.stored(reminder_id)).record.version == 1


async def test_nothing_changes_while_the_clock_is_out_of_bounds(world: World) -> None:
    """Its stamps could be ahead of everything."""
    reminder_id = await world.create(SOON)
    world.clock.bounds = False
    with pytest.raises(NotReady):
        await world.cancel(reminder_id)


async def test_a_cancelled_reminder_cannot_be_rescheduled(world: World) -> None:
    """Nor revived in any way."""
    reminder_id = await world.create(SOON)
    await world.cancel(reminder_id)
    with pytest.raises(AlreadyEnded):
        await world.reschedule(reminder_id, LATER)


# --- reschedule ---


async def test_rescheduled_before_its_time_only_the_new_time_rings(world: World) -> None:
    """The old entry is void, the new one stands under the next version."""
    reminder_id = await world.create(SOON)
    old = await only(world, reminder_id)
    changed = await world.reschedule(reminder_id, LATER)
    assert (changed.was_fired, changed.view.record.version) == (False, 2)
    new = await only(world, reminder_id)
    assert new.key.ring_at == NOON + 20 * SECOND
    world.clock.advance(20 * SECOND)
    assert await world.claim(old, read_at=NOON) is ClaimAnswer.VOID
    assert await world.claim(new) is ClaimAnswer.CLAIMED


async def test_rescheduled_to_the_same_time_it_rings_once(world: World) -> None:
    """One local occurrence, whatever the version."""
    reminder_id = await world.create(SOON)
    await world.reschedule(reminder_id, SOON)
    world.clock.advance(10 * SECOND)
    assert await world.claim(await only(world, reminder_id)) is ClaimAnswer.CLAIMED


async def test_rescheduled_away_and_back_it_rings(world: World) -> None:
    """The old version's void does not stop the newest one."""
    reminder_id = await world.create(SOON)
    await world.reschedule(reminder_id, At(instant=NOON + DAY))
    await world.reschedule(reminder_id, SOON)
    world.clock.advance(10 * SECOND)
    entry = await only(world, reminder_id)
    assert await world.claim(entry) is ClaimAnswer.CLAIMED


async def test_a_fired_one_shot_cannot_be_rescheduled_and_stays_fired(world: World) -> None:
    """Nothing of the new time is left anywhere."""
    reminder_id = await world.create(SOON)
    entry = await only(world, reminder_id)
    world.clock.advance(10 * SECOND)
    await world.claim(entry)
    for _ in range(2):
        with pytest.raises(AlreadyFired):
            await world.reschedule(reminder_id, After(delay=HOUR))
    view = await world.reminders.get("ns", reminder_id)
    assert view.status is Status.FIRED
    assert view.record.definition.schedule == SOON
    await world.dispatch()
    assert await open_kinds(world, reminder_id) == []
    assert (await world.cancel(reminder_id)).was_fired


async def test_an_invalid_schedule_changes_nothing(world: World) -> None:
    """It is refused before anything is written."""
    reminder_id = await world.create(SOON)
    before = len(world.points)
    with pytest.raises(InvalidRequest):
        await world.reschedule(reminder_id, every("FREQ=DAILY", until=NOON - DAY))
    assert set(world.points[before:]) == {"records.read"}


async def test_a_repeat_by_request_id_changes_nothing_again(world: World) -> None:
    """An hour is counted from the first call."""
    reminder_id = await world.create(SOON)
    first = await world.reschedule(reminder_id, After(delay=HOUR), request_id="r")
    world.clock.advance(5 * MINUTE)
    again = await world.reschedule(reminder_id, After(delay=HOUR), request_id="r")
    assert again.view.record == first.view.record
    assert again.view.ahead[0].key.ring_at == NOON + HOUR


async def test_a_request_id_for_something_else_is_a_conflict(world: World) -> None:
    """Another schedule, another etag or another action."""
    reminder_id = await world.create(SOON)
    await world.reschedule(reminder_id, LATER, request_id="r")
    with pytest.raises(KeyConflict):
        await world.reschedule(reminder_id, SOON, request_id="r")
    with pytest.raises(KeyConflict):
        await world.reschedule(reminder_id, LATER, request_id="r", expected_version=2)
    with pytest.raises(KeyConflict):
        await world.cancel(reminder_id, request_id="r")


async def test_two_calls_of_one_request_id_at_once_change_once(world: World) -> None:
    """Both are told the same instants."""
    reminder_id = await world.create(SOON)

    async def others_turn(_: str) -> None:
        await asyncio.sleep(0)

    world.on_point = others_turn
    calls = [
        world.reschedule(reminder_id, After(delay=HOUR), request_id="r"),
        world.reschedule(reminder_id, After(delay=HOUR), request_id="r"),
    ]
    first, second = await asyncio.gather(*calls)
    assert first.view.record == second.view.record
    assert first.view.record.version == 2

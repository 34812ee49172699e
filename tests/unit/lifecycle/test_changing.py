"""Cancel and reschedule where nobody dies: answers, versions, ids, and what rings."""

import asyncio
from datetime import timedelta
from typing import Any

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
from reminders.lifecycle.changing import FINISH_AFTER
from reminders.model.definition import After, At, LocalTime, Policies
from reminders.model.entry import Fate, Kind
from reminders.model.ledger import LedgerRow, OccurrenceStatus
from reminders.model.record import Status
from reminders.ports import ClaimAnswer
from reminders.recurrence import Overlap
from tests.unit.lifecycle.world import (
    DAY,
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    World,
    behind_the_scenes,
    every,
    running,
)

SOON = At(instant=NOON + 10 * SECOND)
LATER = At(instant=NOON + 20 * SECOND)


async def only(world: World, reminder_id: str) -> Any:
    """The one live entry."""
    (entry,) = (await world.stored(reminder_id)).current
    return entry


async def open_kinds(world: World, reminder_id: str) -> list[tuple[Kind, int]]:
    """What would still ring, with its version."""
    return [
        (state.entry.kind, state.entry.version)
        for state in await world.entries(reminder_id)
        if state.handled_at is None and state.fate is not Fate.VOID
    ]


# --- cancel -------------------------------------------------------------------------------------


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


# --- reschedule -----------------------------------------------------------------------------------


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


# --- rules --------------------------------------------------------------------------------------


async def test_a_rule_with_one_claimed_and_one_ahead_answers_for_each(world: World) -> None:
    """The claimed one rings, the other never."""
    reminder_id = await world.create(every("FREQ=HOURLY"))
    first, second = (await world.stored(reminder_id)).current
    await world.claim(first)
    changed = await world.cancel(reminder_id)
    assert [answer.was_fired for answer in changed.answers] == [True, False]
    assert (changed.was_fired, changed.view.status) == (True, Status.CANCELLED)
    await world.dispatch()
    assert world.rings == [first.dedupe_id]
    world.clock.move_to(second.key.ring_at)
    answer = await world.claim(second, read_at=NOON)
    assert answer in (ClaimAnswer.VOID, ClaimAnswer.STALE)


async def test_what_a_rule_rang_long_ago_does_not_count_as_fired(world: World) -> None:
    """Nobody asks about yesterday, though its live entry is still there."""
    reminder_id = await world.create(every("FREQ=DAILY"))
    first, _ = (await world.stored(reminder_id)).current
    await world.claim(first)
    await world.dispatch()
    world.clock.advance(HOUR)
    changed = await world.cancel(reminder_id)
    assert [answer.was_fired for answer in changed.answers] == [False]


async def test_a_rule_that_has_ended_was_fired(world: World) -> None:
    """Its last occurrence counts."""
    reminder_id = await world.create(every("FREQ=DAILY;COUNT=1"))
    await world.claim(await only(world, reminder_id))
    await world.dispatch()
    assert (await world.cancel(reminder_id)).was_fired


async def test_a_rule_is_rescheduled_also_where_one_was_claimed(world: World) -> None:
    """That one rings beside the new ones."""
    reminder_id = await world.create(every("FREQ=HOURLY"))
    first, _ = (await world.stored(reminder_id)).current
    await world.claim(first)
    changed = await world.reschedule(reminder_id, every("FREQ=DAILY;BYHOUR=18;BYMINUTE=0"))
    assert changed.was_fired
    assert [e.key.ring_at.hour for e in changed.view.ahead] == [18, 18]
    state = await world.state(first)
    assert state is not None
    assert state.fate is Fate.CLAIMED


async def test_one_local_occurrence_rings_once_though_its_rule_moves_to_another_zone(
    world: World,
) -> None:
    """14:00 rang in Paris at noon UTC; in New York it comes six hours later, and is left out."""
    reminder_id = await world.create(every("FREQ=DAILY;BYHOUR=14;BYMINUTE=0", zone="Europe/Paris"))
    first, _ = (await world.stored(reminder_id)).current
    assert first.key.ring_at == NOON
    await world.claim(first)
    world.clock.advance(SECOND)
    moved = every("FREQ=DAILY;BYHOUR=14;BYMINUTE=0", zone="America/New_York")
    changed = await world.reschedule(reminder_id, moved)
    assert [e.key.ring_at for e in changed.view.ahead] == [NOON + DAY + 6 * HOUR]
    assert changed.view.ahead[0].recurs


async def test_a_rule_goes_on_where_all_its_planned_occurrences_rang(world: World) -> None:
    """Only then it plans further."""
    rule = "FREQ=DAILY;BYHOUR=14;BYMINUTE=0,1"
    reminder_id = await world.create(every(rule, zone="Europe/Paris"))
    both = (await world.stored(reminder_id)).current
    world.clock.advance(2 * MINUTE)
    for entry in both:
        await world.claim(entry)
    changed = await world.reschedule(reminder_id, every(rule, zone="America/New_York"))
    assert [e.key.ring_at for e in changed.view.ahead] == [NOON + DAY + 6 * HOUR]


async def test_a_one_shot_rings_though_it_is_called_like_what_its_rule_rang(world: World) -> None:
    """14:00 in Paris rang; now the caller wants 14:00 UTC, which has the same name."""
    reminder_id = await world.create(every("FREQ=DAILY;BYHOUR=14;BYMINUTE=0", zone="Europe/Paris"))
    first, _ = (await world.stored(reminder_id)).current
    await world.claim(first)
    changed = await world.reschedule(reminder_id, At(instant=NOON + 2 * HOUR))
    (entry,) = changed.view.ahead
    assert entry.dedupe_id == first.dedupe_id
    world.clock.advance(2 * HOUR)
    assert await world.claim(entry) is ClaimAnswer.CLAIMED


async def test_of_a_one_shot_that_rings_twice_the_second_time_can_be_moved(world: World) -> None:
    """02:30 comes twice; the first was claimed."""
    world = await World.led(start=NOON.replace(month=10, day=25, hour=0))
    schedule = LocalTime(date="2026-10-25", time="02:30", zone="Europe/Paris")
    reminder_id = await world.create(schedule, policies=Policies(overlap=Overlap.BOTH))
    first, second = (await world.stored(reminder_id)).current
    world.clock.move_to(first.key.ring_at)
    await world.claim(first)
    changed = await world.reschedule(reminder_id, At(instant=world.now + 2 * HOUR))
    assert [answer.was_fired for answer in changed.answers] == [True, False]
    await world.dispatch()
    world.clock.move_to(second.key.ring_at)
    answer = await world.claim(second, read_at=first.key.ring_at - SECOND)
    assert answer in (ClaimAnswer.VOID, ClaimAnswer.STALE)
    assert world.rings == [first.dedupe_id]
    assert [kind for kind, _ in await open_kinds(world, reminder_id)].count(Kind.OCCURRENCE) == 1


async def test_a_change_sees_the_occurrence_that_an_expander_wrote_just_before_it(
    world: World,
) -> None:
    """The expander reads the record as unchanged, the change begins; only the live entries of after
    the beginning show what was written in between.
    """
    reminder_id = await world.create(every("FREQ=DAILY"))
    first, _ = (await world.stored(reminder_id)).current
    await world.claim(first)
    await world.dispatch()

    async def expand_first(point: str) -> None:
        if point == "records.begin":
            world.on_point = None
            stored = await world.stored(reminder_id)
            with behind_the_scenes():
                following = world.reminders.planner.following(stored.record, stored.current)
                stamp = stored.record.stamp
                await world.store.records.add_live(following, stamp=stamp)
                await world.reminders.writer.put(following, stamp=stamp)

    world.on_point = expand_first
    assert not (await world.cancel(reminder_id)).was_fired
    assert await open_kinds(world, reminder_id) == []
    assert await world.reminders.pending("ns", "ann", limit=5, token="") is not None
    assert (await world.reminders.pending("ns", "ann", limit=5, token=""))[1] == 0


async def test_many_reschedules_leave_only_the_live_entries_that_count(world: World) -> None:
    """A read brings only the newest few by local time, whatever their version: none of a dropped
    version may stand before them.
    """
    reminder_id = await world.create(every("FREQ=DAILY"))
    for hours in range(23, 10, -1):
        start = (NOON + hours * HOUR).replace(tzinfo=None)
        await world.reschedule(reminder_id, every("FREQ=DAILY", start_local=start))
    stored = await world.stored(reminder_id)
    assert stored.live == tuple(reversed(stored.current))
    assert len(stored.current) == 2


# --- doubt --------------------------------------------------------------------------------------


async def test_after_redis_lost_everything_a_near_time_is_in_doubt_and_rings(world: World) -> None:
    """A claim may have been made that nobody sees: fired, and marked so that it is true."""
    reminder_id = await world.create(SOON)
    entry = await only(world, reminder_id)
    await world.take_lease()
    world.coordination.lose_everything()
    changed = await world.cancel(reminder_id)
    assert changed.was_fired
    state = await world.state(entry)
    assert state is not None
    assert state.fate is Fate.CLAIMED


async def test_after_redis_lost_everything_a_far_time_is_not_in_doubt(world: World) -> None:
    """It cannot have been claimed."""
    reminder_id = await world.create(At(instant=NOON + world.limits.margin + SECOND))
    await world.take_lease()
    world.coordination.lose_everything()
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


# --- the entry that looks after a change ----------------------------------------------------------


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

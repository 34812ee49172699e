"""Pause and resume: silence, what is kept, what rings afterwards, and what the ledger says."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec import structs

from dispatcher.gate import RecordGate
from expander.expansion import Expanded, Expansion
from reminders.errors import AlreadyEnded, KeyConflict, VersionMismatch
from reminders.lifecycle.pausing import COUNTED
from reminders.model.definition import After, At, LocalTime, Policies
from reminders.model.entry import Fate, Kind, Leg
from reminders.model.ledger import LedgerRow, OccurrenceStatus
from reminders.model.record import Status
from reminders.ports import ClaimAnswer
from reminders.recurrence import Overlap, Series
from tests.unit.lifecycle.support import only
from tests.unit.lifecycle.world import DAY, HOUR, MINUTE, NOON, SECOND, World, every

SOON = At(instant=NOON + 10 * SECOND)
HOURLY = every("FREQ=HOURLY")


async def ahead(world: World, reminder_id: str) -> list[datetime]:
    """When it would ring."""
    return [e.key.ring_at for e in (await world.reminders.get("ns", reminder_id)).ahead]


async def open_entries(world: World, reminder_id: str) -> list[str]:
    """The occurrences that would still ring."""
    return [
        state.entry.occurrence.occurrence_id
        for state in await world.entries(reminder_id)
        if state.handled_at is None
        and state.fate is not Fate.VOID
        and state.entry.occurrence is not None
    ]


async def skipped(world: World, reminder_id: str) -> list[LedgerRow]:
    """What the ledger says did not ring."""
    return [row for row in await world.ledger(reminder_id) if row.ended is not None]


# --- pause ---


@pytest.mark.parametrize("wait", [10 * SECOND, HOUR, 400 * DAY])
async def test_paused_before_its_time_it_does_not_ring(world: World, wait: timedelta) -> None:
    """Near or far: not fired, void on disk, in no list, and a copy in a heap is refused."""
    reminder_id = await world.create(At(instant=NOON + wait))
    entry = await only(world, reminder_id)
    changed = await world.pause(reminder_id, "on holiday")
    assert (changed.was_fired, changed.view.status, changed.view.ahead) == (
        False,
        Status.PAUSED,
        (),
    )
    assert changed.view.record.pause_reason == "on holiday"
    assert [answer.was_fired for answer in changed.answers] == [False]
    world.clock.move_to(entry.key.ring_at)
    assert await world.claim(entry, read_at=NOON) in (ClaimAnswer.VOID, ClaimAnswer.STALE)
    assert await open_entries(world, reminder_id) == []
    page, total, _ = await world.reminders.pending("ns", "ann", limit=5, token="")
    assert (page.items, total) == ((), 0)


async def test_a_one_shot_that_fired_cannot_be_paused_and_says_so(world: World) -> None:
    """As a cancel does: it rings."""
    reminder_id = await world.create(SOON)
    world.clock.advance(10 * SECOND)
    await world.claim(await only(world, reminder_id))
    for _ in range(2):
        changed = await world.pause(reminder_id)
        assert (changed.was_fired, changed.view.status) == (True, Status.FIRED)
    await world.dispatch()
    assert len(world.rings) == 1


async def test_of_a_paused_rule_the_claimed_one_rings_and_nothing_else(world: World) -> None:
    """The answer is for each."""
    reminder_id = await world.create(HOURLY)
    first, _ = (await world.stored(reminder_id)).current
    await world.claim(first)
    changed = await world.pause(reminder_id)
    assert [answer.was_fired for answer in changed.answers] == [True, False]
    assert (changed.was_fired, changed.view.status) == (True, Status.PAUSED)
    await world.dispatch()
    assert world.rings == [first.dedupe_id]
    assert await open_entries(world, reminder_id) == []


async def test_pausing_a_paused_one_changes_its_reason(world: World) -> None:
    """A new version, still silent, and it forgets nothing."""
    reminder_id = await world.create(HOURLY)
    await world.pause(reminder_id, "one")
    changed = await world.pause(reminder_id, "two")
    assert changed.view.record.pause_reason == "two"
    assert changed.view.record.version == 3
    await world.resume(reminder_id)
    assert await ahead(world, reminder_id) == [NOON, NOON + HOUR]


async def test_a_pause_repeated_answers_what_it_found(world: World) -> None:
    """By its id, or by its reason alone."""
    reminder_id = await world.create(HOURLY)
    first, _ = (await world.stored(reminder_id)).current
    await world.claim(first)
    answer = await world.pause(reminder_id, "x", request_id="r")
    for options in ({"request_id": "r"}, {}):
        again = await world.pause(reminder_id, "x", **options)
        assert (again.was_fired, again.answers) == (True, answer.answers)
    assert (await world.stored(reminder_id)).record.version == 2
    with pytest.raises(KeyConflict):
        await world.pause(reminder_id, "y", request_id="r")


async def test_a_wrong_etag_pauses_and_resumes_nothing(world: World) -> None:
    """As with every change."""
    reminder_id = await world.create(HOURLY)
    with pytest.raises(VersionMismatch):
        await world.pause(reminder_id, expected_version=2)
    await world.pause(reminder_id)
    with pytest.raises(VersionMismatch):
        await world.resume(reminder_id, expected_version=1)


async def test_a_cancelled_one_is_neither_paused_nor_resumed(world: World) -> None:
    """It has ended."""
    reminder_id = await world.create(HOURLY)
    await world.cancel(reminder_id)
    with pytest.raises(AlreadyEnded):
        await world.pause(reminder_id)
    with pytest.raises(AlreadyEnded):
        await world.resume(reminder_id)


# --- who meets a paused one ---


async def test_a_retry_of_a_paused_reminder_stops(world: World) -> None:
    """Only first sends were asked about; what comes later looks at the record."""
    reminder_id = await world.create(HOURLY)
    first, _ = (await world.stored(reminder_id)).current
    await world.claim(first)
    await world.pause(reminder_id)
    gate = RecordGate(world.store, world.reminders.changes.finish)
    leg = Leg(channel_id="log", attempt=2)
    key = structs.replace(first.key, entry_id="retry")
    retry = structs.replace(first, key=key, kind=Kind.RETRY, leg=leg)
    assert await gate.objection(retry) == "paused"
    await world.resume(reminder_id)
    assert await gate.objection(retry) is None


async def test_an_expansion_of_a_paused_rule_writes_nothing(world: World) -> None:
    """Also one that was under way when the pause came."""
    reminder_id = await world.create(HOURLY)
    first, _ = (await world.stored(reminder_id)).current
    await world.claim(first)
    await world.pause(reminder_id)
    expansion = Expansion(world.platform, world.reminders)
    assert await expansion.expand(first) is Expanded.OVERTAKEN
    assert len(await world.entries(reminder_id)) == 3  # two of the rule, one of the change
    await world.resume(reminder_id)
    assert await ahead(world, reminder_id) == [NOON + HOUR, NOON + 2 * HOUR]


async def test_a_paused_one_is_cancelled(world: World) -> None:
    """Nothing had been live, so nothing was fired; and nothing rings when it would have resumed."""
    reminder_id = await world.create(HOURLY)
    await world.pause(reminder_id, "x")
    changed = await world.cancel(reminder_id)
    assert (changed.was_fired, changed.view.status) == (False, Status.CANCELLED)
    record = changed.view.record
    assert (record.pause_reason, record.silenced) == ("", ())
    assert await open_entries(world, reminder_id) == []


async def test_a_paused_one_that_is_rescheduled_stays_paused(world: World) -> None:
    """Its new time is kept, and rings after the resume alone."""
    reminder_id = await world.create(SOON)
    await world.pause(reminder_id, "x")
    changed = await world.reschedule(reminder_id, After(delay=HOUR))
    assert (changed.view.status, changed.view.record.pause_reason) == (Status.PAUSED, "x")
    assert await open_entries(world, reminder_id) == []
    world.clock.advance(MINUTE)
    await world.resume(reminder_id)
    assert await ahead(world, reminder_id) == [NOON + HOUR]


async def test_a_paused_one_that_is_updated_stays_paused_and_rings_with_the_new_content(
    world: World,
) -> None:
    """The same occurrence, another payload."""
    reminder_id = await world.create(After(delay=HOUR))
    await world.pause(reminder_id)
    world.clock.advance(MINUTE)
    changed = await world.update(reminder_id, params_json='{"a":1}', user_id="bob")
    assert changed.view.status is Status.PAUSED
    await world.resume(reminder_id)
    assert await ahead(world, reminder_id) == [NOON + HOUR]
    state = await world.state(await only(world, reminder_id))
    assert state is not None
    assert b'{"a":1}' in state.entry.body
    _, total, _ = await world.reminders.pending("ns", "bob", limit=5, token="")
    assert total == 1


# --- resume ---


async def test_one_that_is_not_paused_is_answered_as_it_is(world: World) -> None:
    """Nothing changes, no version is made."""
    reminder_id = await world.create(HOURLY)
    changed = await world.resume(reminder_id)
    assert (changed.view.status, changed.view.record.version) == (Status.SCHEDULED, 1)
    assert changed.view.ahead


async def test_a_resume_repeated_answers_the_same(world: World) -> None:
    """Its time is taken once."""
    reminder_id = await world.create(HOURLY)
    await world.pause(reminder_id)
    first = await world.resume(reminder_id, request_id="r")
    again = await world.resume(reminder_id, request_id="r")
    assert first.view.record == again.view.record


async def test_resumed_before_anything_was_due_the_rule_rings_as_if_nothing_had_been(
    world: World,
) -> None:
    """The same occurrences, and nothing in the ledger."""
    reminder_id = await world.create(every("FREQ=DAILY;BYHOUR=18;COUNT=3"))
    before = [e.dedupe_id for e in (await world.stored(reminder_id)).current]
    await world.pause(reminder_id)
    world.clock.advance(HOUR)
    changed = await world.resume(reminder_id)
    assert [e.dedupe_id for e in changed.view.ahead] == before
    assert [e.occurrence.ordinal for e in changed.view.ahead] == [1, 2]
    assert not await skipped(world, reminder_id)
    assert changed.view.record.pause_reason == ""


async def test_what_fell_into_the_pause_is_one_row_and_does_not_ring(world: World) -> None:
    """From the first to the last; the rule goes on behind now."""
    reminder_id = await world.create(every("FREQ=HOURLY"))
    first, _ = (await world.stored(reminder_id)).current
    await world.claim(first)
    await world.dispatch()
    await world.pause(reminder_id)
    world.clock.advance(5 * HOUR + MINUTE)
    changed = await world.resume(reminder_id)
    assert [e.key.ring_at for e in changed.view.ahead] == [NOON + 6 * HOUR, NOON + 7 * HOUR]
    (row,) = await skipped(world, reminder_id)
    assert (row.ended, row.reason, row.skipped_count) == (OccurrenceStatus.SKIPPED, "paused", 5)
    assert row.skipped_through is not None
    assert row.occurrence.planned_at == NOON + HOUR
    assert row.skipped_through.planned_at == NOON + 5 * HOUR
    assert world.rings == [first.dedupe_id]


async def test_a_pause_uses_up_nothing_of_a_count(world: World) -> None:
    """Three in all ring: one before, two after."""
    reminder_id = await world.create(every("FREQ=HOURLY;COUNT=3"))
    first, _ = (await world.stored(reminder_id)).current
    await world.claim(first)
    await world.dispatch()
    await world.pause(reminder_id)
    world.clock.advance(10 * HOUR + MINUTE)
    changed = await world.resume(reminder_id)
    assert [e.key.ring_at for e in changed.view.ahead] == [NOON + 11 * HOUR, NOON + 12 * HOUR]
    assert [e.occurrence.ordinal for e in changed.view.ahead] == [2, 3]
    assert [e.recurs for e in changed.view.ahead] == [True, False]


async def test_an_excluded_date_between_does_not_count_twice(world: World) -> None:
    """EXDATEs are counted when the rule passes them, and only then."""
    out = (NOON + 2 * HOUR).replace(tzinfo=None)
    rule = every("FREQ=HOURLY;COUNT=4", exdates_local=(out,))
    reminder_id = await world.create(rule)
    first, second = (await world.stored(reminder_id)).current
    for entry in (first, second):
        world.clock.move_to(max(world.now, entry.key.ring_at))
        await world.claim(entry)
        await world.dispatch()
    await world.pause(reminder_id)
    changed = await world.resume(reminder_id)
    assert [e.key.ring_at for e in changed.view.ahead] == [NOON + 3 * HOUR]
    assert [e.occurrence.ordinal for e in changed.view.ahead] == [4]


async def test_two_weeks_of_every_second_are_not_walked_through(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row has its first and its last; so many are not counted."""
    reminder_id = await world.create(every("FREQ=SECONDLY"))
    await world.pause(reminder_id)
    world.clock.advance(14 * DAY + timedelta(milliseconds=500))
    taken = 0
    computed = Series.next

    def counting(self: Series, *arguments: Any) -> Any:
        nonlocal taken
        found = computed(self, *arguments)
        taken += len(found)
        return found

    monkeypatch.setattr(Series, "next", counting)
    changed = await world.resume(reminder_id)
    assert taken < COUNTED + 200
    assert changed.view.ahead[0].key.ring_at == NOON + 14 * DAY + SECOND
    (row,) = await skipped(world, reminder_id)
    assert row.skipped_through is not None
    assert row.skipped_through.planned_at == NOON + 14 * DAY
    assert (row.occurrence.planned_at, row.skipped_count) == (NOON, 0)


async def test_a_rule_that_ended_in_its_pause_rings_no_more(world: World) -> None:
    """UNTIL is an instant, paused or not."""
    reminder_id = await world.create(every("FREQ=HOURLY", until=NOON + 3 * HOUR))
    await world.pause(reminder_id)
    world.clock.advance(DAY)
    changed = await world.resume(reminder_id)
    assert (changed.view.status, changed.view.ahead) == (Status.FIRED, ())
    (row,) = await skipped(world, reminder_id)
    assert row.skipped_count == 4


async def test_a_rule_goes_on_although_its_last_known_one_was_claimed(world: World) -> None:
    """Both that were live had been claimed, and no expansion had been made."""
    reminder_id = await world.create(every("FREQ=SECONDLY"))
    world.clock.advance(SECOND)
    for entry in (await world.stored(reminder_id)).current:
        await world.claim(entry)
    await world.pause(reminder_id)
    await world.resume(reminder_id)
    assert await ahead(world, reminder_id) == [NOON + 2 * SECOND, NOON + 3 * SECOND]


async def test_a_one_shot_whose_time_is_ahead_rings_then(world: World) -> None:
    """Also one that was given as a delay: it was promised an instant."""
    reminder_id = await world.create(After(delay=HOUR))
    await world.pause(reminder_id)
    world.clock.advance(30 * MINUTE)
    await world.resume(reminder_id)
    entry = await only(world, reminder_id)
    assert entry.key.ring_at == NOON + HOUR
    world.clock.move_to(NOON + HOUR)
    assert await world.claim(entry) is ClaimAnswer.CLAIMED


async def test_a_one_shot_whose_time_passed_in_the_pause_rings_at_once(world: World) -> None:
    """It is the user's promise; its lateness and its retries count from now."""
    reminder_id = await world.create(SOON)
    await world.pause(reminder_id)
    world.clock.advance(2 * DAY)
    await world.resume(reminder_id)
    entry = await only(world, reminder_id)
    assert entry.key.ring_at == NOON + 2 * DAY
    assert entry.promised_at == NOON + 2 * DAY
    assert entry.occurrence.planned_at == NOON + 10 * SECOND
    assert await world.claim(entry) is ClaimAnswer.CLAIMED
    await world.dispatch()
    assert len(world.rings) == 1
    assert not await skipped(world, reminder_id)


async def test_a_one_shot_that_expired_in_the_pause_does_not_ring(world: World) -> None:
    """Three days later nobody wants it, and the ledger says so."""
    reminder_id = await world.create(SOON)
    await world.pause(reminder_id)
    world.clock.advance(3 * DAY + 11 * SECOND)
    changed = await world.resume(reminder_id)
    assert (changed.view.status, changed.view.ahead) == (Status.FIRED, ())
    (row,) = await skipped(world, reminder_id)
    assert (row.ended, row.reason) == (OccurrenceStatus.EXPIRED, "paused")
    assert await open_entries(world, reminder_id) == []


async def test_of_a_time_that_rings_twice_the_one_that_rang_does_not_ring_again() -> None:
    """02:30 comes twice; paused between the two."""
    world = await World.led(start=NOON.replace(month=10, day=25, hour=0))
    schedule = LocalTime(date="2026-10-25", time="02:30", zone="Europe/Paris")
    reminder_id = await world.create(schedule, policies=Policies(overlap=Overlap.BOTH))
    first, second = (await world.stored(reminder_id)).current
    world.clock.move_to(first.key.ring_at)
    await world.claim(first)
    changed = await world.pause(reminder_id)
    assert [answer.was_fired for answer in changed.answers] == [True, False]
    assert changed.view.status is Status.PAUSED
    await world.resume(reminder_id)
    assert (await only(world, reminder_id)).dedupe_id == second.dedupe_id
    await world.dispatch()
    assert world.rings == [first.dedupe_id]

"""A cancel stops what waits of a reminder that fired, and says how many deliveries that were."""

from contextlib import suppress
from datetime import datetime
from typing import Any

import pytest
from msgspec.structs import replace

from dispatcher.gate import RecordGate
from reminders.errors import AlreadyEnded, AlreadyFired, TocsinError
from reminders.lifecycle import stopping
from reminders.lifecycle.beside import trigger_occurrence
from reminders.lifecycle.replaying import Asked
from reminders.lifecycle.stopping import waiting_key
from reminders.model.definition import At
from reminders.model.entry import DueEntry, DueKey, Fate, Kind, Leg, Replay
from reminders.model.ledger import Attempt, DeliveryStatus, LedgerRow
from reminders.model.record import Status
from reminders.ports import ClaimAnswer
from tests.unit.lifecycle.world import (
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    World,
    behind_the_scenes,
    every,
)

DUE = At(instant=NOON)
SOON = NOON + 40 * SECOND
"""When the retry of most tests is due: inside the look-ahead."""


def failed(entry: DueEntry, next_at: datetime, *, ended_at: datetime = NOON) -> LedgerRow:
    """After a first attempt that is to be made again."""
    assert entry.occurrence is not None
    return LedgerRow(
        namespace="ns",
        reminder_id=entry.reminder_id,
        reminder_version=entry.version,
        occurrence=entry.occurrence,
        claimed_at=NOON,
        channel_id="log",
        delivery=DeliveryStatus.RETRYING,
        attempts=(Attempt(number=1, started_at=ended_at, error_class="http_503"),),
        attempt_count=1,
        next_attempt_at=next_at,
    )


def parked(entry: DueEntry, next_at: datetime) -> LedgerRow:
    """Before a first attempt that found no place."""
    return replace(
        failed(entry, next_at),
        delivery=DeliveryStatus.PENDING,
        attempts=(),
        attempt_count=0,
        parked=1,
    )


async def waits(world: World, entry: DueEntry, row: LedgerRow) -> DueKey:
    """The occurrence rang, and this is what became of it: row and entry, as dispatchers write."""
    with behind_the_scenes():
        await world.store.due.handled([entry], at=world.now)
        await world.store.ledger.write([row], at=world.now)
        key = waiting_key(row, world.limits.shards)
        assert key is not None
        again = replace(
            entry,
            key=key,
            kind=Kind.PARKED if row.parked else Kind.RETRY,
            leg=Leg(channel_id="log", attempt=row.attempt_count + 1),
            parked=row.parked,
            recurs=False,
        )
        await world.store.due.put([again], stamp=1)
    return key


async def with_retry(
    world: World, next_at: datetime = SOON, **row: Any
) -> tuple[str, DueEntry, DueKey]:
    """A one-shot that rang at noon, to a receiver that was busy."""
    name = await world.create(DUE)
    (entry,) = (await world.stored(name)).current
    assert await world.claim(entry) is ClaimAnswer.CLAIMED
    return name, entry, await waits(world, entry, failed(entry, next_at, **row))


async def claimed(world: World, key: DueKey) -> bool:
    """Whether a scanner that looks now hands it on."""
    with behind_the_scenes():
        state = await world.store.due.read(key)
        assert state is not None
        if state.fate is Fate.VOID or state.handled_at is not None:
            return False
    return await world.claim(state.entry) is ClaimAnswer.CLAIMED


async def dispatched(world: World, key: DueKey) -> str:
    """What a dispatcher does about one that was claimed: "sent", or why not."""
    with behind_the_scenes():
        state = await world.store.due.read(key)
        assert state is not None
        entry = state.entry
        assert entry.occurrence is not None
        assert entry.leg is not None
        place = (entry.reminder_id, entry.occurrence.occurrence_id, "log")
        row = await world.store.ledger.read(*place)
        if row is not None and row.delivery is not None and row.delivery.terminal:
            said = "suppressed"
        else:
            gate = RecordGate(world.store, world.reminders.changes.finish)
            said = await gate.objection(entry) or "sent"
            assert row is not None
            if said != "sent":
                ended = replace(row, delivery=DeliveryStatus.CANCELLED, next_attempt_at=None)
                await world.store.ledger.write([ended], at=world.now)
        await world.store.due.handled([entry], at=world.now)
    return said


async def row_of(world: World, name: str) -> LedgerRow:
    """The only one."""
    (row,) = await world.ledger(name)
    return row


async def test_a_waiting_retry_is_stopped_and_counted(world: World) -> None:
    """On record at once, and never claimed; the reminder stays fired."""
    name, _, key = await with_retry(world, NOON + 5 * MINUTE)
    world.clock.advance(2 * MINUTE)
    changed = await world.cancel(name)
    assert (changed.was_fired, changed.stopped) == (True, 1)
    assert [(each.was_fired, each.stopped) for each in changed.answers] == [(True, 1)]
    assert changed.view.status is Status.FIRED
    row = await row_of(world, name)
    assert (row.delivery, row.reason) == (DeliveryStatus.CANCELLED, "cancelled")
    assert (row.attempt_count, row.next_attempt_at) == (1, None)
    world.clock.move_to(key.ring_at)
    assert not await claimed(world, key)


async def test_a_repeat_answers_the_same(world: World) -> None:
    """With the request id or without, now or later; for another reminder's version never."""
    name, _, _ = await with_retry(world)
    first = await world.cancel(name, request_id="q")
    for wait in (SECOND, HOUR):
        world.clock.advance(wait)
        for request_id in ("q", None, "other"):
            again = await world.cancel(name, request_id=request_id)
            assert (again.was_fired, again.stopped) == (True, 1)
            assert again.answers == first.answers
            assert again.view.record.version == first.view.record.version


async def test_just_after_its_attempt_the_entry_is_left_to_ring_unsent(world: World) -> None:
    """Its dispatcher may write its row once more: somebody has to come for it then."""
    name, _, key = await with_retry(world)
    world.clock.advance(SECOND)
    assert (await world.cancel(name)).stopped == 1
    row = await row_of(world, name)
    assert row.delivery is DeliveryStatus.CANCELLED
    again = replace(row, delivery=DeliveryStatus.RETRYING, next_attempt_at=key.ring_at)
    world.clock.advance(SECOND)
    with behind_the_scenes():
        await world.store.ledger.write([again], at=world.now)
    world.clock.move_to(key.ring_at)
    assert await claimed(world, key)
    assert await dispatched(world, key) == "cancelled"
    assert (await row_of(world, name)).delivery is DeliveryStatus.CANCELLED


async def test_what_is_claimed_at_that_very_moment_is_not_counted(world: World) -> None:
    """It may be under way; if it is not yet, it ends unsent."""
    name, _, key = await with_retry(world)
    world.clock.move_to(key.ring_at)
    assert await claimed(world, key)
    changed = await world.cancel(name)
    assert (changed.was_fired, changed.stopped) == (True, 0)
    assert (await row_of(world, name)).delivery is DeliveryStatus.RETRYING
    assert await dispatched(world, key) == "cancelled"


async def test_a_parked_first_send_is_stopped_too(world: World) -> None:
    """It fired, and nobody has been reminded: the number says so."""
    name = await world.create(DUE)
    (entry,) = (await world.stored(name)).current
    await world.claim(entry)
    key = await waits(world, entry, parked(entry, NOON + 3 * SECOND))
    assert key.entry_id.endswith(".log.a1!1")
    world.clock.advance(SECOND)
    changed = await world.cancel(name)
    assert (changed.was_fired, changed.stopped) == (True, 1)
    row = await row_of(world, name)
    assert (row.delivery, row.parked) == (DeliveryStatus.CANCELLED, 0)
    world.clock.move_to(key.ring_at)
    assert await claimed(world, key)
    assert await dispatched(world, key) == "suppressed"


async def test_a_rules_open_retries_are_stopped_with_it(world: World) -> None:
    """Of occurrences that rang before; what lies ahead is answered for as ever."""
    name = await world.create(every("FREQ=MINUTELY;INTERVAL=10;COUNT=5"))
    ahead = list((await world.stored(name)).current)
    await world.claim(ahead[0])
    await waits(world, ahead[0], failed(ahead[0], NOON + HOUR))
    world.clock.advance(MINUTE)
    changed = await world.cancel(name)
    assert (changed.was_fired, changed.stopped) == (True, 1)
    assert changed.view.status is Status.CANCELLED
    told = {each.occurrence_id: (each.was_fired, each.stopped) for each in changed.answers}
    assert told[ahead[0].occurrence_id] == (True, 1)
    assert {told[entry.occurrence_id] for entry in ahead[1:]} <= {(False, 0)}
    assert (await row_of(world, name)).delivery is DeliveryStatus.CANCELLED


@pytest.mark.parametrize("next_at", [SOON, NOON + HOUR])
async def test_a_cancel_that_dies_at_any_step_stops_it_all_the_same(next_at: datetime) -> None:
    """Whoever finishes it: what is recorded as stopped is never sent, nor anything else."""
    step, counts = 0, set()
    while True:
        world = await World.led()
        name, _, key = await with_retry(world, next_at)
        world.clock.advance(SECOND)
        died = await world.dies_at(step, world.cancel(name, request_id="q"))
        begun = (await world.stored(name)).change is not None
        over = (await world.stored(name)).record.over is not None
        world.clock.move_to(next_at)
        if begun or over:
            said = await dispatched(world, key) if await claimed(world, key) else "void"
            assert said != "sent", world.points
        again = await world.cancel(name, request_id="q")
        counts.add(again.stopped)
        stored = await world.stored(name)
        assert (stored.change, stored.record.over) == (None, Status.CANCELLED)
        if again.stopped:
            said = await dispatched(world, key) if await claimed(world, key) else "void"
            assert said != "sent", world.points
            row = await row_of(world, name)
            assert row.delivery is DeliveryStatus.CANCELLED
        if not died:
            break
        step += 1
    assert step > 8
    assert counts == {0, 1}  # 0: claimed before somebody came back


async def test_a_server_that_fails_at_any_step_leaves_it_safe_to_repeat(world: World) -> None:
    """The repeat answers what is recorded, which is what happens."""
    step = 0
    while True:
        world = await World.led()
        name, _, key = await with_retry(world, NOON + HOUR)
        world.clock.advance(2 * MINUTE)
        failed_there = await world.unavailable_at(step, _tolerant(world, name))
        changed = await world.cancel(name, request_id="q")
        assert (changed.was_fired, changed.stopped) == (True, 1)
        world.clock.move_to(key.ring_at)
        said = await dispatched(world, key) if await claimed(world, key) else "void"
        assert said in ("cancelled", "suppressed", "void"), world.points
        assert (await row_of(world, name)).delivery is DeliveryStatus.CANCELLED
        if not failed_there:
            break
        step += 1
    assert step > 8


async def test_without_redis_it_is_unavailable_and_nothing_is_said(world: World) -> None:
    """Which retries are claimed, nobody knows then."""
    name, _, _ = await with_retry(world)
    step = next(
        index
        for index, point in enumerate(await _points())
        if point.startswith("claims.claimed") or "claimed" in point
    )
    assert await world.unavailable_at(step, world.cancel(name, request_id="q"))
    assert (await world.stored(name)).change is not None
    assert (await row_of(world, name)).delivery is DeliveryStatus.RETRYING


@pytest.mark.parametrize("answered", [False, True])
async def test_a_claim_at_any_point_of_the_cancel_is_either_counted_out_or_unsent(
    answered: bool,
) -> None:
    """Counted as stopped: not sent. Sent: not counted. `answered`: its dispatcher is as quick."""
    step, seen = 0, set()
    while True:
        world = await World.led()
        name, _, key = await with_retry(world)
        world.clock.move_to(key.ring_at)
        passed, said = 0, ""

        async def meanwhile(
            _: str, world: World = world, key: DueKey = key, step: int = step
        ) -> None:
            nonlocal passed, said
            passed += 1
            if passed == step + 1:
                said = "claimed" if await claimed(world, key) else "void"
                if answered and said == "claimed":
                    said = await dispatched(world, key)

        world.on_point = meanwhile
        changed = await world.cancel(name)
        world.on_point = None
        if said == "claimed":
            said = await dispatched(world, key)
        seen.add((said, changed.stopped))
        if passed <= step:
            break
        step += 1
    assert ("sent", 1) not in seen
    assert ("sent", 0) in seen or not answered
    assert {stopped for _, stopped in seen} == {0, 1}


@pytest.mark.parametrize("led_again", [False, True])
async def test_what_redis_may_have_forgotten_is_not_counted(world: World, led_again: bool) -> None:
    """It may have been claimed, and sent. It is stopped all the same."""
    name, _, key = await with_retry(world, NOON + SECOND)
    world.clock.advance(SECOND)
    world.coordination.lose_everything()
    if led_again:
        await world.take_lease()
    changed = await world.cancel(name)
    assert (changed.was_fired, changed.stopped) == (True, 0)
    assert (await row_of(world, name)).delivery is DeliveryStatus.RETRYING
    await world.take_lease()
    assert await claimed(world, key)
    assert await dispatched(world, key) == "cancelled"


async def test_what_was_not_due_when_redis_lost_everything_is_counted(world: World) -> None:
    """Nobody can have claimed it before."""
    name, _, _ = await with_retry(world)
    world.coordination.lose_everything()
    await world.take_lease()
    world.clock.advance(SECOND)
    assert (await world.cancel(name)).stopped == 1


async def test_what_is_long_overdue_is_not_counted(world: World) -> None:
    """Its entry may have been moved, and claimed where we do not look."""
    name, _, key = await with_retry(world, NOON + 2 * SECOND)
    world.clock.advance(10 * MINUTE)
    assert (await world.cancel(name)).stopped == 0
    assert await claimed(world, key)
    assert await dispatched(world, key) == "cancelled"


async def test_a_retry_of_a_replay_is_left_to_its_time(world: World) -> None:
    """A forced one goes out in spite of a cancel."""
    name, entry, _ = await with_retry(world)
    row = failed(entry, SOON)
    replayed = replace(row.attempts[0], number=2, replay="again")
    row = replace(row, attempts=(*row.attempts, replayed), attempt_count=2)
    with behind_the_scenes():
        await world.store.ledger.write([row], at=world.now + SECOND)
    assert (await world.cancel(name)).stopped == 0
    gate = RecordGate(world.store, world.reminders.changes.finish)
    leg = Leg(
        channel_id="log",
        attempt=3,
        replay=Replay(replay_id="again", asked_at=NOON, after=1, stood="failed", forced=True),
    )
    assert await gate.objection(replace(entry, kind=Kind.RETRY, leg=leg)) is None


async def test_one_that_a_refused_change_left_fired_can_still_be_cancelled(world: World) -> None:
    """The refusal had stopped nothing."""
    name, _, key = await with_retry(world)
    with pytest.raises(AlreadyFired):
        await world.reschedule(name, At(instant=NOON + HOUR))
    assert (await world.stored(name)).record.status is Status.FIRED
    changed = await world.cancel(name)
    assert (changed.was_fired, changed.stopped) == (True, 1)
    assert [(each.was_fired, each.stopped) for each in changed.answers] == [(True, 1)]
    assert changed.view.status is Status.FIRED
    world.clock.move_to(key.ring_at)
    assert await claimed(world, key)
    assert await dispatched(world, key) == "suppressed"


async def test_afterwards_nothing_is_sent_any_more_unless_it_is_forced(world: World) -> None:
    """It is shown as fired, and behaves as cancelled."""
    name, entry, _ = await with_retry(world)
    await world.cancel(name)
    with pytest.raises(AlreadyEnded, match="cancelled"):
        await world.reminders.trigger("ns", name, request_id=None)
    asked = Asked(occurrence_id=entry.occurrence_id)
    with pytest.raises(AlreadyEnded, match="cancelled"):
        await world.reminders.replay("ns", name, asked, request_id=None)
    with pytest.raises(AlreadyFired):
        await world.reschedule(name, At(instant=NOON + HOUR))
    answer = await world.reminders.replay("ns", name, replace(asked, force=True), request_id="f")
    assert isinstance(answer, tuple)
    (forced,) = answer
    assert forced.row.delivery is DeliveryStatus.CANCELLED
    assert (await world.reminders.get("ns", name)).status is Status.FIRED


async def test_what_only_looks_fired_because_of_its_group_is_left_alone(world: World) -> None:
    """The fence stops its retries: nothing is written."""
    name = await world.create(DUE, group_id="g")
    (entry,) = (await world.stored(name)).current
    await world.claim(entry)
    await waits(world, entry, failed(entry, NOON + HOUR))
    with behind_the_scenes():
        await world.store.fences.put("ns", "g", world.now + SECOND)
    world.clock.advance(2 * SECOND)
    changed = await world.cancel(name)
    assert (changed.was_fired, changed.stopped) == (True, 0)
    stored = await world.stored(name)
    assert (stored.record.status, stored.record.version) == (Status.SCHEDULED, 1)


async def test_one_that_never_fired_has_nothing_to_stop(world: World) -> None:
    """A cancel in time is answered as ever."""
    name = await world.create(At(instant=NOON + HOUR))
    changed = await world.cancel(name)
    assert (changed.was_fired, changed.stopped) == (False, 0)
    assert changed.view.status is Status.CANCELLED


async def test_of_a_long_backlog_the_newest_are_counted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number is "at least"; the rest ends at its time."""
    monkeypatch.setattr(stopping, "ROWS", 2)
    monkeypatch.setattr(stopping, "PAGES", 2)
    monkeypatch.setattr(stopping, "ANSWERED", 3)
    name, entry, _ = await with_retry(world, NOON + HOUR)
    rows = []
    assert entry.occurrence is not None
    for number in range(9):
        occurrence = replace(entry.occurrence, occurrence_id=f"20260601T12000{number}Z")
        rows.append(replace(failed(entry, NOON + HOUR), occurrence=occurrence))
    with behind_the_scenes():
        await world.store.ledger.write(rows, at=world.now)
    changed = await world.cancel(name)
    assert changed.stopped == 4
    assert [each.occurrence_id[-2] for each in changed.answers] == ["0", "8", "7", "6"]


async def _points() -> list[str]:
    world = await World.led()
    name, _, _ = await with_retry(world)
    before = len(world.points)
    await world.cancel(name)
    return world.points[before:]


async def _tolerant(world: World, name: str) -> None:
    with suppress(TocsinError):
        await world.cancel(name, request_id="q")


def test_the_key_of_a_waiting_delivery_is_its_entrys() -> None:
    """None where nothing is to come."""
    shards = 4
    occurrence = trigger_occurrence(NOON)
    row = LedgerRow(
        namespace="ns",
        reminder_id="r",
        reminder_version=1,
        occurrence=occurrence,
        channel_id="hook",
        attempt_count=2,
    )
    assert waiting_key(row, shards) is None
    key = waiting_key(replace(row, next_attempt_at=NOON + SECOND), shards)
    assert key is not None
    assert key.entry_id == f"r.{occurrence.occurrence_id}.hook.a3"
    assert key.ring_at == NOON + SECOND
    key = waiting_key(replace(row, next_attempt_at=NOON, parked=2), shards)
    assert key is not None
    assert key.entry_id == f"r.{occurrence.occurrence_id}.hook.a3!2"

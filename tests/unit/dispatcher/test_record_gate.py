"""What may still stop a retry or a parked delivery: the record."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from dispatcher.gate import RecordGate
from reminders.errors import CoordinationUnavailable
from reminders.model.entry import Fate, Kind
from reminders.model.ledger import DeliveryStatus
from reminders.model.record import OccurrenceAnswer, Outcome, Status


async def due_retry(world: Any) -> Any:
    """The first attempt failed; the retry's time has come."""
    entry = await world.reminder()
    world.sender.results = [world.BUSY]
    await world.runner().run(world.job(entry))
    (retry,) = await world.waiting()
    world.clock.move_to(retry.key.ring_at)
    world.sender.sent.clear()
    return retry


def outcome(*, applied: bool, was_fired: bool) -> Outcome:
    """Of the change that made version 2."""
    return Outcome(
        request_id="q",
        action="reschedule",
        content_hash=b"",
        version=2,
        applied=applied,
        answers=(
            OccurrenceAnswer(
                occurrence_id="20261201T090000",
                planned_at=datetime(2026, 12, 1, 9, tzinfo=UTC),
                was_fired=was_fired,
            ),
        ),
    )


@pytest.mark.parametrize("fate", [None, Fate.CLAIMED])
async def test_retries_of_a_cancelled_group_stop_by_themselves(
    world: Any, fate: Fate | None
) -> None:
    """The fence is read, also where the entry was moved; one created after it goes on."""
    retry = await due_retry(world)
    grouped = replace(retry, group_id="g")
    if fate is not None:
        await world.store.due.mark([retry.key], fate, stamp=5)
    await world.store.fences.put("default", "g", retry.record_created_at - timedelta(seconds=1))
    gate = RecordGate(world.store, world.finish)
    assert await gate.objection(grouped) is None
    await world.store.fences.put("default", "g", retry.record_created_at)
    assert await gate.objection(grouped) == "cancelled"
    assert await gate.objection(retry) is None
    await world.runner().run(world.job(grouped))
    assert world.sender.sent == []
    row = await world.row()
    assert (row.delivery, row.reason) == (DeliveryStatus.CANCELLED, "cancelled")


@pytest.mark.parametrize(
    ("status", "reason"), [(Status.CANCELLED, "cancelled"), (Status.PAUSED, "paused")]
)
async def test_retries_of_a_cancelled_or_paused_reminder_stop_by_themselves(
    world: Any, status: Status, reason: str
) -> None:
    """Nobody has to find them; the ledger says why, and keeps the attempts."""
    retry = await due_retry(world)
    await world.change(status=status)
    await world.runner().run(world.job(retry))
    assert world.sender.sent == []
    row = await world.row()
    assert (row.delivery, row.reason) == (DeliveryStatus.CANCELLED, reason)
    assert (row.attempt_count, row.next_attempt_at) == (1, None)
    assert await world.handled(retry)


async def test_a_parked_first_send_of_a_cancelled_reminder_stops_too(world: Any) -> None:
    """It never left, and has a reason on record."""
    entry = await world.reminder()
    parked = replace(world.retry_of(entry, 1, world.AT), kind=Kind.PARKED, parked=1)
    await world.change(status=Status.CANCELLED)
    await world.runner().run(world.job(parked))
    assert world.sender.sent == []
    row = await world.row()
    assert (row.delivery, row.attempts) == (DeliveryStatus.CANCELLED, ())


async def test_an_entry_that_a_change_marked_as_claimed_is_sent(world: Any) -> None:
    """The changer answered "fired" about it, so it rings."""
    retry = await due_retry(world)
    await world.change(status=Status.CANCELLED)
    await world.store.due.mark([retry.key], Fate.CLAIMED, stamp=9)
    await world.runner().run(world.job(retry))
    assert len(world.sender.sent) == 1


@pytest.mark.parametrize(("applied", "was_fired"), [(True, True), (False, True), (False, False)])
async def test_a_newer_version_does_not_stop_what_fired(
    world: Any, applied: bool, was_fired: bool
) -> None:
    """A rule's rung occurrence rings beside the new ones; a refused change changed nothing."""
    retry = await due_retry(world)
    await world.change(outcomes=(outcome(applied=applied, was_fired=was_fired),))
    await world.runner().run(world.job(retry))
    assert len(world.sender.sent) == 1


async def test_what_a_change_answered_not_fired_about_stays_silent(world: Any) -> None:
    """Exactly one of the two times rings."""
    retry = await due_retry(world)
    await world.change(outcomes=(outcome(applied=True, was_fired=False),))
    await world.runner().run(world.job(retry))
    assert world.sender.sent == []
    assert (await world.row()).reason == "rescheduled"


async def test_a_retry_without_a_record_is_an_orphan(world: Any) -> None:
    """Erased, or past its retention."""
    entry = await world.reminder("other")
    retry = replace(world.retry_of(entry, 2, world.AT), reminder_id="gone")
    await world.runner().run(world.job(retry))
    assert world.sender.sent == []
    row = await world.row(reminder_id="gone")
    assert (row.delivery, row.reason) == (DeliveryStatus.CANCELLED, "orphan")


async def test_a_change_met_half_way_is_finished_first(world: Any) -> None:
    """Then its outcome decides."""
    retry = await due_retry(world)
    new, change = await world.begin_change(status=Status.CANCELLED)

    async def hook(name: str) -> None:
        if name == "finish":
            await world.store.records.end(new, change)

    world.on_point = hook
    await world.runner().run(world.job(retry))
    assert world.finished == ["r1"]
    assert world.sender.sent == []
    assert (await world.row()).reason == "cancelled"


async def test_a_confirmed_delivery_is_not_overwritten_by_a_cancel(world: Any) -> None:
    """The ledger's end stands before the record is asked."""
    retry = await due_retry(world)
    await world.runner().run(world.job(retry))
    await world.change(status=Status.CANCELLED)
    world.clock.advance(timedelta(seconds=30))
    await world.runner().run(world.job(retry, deliveries=2))
    assert (await world.row()).delivery is DeliveryStatus.CONFIRMED


async def test_a_record_that_keeps_changing_makes_it_wait(world: Any) -> None:
    """Never sent in between."""
    retry = await due_retry(world)
    await world.begin_change(status=Status.CANCELLED)
    runner = world.runner()
    with pytest.raises(CoordinationUnavailable):
        await runner.jobs._legs._gate.objection(retry)

"""What was asked for beside the schedule: backfills, page by page, and triggers in a pause."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from dispatcher.gate import RecordGate
from dispatcher.retry import refusal
from reminders.model.codec import decode_body, encode
from reminders.model.definition import Retry
from reminders.model.entry import DueEntry, Kind, Leg, Origin
from reminders.model.ledger import DeliveryStatus, OccurrenceStatus
from reminders.model.record import Status


async def backfilled(world: Any, **made: Any) -> DueEntry:
    """The entry of an occurrence that rings a day late."""
    entry: DueEntry = await world.reminder(recurs=True, **made)
    assert entry.occurrence is not None
    world.clock.advance(timedelta(days=1))
    return replace(
        entry,
        kind=Kind.BACKFILLED,
        key=replace(entry.key, ring_at=world.clock.now(), entry_id=f"{entry.key.entry_id}.b"),
        occurrence=replace(entry.occurrence, origin=Origin.BACKFILL),
        recurs=False,
        next_at=None,
    )


async def test_a_page_is_turned_and_handled(world: Any) -> None:
    """Nothing is sent, and nothing is in the ledger."""
    entry = await world.reminder()
    page = replace(entry, kind=Kind.BACKFILL, occurrence=None, body=b"page")
    await world.store.due.put([page], stamp=1)
    await world.runner().run(world.job(page))
    assert world.turned == [page]
    assert world.sender.sent == []
    assert await world.handled(page)


async def test_a_first_send_long_after_its_time_is_attempt_one(world: Any) -> None:
    """It is in the ledger as backfilled, under the key that it always had."""
    entry = await backfilled(world)
    await world.runner().run(world.job(entry))
    row = await world.row()
    assert (row.delivery, row.attempt_count) == (DeliveryStatus.CONFIRMED, 1)
    assert row.occurrence.origin is Origin.BACKFILL
    assert world.sender.sent[0].delivery_key == row.delivery_key


async def test_what_the_ledger_knows_is_not_sent_again(world: Any) -> None:
    """Whatever Redis has forgotten."""
    entry = await backfilled(world)
    ordinary = replace(entry, kind=Kind.OCCURRENCE)
    await world.runner().run(world.job(ordinary))
    await world.runner().run(world.job(entry))
    assert len(world.sender.sent) == 1


@pytest.mark.parametrize(
    "change", [{}, {"status": Status.CANCELLED}, {"status": Status.PAUSED}, {"stamp": 9}]
)
async def test_any_change_ends_it_and_leaves_no_row(world: Any, change: dict[str, Any]) -> None:
    """Another backfill may ring it."""
    entry = await backfilled(world)
    await world.change(**change)
    await world.runner().run(world.job(entry))
    assert world.sender.sent == []
    assert await world.row() is None


async def test_once_tried_a_change_does_not_make_it_forgotten(world: Any) -> None:
    """Its retry stops as others do: by a cancel, on record; not by another change."""
    entry = await backfilled(world)
    world.sender.results = [world.BUSY]
    await world.runner().run(replace(world.job(entry), claimed_at=world.clock.now()))
    (retry,) = [e for e in await world.waiting(hours=30) if e.kind is Kind.RETRY]
    gate = RecordGate(world.store, world.finish)
    await world.change(stamp=9)
    assert await gate.objection(retry) is None
    parked = replace(retry, kind=Kind.PARKED, leg=Leg(channel_id="hook", attempt=1))
    assert await gate.objection(parked) == "outdated"


async def test_a_large_body_comes_from_the_record(world: Any) -> None:
    """Its live entry is gone; the definition is what the body was made of."""
    entry = await backfilled(world, params_json='{"big":1}')
    await world.runner().run(world.job(replace(entry, body=b"")))
    assert [sent.params_json for sent in world.sender.sent] == ['{"big":1}']
    gone = replace(entry, reminder_id="r-gone", body=b"")
    await world.runner().run(world.job(gone))
    assert len(world.sender.sent) == 1


async def test_the_age_of_a_backfilled_one_counts_from_its_claim(world: Any) -> None:
    """By its own time no retry would ever be made."""
    entry = await backfilled(world)
    body = replace(decode_body(entry.body), retry=Retry(max_age=timedelta(hours=1)))
    now = world.clock.now()
    assert entry.occurrence is not None
    refused = refusal(body, entry.occurrence, 1, now, claimed_at=now - timedelta(minutes=59))
    assert refused is None
    refused = refusal(body, entry.occurrence, 1, now, claimed_at=now - timedelta(minutes=61))
    assert refused == "max_age"
    ordinary = replace(entry.occurrence, origin=Origin.SCHEDULE)
    assert refusal(body, ordinary, 1, now, claimed_at=now) == "max_age"


async def test_a_trigger_in_a_pause_is_tried_again_and_one_from_before_it_is_not(
    world: Any,
) -> None:
    """The pause came first and knew what it allowed."""
    entry = await world.reminder()
    await world.change(status=Status.PAUSED)
    gate = RecordGate(world.store, world.finish)
    triggered = replace(entry.occurrence, origin=Origin.TRIGGER)
    retry = replace(world.retry_of(entry, 2, world.AT), occurrence=triggered)
    assert await gate.objection(replace(retry, version=2)) is None
    assert await gate.objection(retry) == "paused"
    assert await gate.objection(world.retry_of(entry, 2, world.AT)) == "paused"


async def test_a_body_that_is_missing_is_on_record(world: Any) -> None:
    """Of a trigger as of any occurrence."""
    entry = world.without_body(await world.reminder())
    trigger = replace(entry, occurrence=replace(entry.occurrence, origin=Origin.TRIGGER))
    await world.runner().run(world.job(trigger))
    row = await world.row("")
    assert (row.ended, row.reason) == (OccurrenceStatus.FAILED, "body_missing")
    assert encode(trigger.occurrence) == encode(row.occurrence)

"""What found no place is on record while it waits: a cancel and people find it there."""

from typing import Any

from msgspec.structs import replace

from dispatcher.requeue import Requeue
from dispatcher.work import LegWork, Work
from reminders.errors import StoreUnavailable
from reminders.lifecycle.stopping import waiting_key
from reminders.model.codec import decode_body
from reminders.model.entry import DueEntry, Kind, Origin
from reminders.model.ledger import DeliveryStatus


def leg_of(world: Any, entry: DueEntry, *, deliveries: int = 1) -> LegWork:
    """Its only one."""
    body = decode_body(entry.body)
    assert entry.occurrence is not None
    work = Work(
        job=world.job(entry, deliveries=deliveries),
        entry=entry,
        occurrence=entry.occurrence,
        raw_body=entry.body,
        body=body,
    )
    attempt = entry.leg.attempt if entry.leg is not None else 1
    return LegWork(work=work, channel=body.channels[0], target="", attempt=attempt)


async def parked(world: Any) -> DueEntry:
    """The newest parked entry."""
    found: list[DueEntry] = [e for e in await world.waiting() if e.kind is Kind.PARKED]
    return max(found, key=lambda each: each.parked)


async def test_a_first_send_is_pending_until_its_new_time(world: Any) -> None:
    """The row leads to the entry; parked again, to the newer one."""
    entry = await world.reminder()
    requeue = Requeue(world.platform, world.settings)
    for counter in (1, 2):
        await requeue.park(leg_of(world, entry))
        row = await world.row()
        assert (row.delivery, row.attempt_count) == (DeliveryStatus.PENDING, 0)
        entry = await parked(world)
        assert (row.parked, entry.parked) == (counter, counter)
        key = waiting_key(row, world.platform.limits.shards)
        assert key is not None
        assert (key.ring_at, key.entry_id) == (entry.key.ring_at, entry.key.entry_id)
        world.clock.move_to(entry.key.ring_at)


async def test_its_attempt_ends_the_waiting(world: Any) -> None:
    """Delivered: no time is on record any more."""
    entry = await world.reminder()
    await Requeue(world.platform, world.settings).park(leg_of(world, entry))
    entry = await parked(world)
    world.clock.move_to(entry.key.ring_at)
    await world.runner().run(world.job(entry))
    row = await world.row()
    assert (row.delivery, row.attempt_count) == (DeliveryStatus.CONFIRMED, 1)
    assert (row.next_attempt_at, row.parked) == (None, 0)


async def test_a_retry_keeps_its_attempts(world: Any) -> None:
    """And is retrying, as before."""
    entry = await world.reminder()
    world.sender.results = [world.BUSY]
    await world.runner().run(world.job(entry))
    (retry,) = await world.waiting()
    world.clock.move_to(retry.key.ring_at)
    await Requeue(world.platform, world.settings).park(leg_of(world, retry))
    row = await world.row()
    assert (row.delivery, row.attempt_count) == (DeliveryStatus.RETRYING, 1)
    assert (row.next_attempt_at, row.parked) == ((await parked(world)).key.ring_at, 1)


async def test_a_redelivered_job_does_not_queue_what_is_parked_already(world: Any) -> None:
    """Two entries for one attempt might send it twice."""
    entry = await world.reminder()
    world.sender.results = [world.BUSY]
    await world.runner().run(world.job(entry))
    (retry,) = await world.waiting()
    world.clock.move_to(retry.key.ring_at)
    await Requeue(world.platform, world.settings).park(leg_of(world, retry))
    before = await world.waiting()
    await world.runner().run(world.job(entry, deliveries=2))
    assert await world.waiting() == before


async def test_what_has_ended_or_is_under_way_is_not_touched(world: Any) -> None:
    """A job that is given again finds what another has done."""
    entry = await world.reminder()
    await world.runner().run(world.job(entry))
    before = await world.row()
    world.clock.advance(world.settings.park_for)
    await Requeue(world.platform, world.settings).park(leg_of(world, entry, deliveries=2))
    assert await world.row() == before


async def test_a_backfilled_one_leaves_no_trace(world: Any) -> None:
    """Another backfill may ring it, if this one is ended unsent."""
    entry = await world.reminder()
    entry = replace(
        entry,
        kind=Kind.BACKFILLED,
        occurrence=replace(entry.occurrence, origin=Origin.BACKFILL),
    )
    await Requeue(world.platform, world.settings).park(leg_of(world, entry))
    assert await world.row() is None


async def test_a_ledger_that_does_not_answer_does_not_keep_it_from_being_parked(
    world: Any,
) -> None:
    """The entry is what counts."""
    entry = await world.reminder()

    async def hook(name: str) -> None:
        if name.startswith("ledger"):
            raise StoreUnavailable(operation=name)

    world.on_point = hook
    await Requeue(world.platform, world.settings).park(leg_of(world, entry))
    world.on_point = None
    assert (await parked(world)).parked == 1
    assert await world.row() is None

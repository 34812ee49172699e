"""How deliveries end, channel by channel, and what other entries and bodies do."""

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from reminders.model.definition import Retry
from reminders.model.entry import Kind
from reminders.model.ledger import DeliveryStatus, OccurrenceStatus


async def test_each_channel_is_delivered_and_retried_by_itself(world: Any) -> None:
    """One is confirmed, the other comes back alone."""
    entry = await world.reminder(channels=("a", "b"))

    async def answer(outgoing: Any) -> None:
        world.sender.results = [world.BUSY if outgoing.channel.channel_id == "b" else world.OK]

    world.sender.on_send = answer
    await world.runner().run(world.job(entry))
    assert (await world.row("a")).delivery is DeliveryStatus.CONFIRMED
    assert (await world.row("b")).delivery is DeliveryStatus.RETRYING
    (retry,) = await world.waiting()
    assert retry.leg.channel_id == "b"
    assert len({s.delivery_key for s in world.sender.sent}) == 2


async def test_a_bug_in_a_channel_leaves_the_outcome_unknown(world: Any) -> None:
    """It may have been sent. It is logged, retried and at last given up like any failure."""
    entry = await world.reminder()

    async def fail(_outgoing: Any) -> None:
        raise ZeroDivisionError

    world.sender.on_send = fail
    await world.runner().run(world.job(entry))
    row = await world.row()
    assert (row.delivery, row.attempts[0].error_class) == (DeliveryStatus.RETRYING, "internal")
    assert row.attempts[0].outcome_unknown


async def test_a_channel_that_this_process_lacks_fails_for_good(world: Any) -> None:
    """An operator's mistake is visible at once, and can be replayed."""
    entry = await world.reminder()
    runner = world.runner()
    runner.jobs._legs._senders = {}
    await runner.run(world.job(entry))
    row = await world.row()
    assert (row.delivery, row.reason) == (DeliveryStatus.FAILED, "channel_unavailable")


async def test_a_permanent_failure_is_final_and_names_its_class(world: Any) -> None:
    """No retry; the reason is the error class."""
    entry = await world.reminder()
    world.sender.results = [world.GONE]
    await world.runner().run(world.job(entry))
    row = await world.row()
    assert (row.delivery, row.reason) == (DeliveryStatus.FAILED, "http_410")
    assert await world.waiting() == []


async def test_the_last_attempt_ends_in_failed(world: Any) -> None:
    """Attempts are bounded."""
    entry = await world.reminder(retry=Retry(max_attempts=2))
    world.sender.results = [world.BUSY, world.BUSY]
    await world.runner().run(world.job(entry))
    (retry,) = await world.waiting()
    world.clock.move_to(retry.key.ring_at)
    await world.runner().run(world.job(retry))
    row = await world.row()
    assert (row.delivery, row.reason) == (DeliveryStatus.FAILED, "attempts_exhausted")
    assert await world.waiting() == []


async def test_a_retry_that_would_come_too_late_is_not_made(world: Any) -> None:
    """Known at once: the asked-for time lies behind `retry.max_age`."""
    entry = await world.reminder(retry=Retry(max_age=timedelta(minutes=1)))
    world.sender.results = [replace(world.BUSY, retry_after=timedelta(minutes=2))]
    await world.runner().run(world.job(entry))
    row = await world.row()
    assert (row.delivery, row.reason) == (DeliveryStatus.FAILED, "max_age")


async def test_a_retry_that_rang_too_late_is_not_sent(world: Any) -> None:
    """After a long outage."""
    entry = await world.reminder(retry=Retry(max_age=timedelta(minutes=1)))
    world.sender.results = [world.BUSY]
    await world.runner().run(world.job(entry))
    (retry,) = await world.waiting()
    world.clock.advance(timedelta(minutes=2))
    await world.runner().run(world.job(retry))
    row = await world.row()
    assert (row.delivery, row.reason) == (DeliveryStatus.FAILED, "max_age")
    assert len(world.sender.sent) == 1


async def test_an_expired_one_shot_is_not_sent(world: Any) -> None:
    """Three days by default; the ledger says why."""
    entry = await world.reminder()
    world.clock.advance(timedelta(days=3, milliseconds=1))
    await world.runner().run(world.job(entry))
    row = await world.row()
    assert (row.delivery, row.reason) == (DeliveryStatus.EXPIRED, "expired")
    assert world.sender.sent == []
    assert await world.handled(entry)


async def test_a_late_one_shot_still_rings(world: Any) -> None:
    """Up to its expiry, whatever bounds its retries."""
    entry = await world.reminder(retry=Retry(max_age=timedelta(minutes=1)))
    world.clock.advance(timedelta(days=2))
    await world.runner().run(world.job(entry))
    assert (await world.row()).delivery is DeliveryStatus.CONFIRMED


async def test_finish_completes_the_change_and_is_handled(world: Any) -> None:
    """Whatever stopped half-way."""
    entry = await world.reminder()
    key = replace(entry.key, entry_id="r1.finish.v2")
    finish = replace(entry, key=key, kind=Kind.FINISH, occurrence=None, body=b"")
    await world.store.due.put([finish], stamp=1)
    await world.runner().run(world.job(finish, deliveries=9))
    assert world.finished == ["r1"]
    assert await world.handled(finish)
    assert world.sender.sent == []


async def test_a_large_body_is_fetched_and_its_retry_carries_it(world: Any) -> None:
    """The live entry may be gone when the retry rings."""
    entry = await world.reminder(params_json='{"a":"' + "x" * 5000 + '"}')
    state = await world.store.due.read(entry.key)
    assert state.entry.body == b""
    world.sender.results = [world.BUSY]
    await world.runner().run(world.job(state.entry))
    assert len(world.sender.sent[0].params_json) > 5000
    retry = next(each for each in await world.waiting() if each.kind is Kind.RETRY)
    assert retry.body == entry.body


async def test_a_body_that_is_gone_with_its_record_is_an_orphan(world: Any) -> None:
    """The create was never acknowledged: closed without a word."""
    entry = replace(await world.reminder("other"), reminder_id="r1", body=b"")
    await world.runner().run(world.job(entry))
    assert world.sender.sent == []
    assert await world.row("") is None


async def test_a_body_that_is_gone_alone_is_a_recorded_failure(world: Any) -> None:
    """Something is broken: it must not vanish silently."""
    entry = await world.reminder()
    gone = replace(entry, key=replace(entry.key, entry_id="r1.gone"), body=b"")
    await world.runner().run(world.job(gone))
    row = await world.row("")
    assert (row.ended, row.reason) == (OccurrenceStatus.FAILED, "body_missing")

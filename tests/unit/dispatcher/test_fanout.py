"""A topic's reminder reaches every subscriber once, and its row says how far it has come."""

import asyncio
from collections import Counter
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from dispatcher.channels.port import Destination
from dispatcher.poison import Poison
from dispatcher.room import PAGES
from dispatcher.standing import Terms
from reminders.lifecycle.endings import ended_row
from reminders.lifecycle.fanning import tally_entry
from reminders.model.definition import Channel, Email
from reminders.model.entry import Kind, Origin
from reminders.model.fanout import TargetCounts
from reminders.model.ledger import DeliveryStatus, OccurrenceStatus
from reminders.model.record import Status
from reminders.model.subscriber import bucket_of
from tests.unit.dispatcher.topics import (
    TOPIC,
    due,
    fan_out,
    occurrence_row,
    rows_of,
    subscribed,
    subscriber,
    topic_entry,
)

SECOND = timedelta(seconds=1)


def told(world: Any) -> Counter[str]:
    """How often each subscriber was sent something."""
    return Counter(sent.subscriber.subscriber_id for sent in world.sender.sent)


async def test_every_subscriber_is_told_once(world: Any) -> None:
    """Under a key of its own; the occurrence keeps one row, which counts them."""
    names = await subscribed(world, 8_000)
    entry = await topic_entry(world)
    await fan_out(world, entry)
    assert told(world) == Counter(names)
    assert len({sent.delivery_key for sent in world.sender.sent}) == 8_000
    rows = await rows_of(world)
    assert {row.delivery for row in rows.values()} == {DeliveryStatus.CONFIRMED}
    assert {row.delivery_key for row in rows.values()} == {
        sent.delivery_key for sent in world.sender.sent
    }
    assert await world.handled(entry)
    (row,) = await world.store.ledger.page("r1", limit=100)
    assert row.fanout.finished
    assert row.fanout.subscribers == 8_000
    assert row.fanout.counts == TargetCounts(taken=8_000)
    assert row.claimed_at == world.AT


async def test_paused_and_filtered_subscribers_are_left_out_and_counted(world: Any) -> None:
    """The filter looks at the reminder's labels."""
    names = await subscribed(world, 10)
    fits = subscriber(world, "fits", filter={"team": "a"})
    other = subscriber(world, "other", filter={"team": "b"})
    paused = subscriber(world, "paused")
    await world.store.subscribers.put([fits, other, paused])
    await world.store.subscribers.pause(paused, paused=True, stamp=2)
    await fan_out(world, await topic_entry(world, labels=(("team", "a"), ("x", "y"))))
    assert told(world) == Counter([*names, "fits"])
    row = await occurrence_row(world)
    assert (row.fanout.paused, row.fanout.filtered) == (1, 1)
    assert row.fanout.counts == TargetCounts(taken=11)
    assert row.fanout.finished


async def test_nobody_there_is_on_record(world: Any) -> None:
    """A topic without subscribers: skipped, with the reason."""
    await fan_out(world, await topic_entry(world))
    row = await occurrence_row(world)
    assert (row.ended, row.reason) == (OccurrenceStatus.SKIPPED, "no_subscribers")


async def test_a_test_send_goes_to_one_whatever_its_filter_and_pause(world: Any) -> None:
    """And says that it is one."""
    await subscribed(world, 50)
    one = subscriber(world, "one", filter={"team": "b"})
    await world.store.subscribers.put([one])
    await world.store.subscribers.pause(one, paused=True, stamp=2)
    await fan_out(world, await topic_entry(world, only_subscriber="one"))
    (sent,) = world.sender.sent
    assert (sent.subscriber.subscriber_id, sent.test) == ("one", True)
    row = await occurrence_row(world)
    assert row.fanout.finished
    assert row.fanout.counts == TargetCounts(taken=1)


async def test_a_test_send_to_nobody_says_so(world: Any) -> None:
    """Whom it was for is gone."""
    await subscribed(world, 50)
    await fan_out(world, await topic_entry(world, only_subscriber="one"))
    assert world.sender.sent == []
    row = await occurrence_row(world)
    assert (row.ended, row.reason) == (OccurrenceStatus.SKIPPED, "unsubscribed")


async def test_a_failed_one_is_tried_again_by_itself(world: Any) -> None:
    """At the endpoint that the subscriber has by then; the others are not sent again."""
    await subscribed(world, 30)
    entry = await topic_entry(world)

    async def fails(outgoing: Any) -> None:
        if outgoing.subscriber.subscriber_id == "s000007":
            world.sender.results.insert(0, world.BUSY)

    world.sender.on_send = fails
    await fan_out(world, entry, until=SECOND)
    world.sender.on_send = None
    row = await occurrence_row(world)
    assert row.fanout.counts == TargetCounts(taken=29, open=1)
    assert not row.fanout.finished
    moved = subscriber(world, "s000007", stamp=5)
    moved = replace(
        moved,
        channel=replace(
            moved.channel, target=replace(moved.channel.target, url="https://elsewhere/")
        ),
    )
    await world.store.subscribers.put([moved])
    (retry,) = [each for each in await world.waiting() if each.kind is Kind.RETRY]
    assert retry.page is None
    world.clock.move_to(retry.key.ring_at)
    await world.runner().run(world.job(retry))
    first, second = [s for s in world.sender.sent if s.subscriber.subscriber_id == "s000007"]
    assert first.delivery_key == second.delivery_key
    assert second.channel.target.url == "https://elsewhere/"
    assert second.attempt == 2
    assert len(world.sender.sent) == 31
    await counted_to_the_end(world)
    row = await occurrence_row(world)
    assert row.fanout.finished
    assert row.fanout.counts == TargetCounts(taken=30)


async def counted_to_the_end(world: Any) -> None:
    """Rings the tallies that are still to come."""
    for _ in range(100):
        tallies = [each for each in await world.waiting() if each.kind is Kind.TALLY]
        if not tallies:
            return
        world.clock.move_to(max(world.clock.now(), tallies[0].key.ring_at))
        await world.runner().run(world.job(tallies[0]))
    raise AssertionError("it is counted for ever")


async def test_a_retry_keeps_its_key_when_the_endpoint_becomes_another_kind(world: Any) -> None:
    """The channel id of the first attempt is part of the key, and of its row."""
    (name,) = await subscribed(world, 1)
    world.sender.results = [world.BUSY]
    await fan_out(world, await topic_entry(world), until=SECOND)
    to = Channel(channel_id="email", target=Email(to="a@example.com"))
    await world.store.subscribers.put([replace(subscriber(world, name, stamp=5), channel=to)])
    (retry,) = [each for each in await world.waiting() if each.kind is Kind.RETRY]
    world.clock.move_to(retry.key.ring_at)
    await world.runner().run(world.job(retry))
    (row,) = (await rows_of(world)).values()
    assert row.channel_id == "webhook"
    assert row.attempt_count == 2
    assert isinstance(world.sender.sent[1].channel.target, Email)


async def test_who_was_removed_or_paused_meanwhile_gets_nothing_more(world: Any) -> None:
    """A retry that waits ends, with the reason."""
    names = await subscribed(world, 2)
    world.sender.results = [world.BUSY, world.BUSY]
    await fan_out(world, await topic_entry(world), until=SECOND)
    await world.store.subscribers.delete("default", TOPIC, names[0], stamp=9)
    await world.store.subscribers.pause(subscriber(world, names[1]), paused=True, stamp=9)
    for retry in [each for each in await world.waiting() if each.kind is Kind.RETRY]:
        world.clock.move_to(max(world.clock.now(), retry.key.ring_at))
        await world.runner().run(world.job(retry))
    assert len(world.sender.sent) == 2
    rows = await rows_of(world)
    assert {name: (row.delivery, row.reason) for name, row in rows.items()} == {
        names[0]: (DeliveryStatus.CANCELLED, "unsubscribed"),
        names[1]: (DeliveryStatus.CANCELLED, "subscriber_paused"),
    }


async def test_a_cancel_stops_the_pages_that_have_not_begun(world: Any) -> None:
    """And the row says so: what was sent stays sent."""
    await subscribed(world, 8_000)
    entry = await topic_entry(world)
    await world.runner().run(world.job(entry))
    pages = [each for each in await world.waiting() if each.kind is Kind.FANOUT]
    assert len(pages) == 16
    await world.runner().run(world.job(pages[0]))
    sent = len(world.sender.sent)
    assert sent == 200
    await world.change(status=Status.CANCELLED)
    await fan_out(world, pages[1])
    assert len(world.sender.sent) == sent
    row = await occurrence_row(world)
    assert row.fanout.finished
    assert row.fanout.why == "cancelled"
    assert row.fanout.counts == TargetCounts(taken=200)


async def test_a_cancelled_group_stops_them_as_well(world: Any) -> None:
    """By its fence."""
    await subscribed(world, 500)
    entry = replace(await topic_entry(world), group_id="g")
    await world.runner().run(world.job(entry))
    await world.store.fences.put("default", "g", world.clock.now())
    await fan_out(world, entry)
    assert world.sender.sent == []
    row = await occurrence_row(world)
    assert (row.ended, row.reason) == (OccurrenceStatus.CANCELLED, "cancelled")


async def test_what_is_too_late_is_not_begun(world: Any) -> None:
    """`expire_after` of a one-shot."""
    await subscribed(world, 5)
    entry = await topic_entry(world, expire_after=timedelta(minutes=1))
    world.clock.advance(timedelta(minutes=2))
    await world.runner().run(world.job(entry))
    assert await due(world, timedelta(hours=1)) == []
    row = await occurrence_row(world)
    assert (row.ended, row.reason) == (OccurrenceStatus.EXPIRED, "expired")


async def test_pages_that_come_too_late_end_the_fan_out(world: Any) -> None:
    """It expired while it ran."""
    await subscribed(world, 5_000)
    entry = await topic_entry(world, expire_after=timedelta(minutes=1))
    await world.runner().run(world.job(entry))
    world.clock.advance(timedelta(minutes=2))
    await fan_out(world, entry, until=timedelta(minutes=5))
    assert world.sender.sent == []
    row = await occurrence_row(world)
    assert (row.ended, row.reason) == (OccurrenceStatus.EXPIRED, "expired")


async def test_the_next_page_is_written_before_the_first_send(world: Any) -> None:
    """A page whose receivers hang delays nobody."""
    await subscribed(world, 8_000)
    await world.runner().run(world.job(await topic_entry(world)))
    page = next(each for each in await world.waiting() if each.kind is Kind.FANOUT)
    seen: list[int] = []

    async def look(_outgoing: Any) -> None:
        if not seen:
            names = [each.key.entry_id for each in await world.waiting()]
            seen.append(names.count(page.key.entry_id.removesuffix(".1") + ".2"))

    world.sender.on_send = look
    await world.runner().run(world.job(page))
    assert seen == [1]


async def test_no_place_in_time_makes_an_entry_of_its_own(worlds: Any) -> None:
    """The page is handled, and the fan-out has not ended before these have."""
    world = worlds(terms=Terms(places=1), max_wait=timedelta(0))
    everybody = [
        replace(
            one, channel=replace(one.channel, target=replace(one.channel.target, url="https://a/"))
        )
        for one in (subscriber(world, f"s{n}") for n in range(6))
    ]
    await world.store.subscribers.put(everybody)

    busy = world.runner()
    assert await busy.jobs._legs._destinations.enter(Destination(name="https://a/"))
    world.clock.advance(SECOND)
    entry = await topic_entry(world)
    await fan_out(
        world,
        entry,
        until=timedelta(seconds=2),
        runner=lambda each: busy.run(world.job(each)),
    )
    assert world.sender.sent == []
    parked = [each for each in await world.waiting() if each.kind is Kind.PARKED]
    assert len(parked) == 6
    row = await occurrence_row(world)
    assert not row.fanout.finished
    assert row.fanout.counts.open == len(parked)
    for each in parked:
        world.clock.move_to(max(world.clock.now(), each.key.ring_at))
        await world.runner().run(world.job(each))
    assert told(world) == Counter(one.subscriber_id for one in everybody)
    await counted_to_the_end(world)
    row = await occurrence_row(world)
    assert row.fanout.counts == TargetCounts(taken=6)


async def test_a_page_that_finds_no_room_in_time_comes_back_later(world: Any) -> None:
    """It must not hold its minute's watermark, nor a place among the jobs, for long."""
    await subscribed(world, 400)
    await world.runner().run(world.job(await topic_entry(world)))
    page = next(each for each in await world.waiting() if each.kind is Kind.FANOUT)
    busy = world.runner()
    room = busy.jobs._fanouts._room
    for _ in range(PAGES):
        assert await room.take_page()
    turning = asyncio.create_task(busy.run(world.job(page)))
    await world.clock.run_until(world.AT + 5 * SECOND)
    await turning
    assert world.sender.sent == []
    assert await world.handled(page)
    (later,) = [each for each in await world.waiting() if each.parked]
    assert later.key.entry_id == f"{page.key.entry_id}!1"
    assert (later.kind, later.page, later.body) == (page.kind, page.page, page.body)
    assert later.dedupe_id != page.dedupe_id
    room.give_page()
    world.clock.move_to(later.key.ring_at)
    await busy.run(world.job(later))
    assert world.sender.sent


async def test_a_bug_in_one_leg_leaves_the_others_on_record(world: Any) -> None:
    """The page raises when all have ended; given up, what has no row has failed."""
    names = await subscribed(world, 40)
    await world.runner().run(world.job(await topic_entry(world)))
    pages = [each for each in await world.waiting() if each.kind is Kind.FANOUT]
    page = max(pages, key=lambda each: sum(bucket_of(n) == each.page.bucket for n in names))
    mine = [name for name in names if bucket_of(name) == page.page.bucket]
    assert len(mine) > 2
    runner = world.runner()
    run = runner.jobs._fanouts._legs.run

    async def broken(leg: Any) -> Any:
        if leg.target == mine[1]:
            raise RuntimeError("a bug")
        return await run(leg)

    runner.jobs._fanouts._legs.run = broken
    with pytest.raises(RuntimeError, match="a bug"):
        await runner.run(world.job(page))
    assert set(await rows_of(world)) == {*mine} - {mine[1]}
    assert not await world.handled(page)
    poison = Poison(world.platform, world.settings, runner.jobs._fanouts, 3)
    await poison.give_up(world.job(page))
    rows = await rows_of(world)
    assert (rows[mine[1]].delivery, rows[mine[1]].reason) == (DeliveryStatus.FAILED, "poison")
    assert await world.handled(page)
    row = await occurrence_row(world)
    assert row.fanout is not None, "the occurrence's own row is left alone"
    (count,) = await world.store.fanouts.pages("r1", row.occurrence.occurrence_id)
    assert count.counts == TargetCounts(taken=len(mine) - 1, failed=1)


async def test_of_two_tallies_one_goes_on(world: Any) -> None:
    """A crash leaves two chains of them: the one that finds a later time in the row ends."""
    await subscribed(world, 10)
    world.sender.results = [world.BUSY]
    await fan_out(world, await topic_entry(world), until=SECOND)
    (tally,) = [each for each in await world.waiting() if each.kind is Kind.TALLY]
    twin = tally_entry(tally, tally.key.ring_at + timedelta(milliseconds=7))
    await world.store.due.put([twin], stamp=1)
    for each in (tally, twin):
        world.clock.move_to(max(world.clock.now(), each.key.ring_at))
        await world.runner().run(world.job(each))
    left = [each for each in await world.waiting() if each.kind is Kind.TALLY]
    assert len(left) == 1
    row = await occurrence_row(world)
    assert row.fanout.next_at == left[0].key.ring_at


async def test_counts_come_less_and_less_often(world: Any) -> None:
    """While one delivery is tried for a day: a 20th of the time that has passed, at most ten
    minutes.
    """
    await subscribed(world, 3)
    world.sender.results = [world.BUSY]
    entry = await topic_entry(world)
    await fan_out(world, entry, until=SECOND)
    times = [await next_count(world)]
    for _ in range(250):
        (tally,) = [each for each in await world.waiting(hours=20) if each.kind is Kind.TALLY]
        if tally.key.ring_at > world.AT + timedelta(hours=15):
            break
        world.clock.move_to(tally.key.ring_at)
        await world.runner().run(world.job(tally))
        times.append(await next_count(world))
    waits = [later - earlier for earlier, later in pairwise(times)]
    assert waits[0] == SECOND
    assert waits == sorted(waits)
    assert max(waits) == timedelta(minutes=10)
    assert len(times) < 250


async def next_count(world: Any) -> Any:
    """When the row says that it is counted again."""
    row = await occurrence_row(world)
    return row.fanout.next_at


async def test_what_was_skipped_may_be_backfilled(world: Any) -> None:
    """The run of skipped ones that begins with it stays on record."""
    names = await subscribed(world, 20)
    entry = await topic_entry(world)
    assert entry.occurrence is not None
    occurrence = replace(entry.occurrence, origin=Origin.BACKFILL)
    entry = replace(entry, kind=Kind.BACKFILLED, occurrence=occurrence)
    skipped = ended_row(entry, occurrence, OccurrenceStatus.SKIPPED, "superseded")
    skipped = replace(skipped, skipped_through=occurrence, skipped_count=3)
    await world.store.ledger.write([skipped], at=world.AT - SECOND)
    await fan_out(world, entry)
    assert told(world) == Counter(names)
    row = await occurrence_row(world)
    assert row.ended is None
    assert row.fanout.finished
    assert row.skipped_count == 3
    await world.runner().run(world.job(entry, recheck=True))
    assert await due(world, timedelta(hours=1)) == [], "it does not begin anew"

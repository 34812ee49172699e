"""A topic's reminder from its create to its counts, replay and end, with all services at work."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from dispatcher import room, stretch
from dispatcher.channels.port import Outcome, Outgoing, Result
from dispatcher.service import Dispatcher
from dispatcher.settings import DispatcherSettings
from reminders.errors import InvalidRequest
from reminders.lifecycle import CreateRequest
from reminders.lifecycle.replaying import Asked, Verdict
from reminders.lifecycle.replaying_targets import ReplayedAll
from reminders.lifecycle.requests import OccurrenceView
from reminders.lifecycle.targets import Wanted, ends_about
from reminders.model.definition import At, Channel, Log
from reminders.model.entry import Kind
from reminders.model.fanout import Fanout, TargetCounts
from reminders.model.ledger import DeliveryStatus, LedgerRow, OccurrenceStatus
from reminders.model.subscriber import Subscriber
from tests.unit.lifecycle.world import MINUTE, NOON, SECOND, World, created, definition, running
from tests.unit.scanner.harness import scanner_of
from tests.unit.whole.harness import OK, Receiver, everything

GONE = Result(outcome=Outcome.PERMANENT, status_code=410, error_class="http_410")
TOPIC = "deploys"


@pytest.fixture
def world() -> World:
    """At noon."""
    return World(shards=2)


async def subscribe(world: World, count: int, **more: Any) -> list[str]:
    """So many; their ids."""
    everybody = [
        Subscriber(
            namespace="ns",
            topic_id=TOPIC,
            subscriber_id=f"s{n:05}",
            channel=Channel(channel_id="log", target=Log()),
            created_at=world.now,
            updated_at=world.now,
            stamp=1,
            **more,
        )
        for n in range(count)
    ]
    await world.store.subscribers.put(everybody)
    return [each.subscriber_id for each in everybody]


async def announce(world: World, **changes: Any) -> str:
    """A reminder for the topic, in a minute; its id."""
    made = definition(At(instant=NOON + MINUTE), **changes)
    made = replace(made, user_id="", channels=(), topic_id=TOPIC)
    (result,) = await world.reminders.create([CreateRequest(namespace="ns", definition=made)])
    return created(result).view.record.reminder_id


async def run(world: World, until: timedelta) -> None:
    """Until so long after noon."""
    await world.clock.run_until(NOON + until)


async def the_occurrence(world: World, name: str) -> tuple[OccurrenceView, Fanout]:
    """As a list of occurrences shows it."""
    page = await world.reminders.occurrences("ns", name, limit=10, token="")
    (one,) = page.items
    assert one.fanout is not None
    return one, one.fanout


def who(receiver: Receiver) -> Counter[str]:
    """How often each was told."""
    return Counter(one.subscriber.subscriber_id for one in receiver.attempts if one.subscriber)


async def test_it_reaches_everybody_once_and_is_counted(world: World) -> None:
    """All by due entries: pages by scanners, counts by tallies."""
    names = await subscribe(world, 1_000)
    name = await announce(world)
    async with everything(world) as receiver:
        await run(world, MINUTE + 3 * SECOND)
        assert who(receiver) == Counter(names)
        one, fanout = await the_occurrence(world, name)
    assert one.status is OccurrenceStatus.COMPLETED
    assert one.target_count == 1_000
    assert fanout.finished
    assert (fanout.subscribers, fanout.counts) == (1_000, TargetCounts(taken=1_000))


async def test_another_dispatcher_goes_on_with_what_a_dead_one_had(world: World) -> None:
    """Killed while its sends are under way: everybody is told, and again only who may have been,
    which is on record.
    """
    names = await subscribe(world, 1_000)
    await announce(world)
    dead = Receiver(world)

    async def moment(_outgoing: Outgoing) -> None:
        await world.clock.sleep_until(world.now + SECOND)

    dead.on_send = moment
    doomed = Dispatcher(
        world.platform,
        DispatcherSettings(read_wait=timedelta(milliseconds=200)),
        world.reminders.changes.finish,
        world.reminders.backfills.turn,
        {"log": dead},
    )
    stop = asyncio.Event()
    async with running(scanner_of(world).run(stop), doomed.run(stop)):
        await run(world, MINUTE + timedelta(milliseconds=1_500))
        began = Counter(who(dead))
    assert 0 < len(began) < len(names)
    async with everything(world) as receiver:
        receiver.on_send = moment
        await run(world, 2 * MINUTE)
        told = began + who(receiver)
        assert set(told) == set(names)
        keys = defaultdict(set)
        for one in (*dead.attempts, *receiver.attempts):
            assert one.subscriber is not None
            keys[one.subscriber.subscriber_id].add(one.delivery_key)
        assert all(len(each) == 1 for each in keys.values())
        (name,) = {one.reminder_id for one in receiver.attempts}
        _, fanout = await the_occurrence(world, name)
        assert fanout.counts == TargetCounts(taken=1_000)
    for subscriber_id in names:
        row = await world.store.ledger.read(name, "20260601T120100Z", "log", subscriber_id)
        assert row is not None
        unknown = sum(each.error_class == "outcome_unknown" for each in row.attempts)
        assert told[subscriber_id] <= 1 + unknown


async def test_a_large_body_is_no_part_of_its_pages(world: World) -> None:
    """They are sent after a look at the record, which has what it is made of."""
    names = await subscribe(world, 30)
    params = f'{{"text":"{"x" * 5_000}"}}'
    await announce(world, params_json=params)
    busy = Result(outcome=Outcome.TRANSIENT, status_code=503, error_class="http_503")
    async with everything(world) as receiver:
        receiver.answer = lambda outgoing: busy if outgoing.attempt == 1 else OK
        await run(world, MINUTE + 10 * SECOND)
        assert who(receiver) == Counter(names * 2)
        assert {one.params_json for one in receiver.attempts} == {params}
    for shard in range(2):
        states = await world.store.due.slice(NOON + MINUTE, shard, limit=1_000)
        pages = [state for state in states if state.entry.kind is Kind.FANOUT]
        assert all(len(state.raw) < 1_000 for state in pages)


async def test_listing_occurrences_reads_no_deliveries(world: World) -> None:
    """However many there are."""
    await subscribe(world, 300)
    name = await announce(world)
    async with everything(world):
        await run(world, MINUTE + 3 * SECOND)
    world.points.clear()
    await the_occurrence(world, name)
    await world.reminders.explain("ns", name, limit=10)
    assert not [point for point in world.points if point.startswith("fanouts.")]


async def slowly(world: World, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """1,500 subscribers and small pages: at 20 s each, 128 at a time, that takes four minutes."""
    monkeypatch.setattr(stretch, "PAGE", 20)
    monkeypatch.setattr(room, "UNSETTLED", 128)
    return await subscribe(world, 1_500)


def slow(world: World) -> Callable[[Outgoing], Awaitable[None]]:
    """Receivers that take their time."""

    async def wait(_outgoing: Outgoing) -> None:
        await world.clock.sleep_until(world.now + 20 * SECOND)

    return wait


async def test_a_fan_out_of_minutes_keeps_no_shard_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each page is settled by itself, so the watermark goes on behind the slowest one; and its row
    tells how long it will take, by the rate of lately.
    """
    names = await slowly(world, monkeypatch)
    name = await announce(world)
    async with everything(world) as receiver:
        receiver.on_send = slow(world)
        await run(world, 4 * MINUTE + 30 * SECOND)
        shards = await world.store.progress.read()
        assert min(shards.values()) >= NOON + 90 * SECOND
        one, fanout = await the_occurrence(world, name)
        assert one.status is OccurrenceStatus.CLAIMED
        assert 0 < fanout.counts.taken <= len(receiver.attempts) < len(names)
        end = ends_about(fanout)
        assert end is not None
        await run(world, 8 * MINUTE)
        assert who(receiver) == Counter(names)
        last = max(max(times) for times in receiver.came.values())
        assert abs(end - last) < MINUTE
        explained = await world.reminders.explain("ns", name, limit=1)
    assert "1500 subscribers of deploys: 1500 delivered" in explained.occurrences[0].why


def refusing(*names: str) -> Any:
    """Some are gone."""

    def answer(outgoing: Outgoing) -> Result:
        assert outgoing.subscriber is not None
        return GONE if outgoing.subscriber.subscriber_id in names else OK

    return answer


async def failed_for_three(world: World, receiver: Receiver) -> str:
    """A fan-out in which three of forty failed."""
    await subscribe(world, 40)
    name = await announce(world)
    receiver.answer = refusing("s00003", "s00017", "s00030")
    await run(world, MINUTE + 3 * SECOND)
    receiver.answer = lambda _: OK
    return name


async def test_deliveries_are_listed_by_status_and_subscriber(world: World) -> None:
    """Page after page, each once."""
    async with everything(world) as receiver:
        name = await failed_for_three(world, receiver)

    async def listed(wanted: Wanted, limit: int) -> list[LedgerRow]:
        found: list[LedgerRow] = []
        token = ""
        while True:
            page = await world.reminders.deliveries("ns", name, wanted, limit=limit, token=token)
            assert len(page.items) <= limit
            found += page.items
            token = page.next_token
            if not token:
                return found

    for limit in (1, 7, 100):
        everybody = [row.target for row in await listed(Wanted(), limit)]
        assert sorted(everybody) == [f"s{n:05}" for n in range(40)]
        failed = await listed(Wanted(statuses=frozenset({DeliveryStatus.FAILED})), limit)
        assert sorted(row.target for row in failed) == ["s00003", "s00017", "s00030"]
        (one,) = await listed(Wanted(subscriber_id="s00017"), limit)
        assert (one.target, one.reason) == ("s00017", "http_410")
        assert await listed(Wanted(subscriber_id="nobody"), limit) == []
        assert await listed(Wanted(occurrence_id="20200101T000000Z"), limit) == []


async def replay(world: World, name: str, asked: Asked, request_id: str | None = None) -> Any:
    """Of the occurrence that the reminder has."""
    return await world.reminders.replay("ns", name, asked, request_id=request_id)


async def test_all_that_failed_is_sent_again_by_one_call(world: World) -> None:
    """Counts are answered; the same keys; who has it, does not get it again."""
    async with everything(world) as receiver:
        name = await failed_for_three(world, receiver)
        one, _ = await the_occurrence(world, name)
        assert one.status is OccurrenceStatus.FAILED
        asked = Asked(occurrence_id=one.occurrence.occurrence_id)
        dry = await replay(world, name, replace(asked, dry_run=True))
        assert dry == ReplayedAll(again=3, taken=37)
        await run(world, MINUTE + 5 * SECOND)
        assert len(receiver.attempts) == 40, "a dry run sends nothing"
        for _ in range(2):  # a retry of the call is the same replay
            assert await replay(world, name, asked, "q") == ReplayedAll(again=3, taken=37)
        await run(world, MINUTE + 15 * SECOND)
        again = receiver.attempts[40:]
        assert {each.subscriber.subscriber_id for each in again if each.subscriber} == {
            "s00003",
            "s00017",
            "s00030",
        }
        assert len(again) == 3
        assert all(each.replay for each in again)
        keys = {each.delivery_key for each in receiver.attempts[:40]}
        assert {each.delivery_key for each in again} <= keys
        one, fanout = await the_occurrence(world, name)
        assert one.status is OccurrenceStatus.COMPLETED
        assert fanout.counts == TargetCounts(taken=40)
        assert await replay(world, name, asked) == ReplayedAll(again=0, taken=40)


async def test_a_replay_that_fails_again_is_counted_until_it_has_ended(world: World) -> None:
    """Its retries, too."""
    async with everything(world) as receiver:
        name = await failed_for_three(world, receiver)
        one, _ = await the_occurrence(world, name)
        busy = Result(outcome=Outcome.TRANSIENT, status_code=503, error_class="http_503")
        receiver.answer = lambda _: busy
        await replay(world, name, Asked(occurrence_id=one.occurrence.occurrence_id))
        await run(world, MINUTE + 15 * SECOND)
        one, fanout = await the_occurrence(world, name)
        assert one.status is OccurrenceStatus.CLAIMED
        assert fanout.counts == TargetCounts(taken=37, open=3)
        receiver.answer = lambda _: OK
        await run(world, 10 * MINUTE)
        one, fanout = await the_occurrence(world, name)
        assert one.status is OccurrenceStatus.COMPLETED
        assert fanout.counts == TargetCounts(taken=40)


async def test_chosen_subscribers_are_told_again(world: World) -> None:
    """One that has it only by force, one that is gone not at all, and strangers are refused."""
    async with everything(world) as receiver:
        name = await failed_for_three(world, receiver)
        one, _ = await the_occurrence(world, name)
        asked = Asked(
            occurrence_id=one.occurrence.occurrence_id,
            subscribers=("s00001", "s00003", "s00017"),
        )
        await world.store.subscribers.delete("ns", TOPIC, "s00017", stamp=9)
        found = await replay(world, name, asked)
        assert [(each.row.target, each.verdict) for each in found] == [
            ("s00001", Verdict.ACKNOWLEDGED),
            ("s00003", Verdict.SENT_AGAIN),
            ("s00017", Verdict.SUBSCRIBER_GONE),
        ]
        await run(world, MINUTE + 10 * SECOND)
        assert who(receiver)["s00003"] == 2
        assert len(receiver.attempts) == 41
        _, fanout = await the_occurrence(world, name)
        assert fanout.counts == TargetCounts(taken=38, failed=2)
        forced = replace(asked, subscribers=("s00001",), force=True)
        (again,) = await replay(world, name, forced)
        assert again.verdict is Verdict.SENT_AGAIN
        await run(world, MINUTE + 15 * SECOND)
        assert who(receiver)["s00001"] == 2
        for wrong, field in (
            (replace(asked, subscribers=("stranger",)), "subscriber_ids[0]"),
            (replace(asked, subscribers=(), channels=("log",)), "channel_ids"),
        ):
            with pytest.raises(InvalidRequest) as caught:
                await replay(world, name, wrong)
            assert caught.value.violations[0].field == field


async def test_a_cancel_while_it_runs_stops_what_has_not_begun(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the record's word, and the counts say so."""
    names = await slowly(world, monkeypatch)
    name = await announce(world)
    async with everything(world) as receiver:
        receiver.on_send = slow(world)
        await run(world, 2 * MINUTE)
        await world.cancel(name)
        await run(world, 3 * MINUTE)
        told = len(receiver.attempts)
        assert 0 < told < len(names) / 2
        await run(world, 5 * MINUTE)
        assert len(receiver.attempts) == told
        one, fanout = await the_occurrence(world, name)
    assert one.status is OccurrenceStatus.CANCELLED
    assert fanout.why == "cancelled"
    assert fanout.counts == TargetCounts(taken=told)

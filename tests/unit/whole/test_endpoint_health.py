"""An endpoint that fails for days, through all services: disabled, told, enabled, recovered."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from dispatcher.channels import NOBODY, Destination
from dispatcher.channels.port import Outcome, Outgoing, Result
from dispatcher.events import Events, EventsTarget
from dispatcher.service import Dispatcher
from dispatcher.settings import DispatcherSettings
from reminders.lifecycle.ended_list import EndedFilter
from reminders.lifecycle.endpoints import KNOWN_WITHIN, Named
from reminders.lifecycle.redriving import EndedView, Redrive, RedriveCall, RedrivePlace
from reminders.lifecycle.requests import CreateRequest
from reminders.model.definition import At, Channel, Email, Policies, Retry, Webhook
from reminders.model.endpoint import Address, Endpoint, Why, address_of
from reminders.model.ledger import DeliveryStatus
from reminders.model.subscriber import Subscriber
from reminders.namespaces import EVENTS
from tests.unit.lifecycle.world import (
    DAY,
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    World,
    created,
    definition,
    every,
    running,
)
from tests.unit.scanner.harness import scanner_of

OK = Result(outcome=Outcome.OK, acknowledged=True, status_code=200)
BROKEN = Result(outcome=Outcome.TRANSIENT, status_code=503, error_class="http_5xx")
GONE = Result(outcome=Outcome.PERMANENT, status_code=410, error_class="http_410")
REFUSED = Result(outcome=Outcome.TRANSIENT, error_class="connect")
AUTH = Result(outcome=Outcome.TRANSIENT, error_class="provider_auth")
BAD, GOOD = "https://bad.example.com/hook", "https://good.example.com/hook"
OPERATOR = "https://operator.example.com/events"


@dataclass
class Net:
    """Implements `ChannelSender`: the webhooks and mailboxes that there are, by their addresses."""

    world: World
    answers: dict[str, Result] = field(default_factory=dict)
    sent: list[tuple[datetime, Outgoing]] = field(default_factory=list)

    def destination(self, channel: Channel) -> Destination:
        """Nobody is burdened."""
        del channel
        return NOBODY

    async def send(self, outgoing: Outgoing) -> Result:
        """As the address answers now."""
        self.sent.append((self.world.now, outgoing))
        return self.answers.get(_to(outgoing), OK)

    def of(self, address: str, since: datetime = NOON) -> list[Outgoing]:
        """What it was sent."""
        return [one for at, one in self.sent if at >= since and _to(one) == address]

    def events(self) -> list[dict[str, Any]]:
        """What the operator got."""
        return [msgspec.json.decode(one.params_json) for one in self.of(OPERATOR)]


def _to(outgoing: Outgoing) -> str:
    target = outgoing.channel.target
    if isinstance(target, Webhook):
        return target.url.partition("?")[0]
    assert isinstance(target, Email)
    return target.to


def dispatcher_of(world: World, net: Net, **settings: Any) -> Dispatcher:
    """A process of its own."""
    events = Events(world.clock, world.reminders.create, EventsTarget(url=OPERATOR))
    return Dispatcher(
        world.platform,
        DispatcherSettings(read_wait=timedelta(milliseconds=200), **settings),
        world.reminders.changes.finish,
        world.reminders.backfills.turn,
        {"webhook": net, "email": net},
        events=events,
    )


@asynccontextmanager
async def at_work(world: World, net: Net, count: int = 1, **settings: Any) -> AsyncIterator[None]:
    """A scanner and so many dispatchers."""
    stop = asyncio.Event()
    dispatchers = [dispatcher_of(world, net, **settings) for _ in range(count)]
    runs = [scanner_of(world).run(stop), *(each.run(stop) for each in dispatchers)]
    async with running(*runs):
        await world.clock.run_until(world.now)
        yield


@pytest.fixture
def world() -> World:
    """At noon, with one shard."""
    return World()


async def run(world: World, span: timedelta) -> None:
    """So long."""
    await world.clock.run_until(world.now + span)


async def remind(world: World, url: str, at: datetime, **policies: Any) -> str:
    """A one-shot webhook, given up after one attempt unless told otherwise."""
    policies = {"retry": Retry(max_attempts=1)} | policies
    wanted = definition(At(instant=at), policies=Policies(**policies))
    target = Webhook(url=url) if "/" in url else Email(to=url)
    channels = (Channel(channel_id="c", target=target),)
    wanted = msgspec.structs.replace(wanted, channels=channels)
    (made,) = await world.reminders.create([CreateRequest(namespace="ns", definition=wanted)])
    return created(made).view.record.reminder_id


def address(url: str = BAD) -> Address:
    """As dispatchers name it."""
    target = Webhook(url=url) if "/" in url else Email(to=url)
    found = address_of("ns", Channel(channel_id="c", target=target))
    assert found is not None
    return found


def named(url: str = BAD) -> Named:
    """As operators do."""
    found = address(url)
    return Named(namespace="ns", endpoint_id=found.endpoint_id, address=found)


async def endpoint(world: World, url: str = BAD) -> Endpoint:
    """As it stands."""
    return await world.reminders.endpoints.get(named(url))


async def ended(world: World, **wanted: Any) -> list[EndedView]:
    """All pages of the list."""
    values: dict[str, Any] = {"namespace": "ns", "start": NOON - DAY, "end": world.now + HOUR}
    values |= wanted
    found: list[EndedView] = []
    after: RedrivePlace | None = None
    while True:
        views, after = await world.reminders.redrives.listed(
            EndedFilter(**values), after=after, limit=7
        )
        found += views
        if after is None:
            return found


async def redrive(world: World, *, limit: int = 7, **call: Any) -> Counter[Redrive]:
    """To its end; the request id is the same for all calls."""
    wanted = EndedFilter(
        namespace="ns",
        start=NOON - DAY,
        end=world.now + HOUR,
        endpoint_id=call.pop("endpoint_id", ""),
    )
    counts: Counter[Redrive] = Counter()
    after: RedrivePlace | None = None
    while True:
        came = await world.reminders.redrives.redrive(
            wanted, RedriveCall(after=after, limit=limit, **call)
        )
        counts.update(came.counts)
        after = came.following
        if after is None:
            return counts


async def visit(world: World, net: Net, *urls: str, count: int = 1) -> None:
    """Ten hours later: a reminder for each rings, and processes that were started anew send it."""
    world.clock.move_to(world.now + 10 * HOUR)
    for url in urls:
        await remind(world, url, world.now + 4 * SECOND)
    async with at_work(world, net, count=count):
        await run(world, 20 * SECOND)


async def test_days_of_failures_disable_it_and_enabling_recovers_all_of_it(world: World) -> None:
    """Not a delivery is lost or sent twice, and each has the key that it always had."""
    net = Net(world, {BAD: BROKEN})
    for _ in range(16):
        await visit(world, net, BAD, GOOD, count=2)
    found = await endpoint(world)
    assert found.why is Why.FAILING
    assert found.failing_since is not None
    assert found.disabled_at is not None
    assert 5 * DAY <= found.disabled_at - found.failing_since < 5 * DAY + 10 * HOUR
    tried = net.of(BAD)
    assert len(tried) == 14
    assert len(net.of(GOOD)) == 16
    views = await ended(world)
    assert len({one.row.reminder_id for one in views}) == len(views) == 16
    assert {one.ended.endpoint_id for one in views} == {found.endpoint_id}
    reasons = Counter(one.ended.reason for one in views)
    assert reasons == {"attempts_exhausted": 14, "endpoint_disabled": 2}

    net.answers.clear()
    async with at_work(world, net, count=2):
        await run(world, 20 * SECOND)
        await world.reminders.endpoints.enable(named())
        since = world.now
        start = since + KNOWN_WITHIN
        counts = await redrive(world, endpoint_id=found.endpoint_id, wait=KNOWN_WITHIN)
        assert counts == {Redrive.SENT_AGAIN: 16}
        await run(world, MINUTE)
    again = net.of(BAD, since)
    assert sorted(one.reminder_id for one in again) == sorted(one.row.reminder_id for one in views)
    assert all(one.replay for one in again)
    keys = {one.row.reminder_id: one.row.delivery_key for one in views}
    assert {one.reminder_id: one.delivery_key for one in again} == keys
    assert {one.reminder_id: one.delivery_key for one in tried}.items() <= keys.items()
    assert min(at for at, one in net.sent if one.replay) >= start
    for name in keys:
        (row,) = await world.store.ledger.page(name, limit=9)
        assert row.delivery is DeliveryStatus.CONFIRMED
    assert await ended(world) == []
    assert await redrive(world) == {}
    assert not (await endpoint(world)).troubled


async def test_the_operator_is_told_once_of_each(world: World) -> None:
    """Of what is lost by endpoint, and of the endpoint that is disabled."""
    net = Net(world, {BAD: BROKEN})
    for _ in range(16):
        await visit(world, net, BAD, count=2)
    events = net.events()
    (told,) = (one for one in events if one["type"] == "endpoint.disabled")
    assert told["data"]["address"] == BAD
    assert told["data"]["why"] == "failing"
    assert told["data"]["errorClass"] == "http_5xx"
    exhausted = [one for one in events if one["type"] == "delivery.exhausted"]
    assert sum(one["data"]["count"] for one in exhausted) == len(net.of(BAD))
    assert all(one["data"]["endpointId"] == address().endpoint_id for one in exhausted)
    assert len(events) == 1 + len(exhausted)
    assert all(one.namespace == EVENTS for one in net.of(OPERATOR))


async def test_a_burst_of_lost_deliveries_is_a_few_events(world: World) -> None:
    """With the number of them, and some by name."""
    net = Net(world, {BAD: BROKEN})
    for _ in range(60):
        await remind(world, BAD, NOON + MINUTE)
    for second in range(30):
        await remind(world, BAD, NOON + MINUTE + 2 * second * SECOND)
    async with at_work(world, net):
        await run(world, 5 * MINUTE)
        events = net.events()
    assert 2 <= len(events) <= 3
    assert sum(one["data"]["count"] for one in events) == 90
    assert all(one["data"]["reasons"].keys() == {"attempts_exhausted"} for one in events)
    assert all(1 <= len(one["data"]["samples"]) <= 5 for one in events)


async def test_events_about_events_there_are_none(world: World) -> None:
    """An operator who does not answer is told nothing about that, and stays enabled."""
    net = Net(world, {BAD: BROKEN, OPERATOR: GONE})
    await remind(world, BAD, NOON + MINUTE)
    async with at_work(world, net):
        await run(world, 3 * MINUTE)
        assert len(net.of(OPERATOR)) == 1
        await remind(world, BAD, world.now + MINUTE)
        await run(world, 3 * MINUTE)
        assert len(net.of(OPERATOR)) == 2


async def test_gone_disables_at_once_in_all_processes(world: World) -> None:
    """And nothing more is sent there, until it is enabled; then it is within seconds."""
    net = Net(world, {BAD: GONE})
    await remind(world, BAD, NOON + MINUTE)
    for second in range(60):
        await remind(world, BAD, NOON + 2 * MINUTE + second * SECOND)
    async with at_work(world, net, count=3):
        await run(world, 4 * MINUTE)
        assert len(net.of(BAD)) == 1
        assert (await endpoint(world)).why is Why.GONE
        net.answers.clear()
        await world.reminders.endpoints.enable(named())
        for _ in range(30):
            await remind(world, BAD, world.now + KNOWN_WITHIN)
        await run(world, KNOWN_WITHIN + 5 * SECOND)
        assert len(net.of(BAD)) == 31


async def test_of_a_url_with_a_query_gone_speaks_only_for_that_one(world: World) -> None:
    """Others share the path."""
    net = Net(world, {BAD: GONE})
    await remind(world, f"{BAD}?user=1", NOON + MINUTE)
    await remind(world, f"{BAD}?user=2", NOON + 2 * MINUTE)
    async with at_work(world, net):
        await run(world, 3 * MINUTE)
        assert len(net.of(BAD)) == 2
        assert not (await endpoint(world)).disabled


async def test_one_success_anywhere_starts_the_clock_again(world: World) -> None:
    """Also of a process that has seen no failure."""
    net = Net(world, {BAD: BROKEN})
    for number in range(23):
        net.answers = {} if number == 8 else {BAD: BROKEN}
        assert not (await endpoint(world)).disabled
        await visit(world, net, BAD)
    assert (await endpoint(world)).disabled


async def test_waiting_retries_end_as_well(world: World) -> None:
    """Listed, so that they can be sent again."""
    patience = msgspec.structs.replace(BROKEN, retry_after=2 * MINUTE)
    net = Net(world, {BAD: patience})
    name = await remind(world, BAD, NOON + MINUTE, retry=Retry())
    async with at_work(world, net):
        await run(world, 70 * SECOND)
        tried = len(net.of(BAD))
        assert tried == 1
        await world.reminders.endpoints.disable(named())
        await run(world, 6 * MINUTE)
        assert len(net.of(BAD)) == tried
        (one,) = await ended(world)
        assert (one.row.reminder_id, one.ended.reason) == (name, "endpoint_disabled")
        assert len(one.row.attempts) == tried
        assert net.events() == []


@pytest.mark.parametrize(
    ("addresses", "answer"),
    [
        ([f"https://h{number}.example.com/" for number in range(4)], REFUSED),
        ([f"user{number}@example.com" for number in range(4)], AUTH),
    ],
)
async def test_what_is_the_fault_of_the_way_disables_nothing(
    world: World, addresses: list[str], answer: Result
) -> None:
    """A cut line, or a relay that takes nothing. The operator's endpoint is as far away: what it
    took would show that the line works. One process sees all of it, since each that is started anew
    has to find out, and blames the first two.
    """
    net = Net(world, dict.fromkeys([*addresses, OPERATOR], answer))
    async with at_work(world, net):
        for _ in range(16):
            world.clock.move_to(world.now + 10 * HOUR)
            for to in addresses:
                await remind(world, to, world.now + 4 * SECOND)
            await run(world, 20 * SECOND)
    assert not [to for to in addresses if (await endpoint(world, to)).disabled]
    assert len(await ended(world)) == 16 * len(addresses)


async def test_a_receiver_that_is_the_only_one_is_disabled_though_nothing_answers(
    world: World,
) -> None:
    """Nobody can tell whose fault it is, and a dead one must not be tried for ever."""
    net = Net(world, {BAD: REFUSED})
    for _ in range(16):
        await visit(world, net, BAD)
    assert (await endpoint(world)).disabled


async def test_a_repeated_redrive_writes_the_same_entries(world: World) -> None:
    """By its request id; without one the ledger lets one of two through."""
    net = Net(world, {BAD: BROKEN})
    ids = [await remind(world, BAD, NOON + MINUTE) for _ in range(10)]
    async with at_work(world, net):
        await run(world, 2 * MINUTE)
        net.answers.clear()
        since = world.now
        for _ in range(2):
            counts = await redrive(world, limit=4, request_id="q", content=b"c")
            assert counts == {Redrive.SENT_AGAIN: 10}
        assert (await redrive(world, dry_run=True)) == {Redrive.SENT_AGAIN: 10}
        await redrive(world)
        await run(world, MINUTE)
        assert len(net.of(BAD, since)) == len(ids)


async def test_what_can_not_be_sent_again_is_left_and_counted(world: World) -> None:
    """Of a cancelled reminder or group, a paused one, and where the channel is gone."""
    net = Net(world, {BAD: BROKEN})
    rule = every("FREQ=DAILY", start_local=(NOON + MINUTE).replace(tzinfo=None))
    channel = Channel(channel_id="c", target=Webhook(url=BAD))
    one = definition(rule, policies=Policies(retry=Retry(max_attempts=1)), group_id="g")
    one = msgspec.structs.replace(one, channels=(channel,))
    others = msgspec.structs.replace(one, group_id=None)
    wanted = [CreateRequest(namespace="ns", definition=each) for each in (one, *[others] * 4)]
    made = await world.reminders.create(wanted)
    names = [created(each).view.record.reminder_id for each in made]
    async with at_work(world, net):
        await run(world, 2 * MINUTE)
        cancelling = asyncio.create_task(world.reminders.cancel_group("ns", "g"))
        await run(world, 2 * SECOND)
        await cancelling
        await world.cancel(names[1])
        await world.pause(names[2])
        moved = msgspec.structs.replace(channel, channel_id="other")
        await world.update(names[3], channels=(moved,))
        expected = {
            Redrive.ENDED: 2,
            Redrive.PAUSED: 1,
            Redrive.CHANNEL_GONE: 1,
            Redrive.SENT_AGAIN: 1,
        }
        assert await redrive(world, dry_run=True) == expected
        since = world.now
        assert await redrive(world) == expected
        await run(world, MINUTE)
        assert [each.reminder_id for each in net.of(BAD, since)] == [names[4]]


async def test_a_redrive_comes_at_a_hundred_a_second_over_all_its_calls(world: World) -> None:
    """However fast they are called."""
    net = Net(world, {BAD: BROKEN})
    for _ in range(250):
        await remind(world, BAD, NOON + MINUTE)
    async with at_work(world, net):
        await run(world, 2 * MINUTE)
        net.answers.clear()
        since = world.now
        await redrive(world, limit=50)
        await run(world, MINUTE)
        times = Counter(at.replace(microsecond=0) for at, one in net.sent if one.replay)
        assert sum(times.values()) == 250
        assert max(times.values()) <= 110
        assert max(times) - since <= 5 * SECOND


async def test_a_subscriber_of_a_topic_is_disabled_and_recovered_alone(world: World) -> None:
    """Its own delivery is listed, and counted again when it has arrived."""
    for number, url in enumerate((BAD, GOOD)):
        subscriber = Subscriber(
            namespace="ns",
            topic_id="t",
            subscriber_id=f"s{number}",
            channel=Channel(channel_id="webhook", target=Webhook(url=url)),
            created_at=world.now,
            updated_at=world.now,
            stamp=1,
        )
        await world.store.subscribers.put([subscriber])
    wanted = definition(At(instant=NOON + MINUTE))
    wanted = msgspec.structs.replace(wanted, user_id="", channels=(), topic_id="t")
    (made,) = await world.reminders.create([CreateRequest(namespace="ns", definition=wanted)])
    net = Net(world, {BAD: GONE})
    async with at_work(world, net):
        await run(world, 2 * MINUTE)
        (one,) = await ended(world)
        assert (one.ended.target, one.ended.endpoint_id) == ("s0", address().endpoint_id)
        assert (await endpoint(world)).why is Why.GONE
        net.answers.clear()
        await world.reminders.endpoints.enable(named())
        assert await redrive(world, wait=KNOWN_WITHIN) == {Redrive.SENT_AGAIN: 1}
        await run(world, 2 * MINUTE)
        first, again = net.of(BAD)
        assert first.delivery_key == again.delivery_key
        assert len(net.of(GOOD)) == 1
        assert await ended(world) == []
        name = created(made).view.record.reminder_id
        page = await world.reminders.occurrences("ns", name, limit=9, token="")
        assert page.items[0].fanout is not None
        assert page.items[0].fanout.counts.taken == 2
        assert await redrive(world) == {}

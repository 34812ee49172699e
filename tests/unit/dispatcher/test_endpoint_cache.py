"""What dispatchers know of endpoints: also what somebody left half done."""

from typing import Any

import pytest
from msgspec.structs import replace

from dispatcher.ended import DISABLED
from dispatcher.health import AT_ONCE, PAUSE, READ_EVERY, Health
from dispatcher.settler import LegEnd
from dispatcher.work import LegWork, Work
from reminders.errors import StoreUnavailable
from reminders.lifecycle.endpoints import Endpoints, Named
from reminders.model.codec import decode_body
from reminders.model.definition import Channel, Webhook
from reminders.model.endpoint import Address, Endpoint, Why
from reminders.model.entry import DueEntry, Replay
from reminders.model.ledger import DeliveryStatus
from tests.unit.lifecycle.world import running

URL = "https://example.com/hook"
ADDRESS = Address(namespace="default", kind="webhook", address=URL)
NAME = ("default", ADDRESS.endpoint_id)


class Process:
    """One dispatcher's knowledge, and what it told the operator."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.told: list[Endpoint] = []
        self.away = False
        self.health = Health(world.platform, announce=self.announce)

    async def announce(self, endpoint: Endpoint) -> None:
        """Durable, unless the store is away."""
        if self.away:
            raise StoreUnavailable(operation="create")
        self.told.append(endpoint)

    async def attempt(self, entry: DueEntry) -> list[LegEnd]:
        """Of that reminder; it ends with 410."""
        ends: list[LegEnd] = []
        runner = self.world.runner()
        runner.settler._noticed = ends.extend
        self.world.sender.results = [self.world.GONE]
        await runner.run(self.world.job(entry))
        return ends

    async def fails(self, entry: DueEntry) -> None:
        """An attempt of that reminder ends with 410, and all that follows is done."""
        await self.fails_as(*await self.attempt(entry))

    async def fails_as(self, *ends: LegEnd) -> None:
        """The same of attempts that ended so."""
        self.health.observe(ends)
        for name in list(self.health._waiting):
            await self.health._settle(name, self.health._waiting.pop(name))


def leg_of(world: Any, entry: DueEntry, url: str = URL, replay: Replay | None = None) -> LegWork:
    """To that endpoint."""
    body = decode_body(entry.body)
    assert entry.occurrence is not None
    work = Work(
        job=world.job(entry),
        entry=entry,
        occurrence=entry.occurrence,
        raw_body=entry.body,
        body=body,
    )
    channel = Channel(channel_id="hook", target=Webhook(url=url))
    return LegWork(work=work, channel=channel, target="", attempt=1, replay=replay)


async def stored(world: Any) -> Endpoint:
    """As it stands."""
    found = await world.store.endpoints.read(*NAME)
    assert found is not None
    return found  # type: ignore[no-any-return]


async def test_what_one_disabled_another_knows_at_its_next_read(world: Any) -> None:
    """And no other endpoint is taken for it; a forced replay passes."""
    first, second = Process(world), Process(world)
    entry = await world.reminder(urls=(URL,))
    await first.fails(entry)
    leg = leg_of(world, entry)
    assert first.health.objection(leg) == DISABLED
    assert second.health.objection(leg) is None
    await second.health.read()
    assert second.health.objection(leg) == DISABLED
    assert second.health.objection(leg_of(world, entry, f"{URL}?x=1")) == DISABLED
    assert second.health.objection(leg_of(world, entry, f"{URL}/other")) is None
    elsewhere = replace(entry, namespace="other")
    assert second.health.objection(leg_of(world, elsewhere)) is None
    replay = Replay(replay_id="p", asked_at=world.AT, after=1, stood="failed", forced=True)
    assert second.health.objection(leg_of(world, entry, replay=replay)) is None
    await Endpoints(world.platform).enable(Named(namespace=NAME[0], endpoint_id=NAME[1]))
    for process in (first, second):
        await process.health.read()
        assert process.health.objection(leg) is None


async def test_whoever_reads_the_list_tells_what_nobody_has_told(world: Any) -> None:
    """The one who disabled it could not; then it is told once."""
    first, second = Process(world), Process(world)
    first.away = True
    await first.fails(await world.reminder(urls=(URL,)))
    assert first.told == []
    assert not (await stored(world)).announced
    await second.health.read()
    assert [each.why for each in second.told] == [Why.GONE]
    assert (await stored(world)).announced
    first.away = False
    for process in (first, second):
        await process.health.read()
    assert len(first.told) + len(second.told) == 1


async def test_a_list_that_was_left_behind_is_put_right(world: Any) -> None:
    """Disabled, and its process died before the list had it: the next failure there mends it."""
    first, second, third = (Process(world) for _ in range(3))

    async def die(name: str) -> None:
        if name == "endpoints.show":
            raise world.Crash

    entry, other = await world.reminder(urls=(URL,)), await world.reminder("r2", urls=(URL,))
    world.on_point = die
    with pytest.raises(world.Crash):
        await first.fails(entry)
    world.on_point = None
    assert (await stored(world)).disabled
    await second.health.read()
    assert second.health.objection(leg_of(world, other)) is None
    await second.fails(other)
    await third.health.read()
    assert third.health.objection(leg_of(world, other)) == DISABLED


async def test_a_store_that_does_not_answer_leaves_what_is_known(world: Any) -> None:
    """Neither forgotten nor believed to be healthy."""
    process = Process(world)
    entry = await world.reminder(urls=(URL,))
    await process.fails(entry)

    async def away(name: str) -> None:
        if name == "endpoints.page":
            raise StoreUnavailable(operation=name)

    world.on_point = away
    world.clock.advance(READ_EVERY)
    await process.health.read()
    assert process.health.objection(leg_of(world, entry)) == DISABLED


async def test_many_that_fail_together_are_written_a_few_at_a_time(world: Any) -> None:
    """All of them, and never so many at once that what is due would wait for the store."""
    process = Process(world)
    entry = await world.reminder(urls=(URL,))
    (end,) = await process.attempt(entry)
    urls = [f"{URL}/{number}" for number in range(2 * AT_ONCE + 1)]
    process.health.observe([replace(end, leg=leg_of(world, entry, url)) for url in urls])
    start = world.clock.now()
    told: list[int] = []
    async with running(process.health.run()):
        for number in range(4):
            await world.clock.run_until(start + number * PAUSE)
            told.append(len(process.told))
    assert told == [AT_ONCE, 2 * AT_ONCE, len(urls), len(urls)]


async def test_who_answered_is_written_before_those_that_fail(world: Any) -> None:
    """However many wait: it must not be taken for one that fails any longer than that."""
    process = Process(world)
    entry = await world.reminder(urls=(URL,))
    (end,) = await process.attempt(entry)
    failed = replace(end.fact, outcome="transient", error_class="http_5xx", attempt=2)
    down = replace(end, fact=failed, row=replace(end.row, delivery=DeliveryStatus.RETRYING))
    await process.fails_as(down)
    others = [leg_of(world, entry, f"{URL}/{number}") for number in range(5 * AT_ONCE)]
    process.health.observe([replace(down, leg=leg) for leg in others])
    process.health.observe([replace(end, fact=replace(end.fact, outcome="ok", error_class=""))])
    async with running(process.health.run()):
        await world.clock.run_until(world.clock.now())
    endpoint = await stored(world)
    assert endpoint.failing_since is None
    assert len(process.health._waiting) == len(others)

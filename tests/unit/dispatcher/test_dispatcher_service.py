"""The loops: taking, keeping, recovering, parking, draining."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from dispatcher.channels.port import Destination
from dispatcher.line import Place
from dispatcher.service import NEXT_PAGE, STARTED_AT_ONCE
from dispatcher.settler import BUSY_SENDS
from dispatcher.standing import Terms
from reminders.errors import CoordinationUnavailable, StoreUnavailable
from reminders.model.entry import Kind
from reminders.model.ledger import DeliveryStatus

TURNS = 2000


async def until(condition: Callable[[], bool]) -> None:
    """Lets the loop turn until it holds; nothing here waits for real time."""
    for _ in range(TURNS):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it did not come about")


async def elapse(world: Any, condition: Callable[[], bool]) -> None:
    """Lets time pass, by the clock, until it holds."""
    for _ in range(100):
        if condition():
            return
        world.clock.advance(timedelta(seconds=1))
        for _ in range(50):
            await asyncio.sleep(0)
    raise AssertionError("it did not come about")


@asynccontextmanager
async def running(world: Any) -> AsyncIterator[Any]:
    """A dispatcher that is stopped and drained at the end."""
    stop = asyncio.Event()
    dispatcher = world.dispatcher()
    task = asyncio.create_task(dispatcher.run(stop))
    try:
        await until(lambda: world.clock.sleeping >= 2)
        yield dispatcher
    finally:
        stop.set()
        await task


async def left(world: Any) -> int:
    """Messages on the stream, under way ones included."""
    lengths = await world.coordination.jobs.lengths([0, 1])
    return sum(lengths.values())


async def test_a_claimed_entry_is_delivered_settled_and_acknowledged(world: Any) -> None:
    """From the stream to an empty stream."""
    entry = await world.reminder()
    async with running(world):
        await world.claim(entry)
        await until(lambda: "done jobs.after" in world.points)
    assert world.points.index("due.handled.done") < world.points.index("done jobs.before")
    assert await left(world) == 0
    assert (await world.row()).delivery is DeliveryStatus.CONFIRMED


async def test_readiness_tells_whether_jobs_are_taken(world: Any) -> None:
    """Not before the first read, not without Redis, not with a drifting clock."""
    dispatcher = world.dispatcher()
    assert dispatcher.problems() == ["starting"]
    down = False

    async def hook(name: str) -> None:
        if down and name == "read jobs.before":
            raise CoordinationUnavailable(operation=name)

    world.on_point = hook
    stop = asyncio.Event()
    task = asyncio.create_task(dispatcher.run(stop))
    await elapse(world, dispatcher.ready)
    world.clock.bounds = False
    assert not dispatcher.ready()
    world.clock.bounds = True
    down = True
    await elapse(world, lambda: not dispatcher.ready())
    down = False
    await elapse(world, dispatcher.ready)
    stop.set()
    await task
    assert not dispatcher.ready()


async def test_nothing_is_taken_while_the_clock_is_out_of_bounds(world: Any) -> None:
    """Lateness and expiry are judged by it."""
    entry = await world.reminder()
    world.clock.bounds = False
    async with running(world):
        await world.claim(entry)
        await until(lambda: world.clock.sleeping >= 3)
        assert world.sender.sent == []
        world.clock.bounds = True
        world.clock.advance(timedelta(seconds=1))
        await until(lambda: len(world.sender.sent) == 1)


async def test_one_bad_job_stops_nothing(world: Any) -> None:
    """It stays unacknowledged, the others go on."""
    bad, good = await world.reminder("bad"), await world.reminder("good")

    async def hook(name: str) -> None:
        if name == "records.body":
            raise ZeroDivisionError

    world.on_point = hook
    async with running(world):
        await world.claim(world.without_body(bad))
        await world.claim(good)
        await until(lambda: "done jobs.after" in world.points)
    assert await left(world) == 1
    assert [s.reminder_id for s in world.sender.sent] == ["good"]


async def test_a_lost_acknowledgement_only_costs_a_look(world: Any) -> None:
    """The job comes again, is suppressed, and acknowledged then."""
    entry = await world.reminder()
    failures = 1

    async def hook(name: str) -> None:
        nonlocal failures
        if name == "done jobs.before" and failures:
            failures -= 1
            raise CoordinationUnavailable(operation=name)

    world.on_point = hook
    async with running(world):
        await world.claim(entry)
        await until(lambda: failures == 0)
        assert await left(world) == 1
        world.clock.advance(timedelta(seconds=2))
        await until(lambda: "done jobs.after" in world.points)
    assert await left(world) == 0
    assert len(world.sender.sent) == 1


async def test_acknowledgements_that_come_together_go_together(world: Any) -> None:
    """While one call is under way the others gather."""
    entries = [await world.reminder(f"r{number}") for number in range(50)]
    for entry in entries:
        await world.claim(entry)
    async with running(world):
        await until(lambda: len(world.sender.sent) == 50)
        await until(lambda: world.points.count("done jobs.after") >= 1)
        await asyncio.sleep(0)
    assert await left(world) == 0
    assert world.points.count("done jobs.after") < 10


# --- crashes of others ----------------------------------------------------------------------------


async def test_what_another_dispatcher_left_is_taken_over(world: Any) -> None:
    """Killed after it read the job; 30 s later somebody else records the doubt and sends."""
    entry = await world.reminder()
    await world.claim(entry)
    await world.coordination.jobs.read("dead", [0], count=1, wait=timedelta(0))
    async with running(world):
        assert world.sender.sent == []
        world.clock.advance(timedelta(seconds=30))
        await until(lambda: "done jobs.after" in world.points)
    row = await world.row()
    assert [a.error_class for a in row.attempts] == ["outcome_unknown", ""]


async def test_a_job_that_runs_long_is_not_taken_over(world: Any) -> None:
    """It is renewed long before its idle time is over, and runs once."""
    entry = await world.reminder()
    release = asyncio.Event()

    async def hang(_outgoing: Any) -> None:
        await release.wait()

    world.sender.on_send = hang
    async with running(world):
        await world.claim(entry)
        await until(lambda: len(world.sender.sent) == 1)
        for _ in range(60):
            world.clock.advance(timedelta(seconds=3))
            for _ in range(50):
                await asyncio.sleep(0)
        jobs = await world.coordination.jobs.reclaim(
            "other", [0], idle=timedelta(seconds=15), count=9
        )
        assert jobs == []
        release.set()
        await until(lambda: "done jobs.after" in world.points)
    assert len(world.sender.sent) == 1
    assert world.points.count("touch jobs.after") >= 10


async def test_a_job_that_could_not_be_renewed_is_not_taken_from_ourselves(world: Any) -> None:
    """Redis gives it back to the very process that still runs it: it runs once."""
    entry = await world.reminder()
    release = asyncio.Event()

    async def hang(_outgoing: Any) -> None:
        await release.wait()

    async def hook(name: str) -> None:
        if name == "touch jobs.before":
            raise CoordinationUnavailable(operation=name)

    world.sender.on_send = hang
    world.on_point = hook
    async with running(world):
        await world.claim(entry)
        await until(lambda: len(world.sender.sent) == 1)
        await elapse(world, lambda: world.clock.now() > world.AT + timedelta(seconds=90))
        release.set()
        await until(lambda: "done jobs.after" in world.points)
    assert len(world.sender.sent) == 1


async def test_a_suspect_runs_alone(world: Any) -> None:
    """Under way in two crashes: nothing else that was left runs beside it."""
    entries = [await world.reminder(f"r{number}") for number in range(4)]
    for entry in entries:
        await world.claim(entry)
    for name in ("dead", "dead too"):
        await world.coordination.jobs.read(name, [0], count=9, wait=timedelta(0))
        world.clock.advance(timedelta(seconds=30))
        await world.coordination.jobs.reclaim(name, [0], idle=timedelta(seconds=30), count=9)
    beside: list[int] = []
    running_now = 0

    async def watch(_outgoing: Any) -> None:
        nonlocal running_now
        running_now += 1
        beside.append(running_now)
        for _ in range(5):
            await asyncio.sleep(0)
        running_now -= 1

    world.sender.on_send = watch
    async with running(world):
        world.clock.advance(timedelta(seconds=30))
        await until(lambda: len(beside) == 4)
    assert beside == [1, 1, 1, 1]


# --- parking --------------------------------------------------------------------------------------


async def test_a_job_that_finds_no_place_in_time_is_parked(worlds: Any) -> None:
    """As a due entry with a counter, not an attempt; jobs for others go on meanwhile."""
    world = worlds(terms=Terms(places=1), max_wait=timedelta(hours=1))
    slow = [await world.reminder(f"s{number}", urls=("slow",)) for number in range(3)]
    quick = await world.reminder("quick", urls=("quick",))
    release = asyncio.Event()

    async def hang(outgoing: Any) -> None:
        if outgoing.channel.target.url == "slow":
            await release.wait()

    world.sender.on_send = hang
    async with running(world):
        for entry in [*slow, quick]:
            await world.claim(entry)
        await until(lambda: len(world.sender.sent) == 2)
        await until(lambda: "done jobs.after" in world.points)
        assert await left(world) == 3
        await elapse(world, lambda: world.points.count("due.handled.done") == 2)
        release.set()
    parked = [each for each in await world.waiting() if each.kind is Kind.PARKED]
    assert sorted(each.reminder_id for each in parked) == ["s1", "s2"]
    assert await left(world) == 0
    assert [s.reminder_id for s in world.sender.sent] == ["s0", "quick"]


async def test_a_parked_leg_keeps_its_attempt_and_comes_back(worlds: Any) -> None:
    """Parked twice, delivered the third time; its entry ids differ, its key does not."""
    world = worlds(terms=Terms(places=1), max_wait=timedelta(0))
    entry = await world.reminder(recurs=True)
    runner = world.runner()
    destinations = runner.jobs._legs._destinations
    assert isinstance(await destinations.enter(Destination(name="host")), Place)
    world.clock.advance(timedelta(milliseconds=1))
    await runner.run(world.job(entry))
    (parked,) = [each for each in await world.waiting() if each.kind is Kind.PARKED]
    assert parked.parked == 1
    assert parked.leg.attempt == 1
    assert parked.key.entry_id == "r1.20261201T090000.hook.a1!1"
    assert not parked.recurs
    assert parked.body == entry.body
    assert parked.occurrence == entry.occurrence
    assert timedelta(seconds=2.5) <= parked.key.ring_at - world.AT <= timedelta(seconds=5.001)
    world.clock.move_to(parked.key.ring_at)
    await runner.run(world.job(parked))
    (again,) = [each for each in await world.waiting() if each.parked == 2]
    assert again.key.entry_id == "r1.20261201T090000.hook.a1!2"
    assert again.key.ring_at - parked.key.ring_at >= timedelta(seconds=5)
    assert (await world.row()).attempts == ()
    assert world.sender.sent == []
    other = worlds()
    await other.reminder()
    await other.runner().run(other.job(again))
    assert other.sender.sent[0].attempt == 1
    assert (await other.row()).delivery is DeliveryStatus.CONFIRMED


# --- stopping -------------------------------------------------------------------------------------


async def test_stop_finishes_what_runs(world: Any) -> None:
    """Settled and acknowledged before `run` returns."""
    entry = await world.reminder()
    release = asyncio.Event()

    async def hang(_outgoing: Any) -> None:
        await release.wait()

    world.sender.on_send = hang
    stop = asyncio.Event()
    task = asyncio.create_task(world.dispatcher().run(stop))
    await world.claim(entry)
    await until(lambda: len(world.sender.sent) == 1)
    stop.set()
    release.set()
    await task
    assert await world.handled(entry)
    assert await left(world) == 0


async def test_stop_leaves_to_others_what_does_not_end(worlds: Any) -> None:
    """In bounded time; the job is still on the stream."""
    world = worlds(drain=timedelta(milliseconds=20))
    entry = await world.reminder()
    never = asyncio.Event()

    async def hang(_outgoing: Any) -> None:
        await never.wait()

    world.sender.on_send = hang
    stop = asyncio.Event()
    task = asyncio.create_task(world.dispatcher().run(stop))
    await world.claim(entry)
    await until(lambda: len(world.sender.sent) == 1)
    stop.set()
    await task
    assert not await world.handled(entry)
    assert await left(world) == 1


async def test_while_the_store_is_away_nothing_is_acknowledged(world: Any) -> None:
    """What was sent is kept in hand and settled when the store is back; nothing is sent again."""
    entry = await world.reminder()
    away = True

    async def hook(name: str) -> None:
        if away and name == "ledger.write":
            raise StoreUnavailable(operation=name)

    world.on_point = hook
    async with running(world):
        await world.claim(entry)
        for _ in range(60):
            world.clock.advance(timedelta(seconds=3))
            for _ in range(50):
                await asyncio.sleep(0)
        assert await left(world) == 1
        assert not await world.handled(entry)
        away = False
        world.clock.advance(timedelta(seconds=6))
        await until(lambda: "done jobs.after" in world.points)
    assert len(world.sender.sent) == 1
    assert await left(world) == 0


@pytest.mark.parametrize("count", [40])
async def test_no_more_is_taken_than_can_be_held(worlds: Any, count: int) -> None:
    """The rest stays on the stream, for others."""
    world = worlds(max_in_flight=10)
    known = await world.reminder("known")
    release = asyncio.Event()

    async def hang(_outgoing: Any) -> None:
        await release.wait()

    async with running(world):
        await world.claim(known)
        await until(lambda: "done jobs.after" in world.points)
        world.sender.on_send = hang
        for number in range(count):
            await world.claim(await world.reminder(f"r{number}"))
        await elapse(world, lambda: len(world.sender.sent) >= 1 + 8)
        for _ in range(100):
            await asyncio.sleep(0)
        assert len(world.sender.sent) <= 1 + 10
        assert await left(world) == count
        release.set()
        await elapse(world, lambda: len(world.sender.sent) == 1 + count)
    assert await left(world) == 0


async def test_the_next_jobs_are_read_while_these_are_begun(world: Any) -> None:
    """Not only when these are begun: a burst would wait for each read."""
    reads: list[int] = []

    async def note(_outgoing: Any) -> None:
        reads.append(world.points.count("read jobs.before"))

    world.sender.on_send = note
    for number in range(3 * STARTED_AT_ONCE):
        await world.claim(await world.reminder(f"r{number}"))
    async with running(world):
        await until(lambda: len(reads) == 3 * STARTED_AT_ONCE)
        await elapse(world, lambda: "done jobs.after" in world.points)
    assert reads[STARTED_AT_ONCE] == 2
    assert await left(world) == 0


async def test_between_two_pages_of_a_burst_nothing_is_settled(worlds: Any) -> None:
    """All sends of the first may be over before the second one is read; it does not wait long."""
    world = worlds(max_in_flight=4 * BUSY_SENDS)
    entries = [await world.reminder(f"r{number}") for number in range(BUSY_SENDS)]
    for entry in entries:
        await world.claim(entry)
    async with running(world):
        await until(lambda: len(world.sender.sent) == len(entries))
        world.clock.advance(NEXT_PAGE / 2)
        for _ in range(200):
            await asyncio.sleep(0)
        assert "ledger.write" not in world.points
        world.clock.advance(NEXT_PAGE)
        await until(lambda: "ledger.write" in world.points)
    assert await left(world) == 0

"""The consumer: takes messages, expands, acknowledges; one that fails stops no other."""

import asyncio

from expander.expansion import Expansion
from expander.service import RECLAIM_EVERY, Expander
from reminders.errors import CoordinationUnavailable, StoreUnavailable
from tests.unit.lifecycle.world import NOON, SECOND, World, every, running


def expander_of(world: World) -> Expander:
    """A process of its own."""
    return Expander(world.platform, Expansion(world.platform, world.reminders))


async def fired(world: World) -> str:
    """A rule whose first occurrence was claimed."""
    name = await world.create(every("FREQ=DAILY"))
    await world.claim((await world.stored(name)).current[0])
    return name


def waiting(world: World) -> int:
    """Messages that nobody acknowledged."""
    return len(world.coordination.server.stream("fires", 0).messages)


async def test_what_was_claimed_is_expanded_and_acknowledged(world: World) -> None:
    """At once."""
    name = await fired(world)
    async with running(expander_of(world).run(asyncio.Event())):
        await world.clock.run_until(NOON + SECOND)
    assert len((await world.stored(name)).current) == 3
    assert waiting(world) == 0


async def test_a_message_that_fails_waits_and_the_others_go_on(world: World) -> None:
    """A store that is away, or a message that nobody can read."""
    names = [await fired(world) for _ in range(5)]
    stream = world.coordination.server.stream("fires", 0)
    next(iter(stream.messages.values())).raw = b"\x01"

    async def down(point: str) -> None:
        if point == "records.add_live" and down.left:  # type: ignore[attr-defined]
            down.left -= 1  # type: ignore[attr-defined]
            raise StoreUnavailable(operation=point)

    down.left = 2  # type: ignore[attr-defined]
    world.on_point = down
    async with running(expander_of(world).run(asyncio.Event())):
        await world.clock.run_until(NOON + SECOND)
        assert waiting(world) == 3
        await world.clock.run_until(NOON + 20 * SECOND)
    assert waiting(world) == 1
    assert [len((await world.stored(name)).current) for name in names] == [2, 3, 3, 3, 3]


async def test_what_a_dead_expander_left_is_taken_over(world: World) -> None:
    """After it was idle for long enough."""
    name = await fired(world)
    held = asyncio.Event()

    async def stall(point: str) -> None:
        if point == "records.add_live" and not held.is_set():
            held.set()
            await asyncio.Event().wait()

    world.on_point = stall
    async with running(expander_of(world).run(asyncio.Event())):
        await held.wait()
    async with running(expander_of(world).run(asyncio.Event())):
        await world.clock.run_until(NOON + 10 * SECOND + 2 * RECLAIM_EVERY)
    assert len((await world.stored(name)).current) == 3
    assert waiting(world) == 0


async def test_it_says_when_it_gets_nothing_done(world: World) -> None:
    """And recovers."""

    async def down(point: str) -> None:
        if point.startswith("read fires"):
            raise CoordinationUnavailable(operation=point)

    expander = expander_of(world)
    world.on_point = down
    async with running(expander.run(asyncio.Event())):
        await world.clock.run_until(NOON + SECOND)
        assert expander.problems() != []
        world.on_point = None
        await world.clock.run_until(NOON + 3 * SECOND)
        assert expander.problems() == []


async def test_a_stop_lets_what_was_begun_end(world: World) -> None:
    """And leaves no task."""
    name = await fired(world)
    held, go, stop = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def stall(point: str) -> None:
        if point == "records.add_live":
            held.set()
            await go.wait()

    world.on_point = stall
    task = asyncio.create_task(expander_of(world).run(stop))
    await held.wait()
    stop.set()
    await world.clock.run_until(NOON)
    assert not task.done()
    go.set()
    await task
    assert len((await world.stored(name)).current) == 3
    assert {t for t in asyncio.all_tasks() if t is not asyncio.current_task()} == set()

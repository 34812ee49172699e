"""Places at a destination: a slow receiver keeps nobody else out."""

import asyncio
from datetime import timedelta

import pytest

from dispatcher.destinations import Destinations

TURNS = 20


class Seconds:
    """A monotonic clock by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Where it stands."""
        return self.now


def made(places: int = 2) -> tuple[Destinations, Seconds]:
    """With a wait of at most two seconds."""
    seconds = Seconds()
    return Destinations(places=places, max_wait=timedelta(seconds=2), seconds=seconds), seconds


async def turn() -> None:
    """Lets tasks run as far as they can."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


async def test_places_are_given_in_order_of_waiting() -> None:
    """First come, first served, one for each that leaves."""
    destinations, _ = made()
    assert await destinations.enter("a")
    assert await destinations.enter("a")
    order: list[int] = []

    async def wait(number: int) -> None:
        assert await destinations.enter("a")
        order.append(number)

    waiting = [asyncio.create_task(wait(number)) for number in range(3)]
    await turn()
    assert order == []
    destinations.leave("a", 0.01)
    await turn()
    assert order == [0]
    for _ in range(2):
        destinations.leave("a", 0.01)
    await asyncio.gather(*waiting)
    assert order == [0, 1, 2]


async def test_destinations_do_not_share_places() -> None:
    """And no destination at all has no limit."""
    destinations, _ = made(places=1)
    assert await destinations.enter("a")
    assert await destinations.enter("b")
    for _ in range(5):
        assert await destinations.enter("")
    destinations.leave("", 1.0)


async def test_who_would_wait_too_long_is_turned_away_at_once() -> None:
    """By the pace of late: 8 s an attempt at two places."""
    destinations, _ = made()
    for _ in range(2):
        assert await destinations.enter("a")
        destinations.leave("a", 8.0)
    assert await destinations.enter("a")
    assert await destinations.enter("a")
    assert not await destinations.enter("a")
    assert await destinations.enter("b")


async def test_a_destination_that_does_not_answer_gets_slower_by_the_second() -> None:
    """Nothing has ended yet, so there is no pace: the silence itself counts."""
    destinations, seconds = made()
    assert await destinations.enter("a")
    assert await destinations.enter("a")
    early = asyncio.create_task(destinations.enter("a"))
    await turn()
    assert not early.done()
    seconds.now = 5.0
    assert not await destinations.enter("a")
    destinations.turn_away(timedelta(seconds=60))
    assert not await early


async def test_who_waited_long_enough_is_turned_away() -> None:
    """However promising it looked."""
    destinations, seconds = made(places=1)
    assert await destinations.enter("a")
    waiter = asyncio.create_task(destinations.enter("a"))
    await turn()
    seconds.now = 1.0
    destinations.turn_away(timedelta(seconds=1))
    assert not await waiter
    destinations.leave("a", 0.01)
    assert await destinations.enter("a")


@pytest.mark.parametrize("in_hand", [False, True])
async def test_a_cancelled_waiter_gives_its_place_on(in_hand: bool) -> None:
    """Whether the place came in the same instant or not."""
    destinations, _ = made(places=1)
    assert await destinations.enter("a")
    first = asyncio.create_task(destinations.enter("a"))
    second = asyncio.create_task(destinations.enter("a"))
    await turn()
    if in_hand:
        destinations.leave("a", 0.01)
        first.cancel()
    else:
        first.cancel()
        await turn()
        destinations.leave("a", 0.01)
    assert await second
    assert first.cancelled() or await asyncio.gather(first, return_exceptions=True)


async def test_destinations_that_nobody_uses_are_forgotten() -> None:
    """There may be a million hosts over time."""
    destinations, _ = made(places=1)
    assert await destinations.enter("kept")
    for number in range(5000):
        assert await destinations.enter(str(number))
        destinations.leave(str(number), 0.01)
    assert len(destinations._gates) <= 4096
    assert "kept" in destinations._gates

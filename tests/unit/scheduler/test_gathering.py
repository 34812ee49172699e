"""Calls that come together share a batch; nobody waits without need, or for another one's fault."""

import asyncio
from collections.abc import Sequence

import pytest

from reminders.pacing import BUSY
from scheduler.gathering import MOST, Gathering

LONG_S = 3600.0


class Desk:
    """Answers each number with ten times as much; 7 is refused, 13 is a bug for the whole batch."""

    def __init__(self, pace_s: float = LONG_S) -> None:
        self.batches: list[list[int]] = []
        self.over: list[int] = []
        self.begun = asyncio.Semaphore(0)
        self.gate = asyncio.Event()
        self.gate.set()
        self.gathering: Gathering[int, int] = Gathering(self.make, pace_s=pace_s)

    async def make(self, asked: Sequence[int]) -> Sequence[int | Exception]:
        """Once the gate is open."""
        self.batches.append(list(asked))
        self.begun.release()
        await self.gate.wait()
        if 13 in asked:
            raise ZeroDivisionError
        return [LookupError("7") if one == 7 else 10 * one for one in asked]

    def ask(self, *numbers: int) -> list[asyncio.Task[int]]:
        """A call for each."""
        return [asyncio.ensure_future(self.call(number)) for number in numbers]

    async def call(self, number: int) -> int:
        """Notes when it is over."""
        return await self.gathering(number, lambda: self.over.append(number))


async def turns(count: int = 5) -> None:
    """Of the loop."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_who_comes_alone_waits_for_nobody() -> None:
    """One after the other, however soon."""
    desk = Desk()
    for number in range(5):
        assert await desk.call(number) == 10 * number
    assert desk.batches == [[0], [1], [2], [3], [4]]


async def test_calls_of_one_turn_share_a_batch_and_each_has_its_answer() -> None:
    """Also those that are refused."""
    desk = Desk()
    answers = await asyncio.gather(*desk.ask(1, 7, 2), return_exceptions=True)
    assert answers[0] == 10
    assert isinstance(answers[1], LookupError)
    assert answers[2] == 20
    assert desk.batches == [[1, 7, 2]]


async def test_behind_several_the_next_one_waits_for_company() -> None:
    """But not while it is under way: batches do not wait for each other's end."""
    desk = Desk(pace_s=0.02)
    desk.gate.clear()
    first = desk.ask(*range(BUSY))
    await turns()
    second = desk.ask(4)
    await turns()
    third = desk.ask(5)
    await turns()
    assert desk.batches == [[0, 1, 2, 3]]
    for _ in range(2):
        await desk.begun.acquire()
    desk.gate.set()
    assert await asyncio.gather(*first, *second, *third) == [0, 10, 20, 30, 40, 50]
    assert desk.batches == [[0, 1, 2, 3], [4, 5]]


async def test_a_full_batch_waits_for_nothing() -> None:
    """However soon behind another; what is over waits."""
    desk = Desk()
    calls = desk.ask(*range(100, 100 + BUSY))
    await turns()
    calls += desk.ask(*range(200, 201 + MOST))
    await turns()
    assert [len(batch) for batch in desk.batches] == [BUSY, MOST]
    for call in calls[:-1]:
        await call
    assert not calls[-1].done()
    calls[-1].cancel()


async def test_who_gave_up_before_it_began_is_left_out() -> None:
    """And who gives up later takes nothing from the others."""
    desk = Desk(pace_s=0.01)
    desk.gate.clear()
    first = desk.ask(*range(BUSY))
    await turns()
    waiting = desk.ask(4, 5)
    await turns()
    waiting[0].cancel()
    first[0].cancel()
    await turns()
    assert desk.over == []
    desk.gate.set()
    assert await asyncio.gather(*first[1:], waiting[1]) == [10, 20, 30, 50]
    assert desk.batches == [[0, 1, 2, 3], [5]]
    assert sorted(desk.over) == [0, 1, 2, 3, 4, 5]


async def test_a_bug_is_told_to_all_of_its_batch() -> None:
    """Nobody waits for ever, and the next batch is none the worse."""
    desk = Desk(pace_s=0)
    answers = await asyncio.gather(*desk.ask(1, 13), return_exceptions=True)
    assert [type(answer) for answer in answers] == [ZeroDivisionError] * 2
    assert await desk.call(3) == 30
    assert sorted(desk.over) == [1, 3, 13]


@pytest.mark.parametrize("count", [2, 3])
async def test_behind_few_the_wait_is_shorter(count: int) -> None:
    """In proportion."""
    desk = Desk()
    await asyncio.gather(*desk.ask(*range(count)))
    wait_s = desk.gathering._pace.wait_s(asyncio.get_running_loop().time())
    assert wait_s == pytest.approx(LONG_S * count / BUSY, abs=1)

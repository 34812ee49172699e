"""The gate: bounds in number and bytes, order, and nothing lost by cancellation."""

import asyncio

import pytest

from scheduler.admission import Admission


def gate() -> Admission:
    """Ten creates, 100 bytes."""
    return Admission(creates=10, size=100)


async def turn() -> None:
    """Lets tasks run until they wait."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_either_bound_closes_it() -> None:
    """Number or bytes, whichever comes first."""
    admission = gate()
    assert admission.try_enter(9, 10)
    assert not admission.try_enter(2, 10)
    assert admission.try_enter(1, 10)
    admission.leave(9, 10)
    assert not admission.try_enter(1, 91)
    assert admission.try_enter(1, 90)
    assert (admission.creates, admission.size) == (2, 100)


def test_one_that_is_too_large_passes_alone() -> None:
    """Otherwise it could never be served."""
    admission = gate()
    assert admission.try_enter(11, 1_000)
    assert not admission.try_enter(1, 0)
    admission.leave(11, 1_000)
    assert admission.try_enter(1, 1)


async def test_waiting_is_first_come_first_served() -> None:
    """A small one behind a large one waits, so that the large one gets its turn."""
    admission = gate()
    assert admission.try_enter(8, 0)
    order: list[str] = []

    async def enter(name: str, creates: int) -> None:
        await admission.enter(creates, 0)
        order.append(name)

    async with asyncio.TaskGroup() as group:
        group.create_task(enter("large", 5))
        await turn()
        group.create_task(enter("small", 1))
        await turn()
        assert order == []
        assert not admission.try_enter(1, 0)
        admission.leave(8, 0)
        await turn()
        assert order == ["large", "small"]
    assert admission.creates == 6


async def test_cancelled_waiter_leaves_the_line() -> None:
    """Those behind it move up."""
    admission = gate()
    assert admission.try_enter(8, 0)
    large = asyncio.create_task(admission.enter(5, 0))
    await turn()
    small = asyncio.create_task(admission.enter(1, 0))
    await turn()
    large.cancel()
    with pytest.raises(asyncio.CancelledError):
        await large
    await small
    assert admission.creates == 9


async def test_place_given_to_a_cancelled_waiter_returns() -> None:
    """Given and cancelled in the same turn of the loop: nothing is held by nobody."""
    admission = gate()
    assert admission.try_enter(10, 0)
    waiter = asyncio.create_task(admission.enter(10, 0))
    await turn()
    admission.leave(10, 0)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    assert (admission.creates, admission.size) == (0, 0)


async def test_places_that_come_free_just_after_a_cancellation_go_to_the_next() -> None:
    """A stream that is broken off cancels its waiting task and gives back places in one turn."""
    admission = gate()
    assert admission.try_enter(10, 0)
    waiter = asyncio.create_task(admission.enter(5, 0))
    await turn()
    behind = asyncio.create_task(admission.enter(5, 0))
    await turn()
    waiter.cancel()
    admission.leave(10, 0)
    await behind
    with pytest.raises(asyncio.CancelledError):
        await waiter
    assert admission.creates == 5

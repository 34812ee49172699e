"""Rules that take long to plan: whoever sends them waits, and nobody else."""

import asyncio
import threading
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any, TypeVar

import pytest

from reminders.errors import InvalidRequest
from reminders.lifecycle import CreateRequest
from reminders.lifecycle.aside import HASTY_STEPS, Aside
from reminders.lifecycle.occurrences import record_series
from reminders.recurrence import Work
from tests.unit.lifecycle.world import World, created, definition, every

BARREN = "FREQ=MINUTELY;INTERVAL=2;BYMINUTE=1"
"""From noon on: never, which takes all the work that a rule may take."""
RARE = "FREQ=MINUTELY;INTERVAL=1441;BYHOUR=11;BYMINUTE=59"
"""A minute later each day: the first time after four years, the next one after four more."""
T = TypeVar("T")


async def turns_of_others(call: Coroutine[Any, Any, T]) -> tuple[T, int]:
    """What the call answers, and how often somebody else had a turn meanwhile."""
    task = asyncio.ensure_future(call)
    turns = 0
    while not task.done():
        await asyncio.sleep(0)
        turns += 1
    return await task, turns


def request(text: str) -> CreateRequest:
    """As the edge makes it."""
    return CreateRequest(namespace="ns", definition=definition(every(text)))


async def test_a_batch_of_rules_that_never_ring_holds_up_nobody(world: World) -> None:
    """Each is refused by its part; what is with them is created."""
    asked = [request(BARREN), request("FREQ=DAILY"), request(BARREN)]
    (one, other, third), turns = await turns_of_others(world.reminders.create(asked))
    assert created(other).view.ahead
    for refused in (one, third):
        assert isinstance(refused, InvalidRequest)
        (violation,) = refused.violations
        assert violation.field == "reminder.schedule.recurrence.rrule"
        assert "seem never to meet" in violation.description
    assert turns > 100


async def test_a_rule_that_takes_long_is_planned_in_full(world: World) -> None:
    """Haste would have found nothing, and a little less haste too few of them."""
    view = created((await world.reminders.create([request(RARE)]))[0]).view
    series, work = record_series(view.record), Work()
    planned = series.next(series.first_after(view.record.updated_at), 3, work)
    assert work.steps > 2 * HASTY_STEPS
    assert [entry.key.ring_at for entry in view.ahead] == [one.instant for one in planned[:2]]
    assert [entry.recurs for entry in view.ahead] == [True, True]


async def test_a_rule_that_ends_in_haste_ends(world: World) -> None:
    """Few occurrences by themselves are no reason to look longer."""
    view = created((await world.reminders.create([request("FREQ=DAILY;COUNT=1")]))[0]).view
    assert [entry.recurs for entry in view.ahead] == [False]


async def test_a_change_to_such_a_rule_holds_up_nobody(world: World) -> None:
    """A reschedule and an update are planned as creates are."""
    reminder = await world.create(every("FREQ=DAILY"))
    for change in (
        world.reschedule(reminder, every(BARREN)),
        world.update(reminder, schedule=every(BARREN)),
    ):
        caught, turns = await turns_of_others(_refusal(change))
        assert caught.violations[0].field == "reminder.schedule.recurrence.rrule"
        assert turns > 100
    await world.reschedule(reminder, every(RARE))
    ahead = (await world.stored(reminder)).current
    assert len(ahead) == 2
    assert ahead[1].key.ring_at - ahead[0].key.ring_at > timedelta(days=1400)


async def _refusal(call: Coroutine[Any, Any, object]) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        await call
    return caught.value


async def test_who_gives_up_keeps_the_thread_until_it_is_done() -> None:
    """A thread can't be stopped: calls that come and go must not make more of them."""
    aside, running, go_on = Aside(), threading.Semaphore(0), threading.Event()

    def compute(number: int) -> int:
        running.release()
        go_on.wait(10)
        return number

    first = asyncio.create_task(aside.run(compute, 1), name="first")
    assert await asyncio.to_thread(running.acquire, timeout=10)
    first.cancel()
    second = asyncio.create_task(aside.run(compute, 2), name="second")
    with pytest.raises(asyncio.CancelledError):
        await first
    for _ in range(20):
        await asyncio.sleep(0)
    assert not running.acquire(blocking=False)
    go_on.set()
    assert await second == 2


async def test_what_it_raises_reaches_who_waits() -> None:
    """As if it ran here."""

    def compute() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await Aside().run(compute)

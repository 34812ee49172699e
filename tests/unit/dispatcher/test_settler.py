"""Settling: many at a time, behind the sends, and each alone where all together do not pass."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from dispatcher.settings import DispatcherSettings
from dispatcher.settler import BATCH, BUSY_SENDS, Settlement, Settler
from dispatcher.telemetry import Reporter
from reminders.errors import StoreUnavailable
from reminders.model.entry import DueEntry
from reminders.model.ledger import DeliveryStatus

SETTINGS = DispatcherSettings(
    settle_linger=timedelta(milliseconds=25), settle_within=timedelta(seconds=1), max_unsettled=100
)


class Desk:
    """A settler, with what was settled and what could not be."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.sends = 0
        self.settled: list[str] = []
        self.failed: list[str] = []
        self.settler = Settler(world.platform, SETTINGS, Reporter(), sending=lambda: self.sends)

    def add(self, entries: Iterable[DueEntry]) -> None:
        """Jobs of which only `handled` is left to write."""
        for entry in entries:
            name = entry.reminder_id
            self.settler.add(
                Settlement(
                    end=None,
                    entry=entry,
                    since=self.world.clock.now(),
                    settled=partial(self.settled.append, name),
                    failed=partial(self.failed.append, name),
                )
            )

    async def after(self, **span: float) -> int:
        """Lets so much time pass; how many are settled then."""
        await self.world.clock.run_until(self.world.clock.now() + timedelta(**span))
        return len(self.settled)

    @property
    def writes(self) -> int:
        """Calls that marked entries as handled."""
        return int(self.world.points.count("due.handled"))


@asynccontextmanager
async def open_desk(world: Any) -> AsyncIterator[Desk]:
    """While it runs."""
    desk = Desk(world)
    running = asyncio.create_task(desk.settler.run())
    try:
        yield desk
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def reminders(world: Any, count: int) -> list[DueEntry]:
    """Their due entries."""
    return [await world.reminder(f"r{number}") for number in range(count)]


async def test_outcomes_gather_and_are_written_together(world: Any) -> None:
    """After the linger, in one call for all of them."""
    entries = await reminders(world, 20)
    async with open_desk(world) as desk:
        desk.add(entries)
        assert await desk.after(milliseconds=24) == 0
        assert await desk.after(milliseconds=1) == 20
        assert desk.writes == 1


@pytest.mark.parametrize(("sends", "held"), [(BUSY_SENDS - 1, False), (BUSY_SENDS, True)])
async def test_many_sends_under_way_come_first(world: Any, sends: int, held: bool) -> None:
    """Few do not hold it back."""
    entries = await reminders(world, 3)
    async with open_desk(world) as desk:
        desk.sends = sends
        desk.add(entries)
        assert (await desk.after(milliseconds=500) == 0) is held
        desk.sends = 0
        assert await desk.after(milliseconds=10) == 3


async def test_sends_hold_it_back_for_a_bounded_time(world: Any) -> None:
    """What is not on record at a crash is sent again: at most a second's worth."""
    entries = await reminders(world, 3)
    async with open_desk(world) as desk:
        desk.sends = 10_000
        desk.add(entries)
        assert await desk.after(milliseconds=990) == 0
        assert await desk.after(milliseconds=20) == 3


async def test_too_many_unsettled_ones_are_not_held_back(world: Any) -> None:
    """Half of what may be held."""
    entries = await reminders(world, 50)
    async with open_desk(world) as desk:
        desk.sends = 10_000
        desk.add(entries[:49])
        assert await desk.after(milliseconds=100) == 0
        desk.add(entries[49:])
        assert await desk.after(milliseconds=10) == 50


async def test_a_large_backlog_is_settled_in_bounded_calls(world: Any) -> None:
    """Not in one that the store would refuse."""
    entries = await reminders(world, BATCH + 1)
    async with open_desk(world) as desk:
        desk.add(entries)
        assert await desk.after(seconds=1) == BATCH + 1
        assert desk.writes == 2


def refusing(world: Any, bad: set[str], error: Callable[[], Exception]) -> None:
    """The store does not take entries of these reminders, nor calls that have one of them."""
    handled = world.store.due.handled

    async def refuse(entries: Any, **given: Any) -> None:
        if any(entry.reminder_id in bad for entry in entries):
            world.points.append("due.handled")
            raise error()
        await handled(entries, **given)

    world.store.due.handled = refuse


async def test_one_that_the_store_refuses_does_not_hold_up_the_others(world: Any) -> None:
    """It is tried again with the next ones, and settled once the store takes it."""
    entries = await reminders(world, 10)
    bad = {"r3"}
    refusing(world, bad, lambda: StoreUnavailable(operation="due.handled"))
    async with open_desk(world) as desk:
        desk.add(entries)
        assert await desk.after(milliseconds=30) == 9
        assert await desk.after(minutes=5) == 9
        bad.clear()
        assert await desk.after(seconds=10) == 10
        assert desk.settled[-1] == "r3"
        assert desk.failed == []


async def test_one_whose_writing_is_a_bug_is_given_up_alone(world: Any) -> None:
    """Its job stays unacknowledged, so it comes again."""
    entries = await reminders(world, 10)
    refusing(world, {"r3"}, ZeroDivisionError)
    async with open_desk(world) as desk:
        desk.add(entries)
        assert await desk.after(seconds=1) == 9
        assert desk.failed == ["r3"]


async def test_a_store_that_is_away_is_asked_less_and_less_often(world: Any) -> None:
    """Nothing is lost meanwhile, and the log is not flooded."""
    entries = await reminders(world, 2)
    away = {"r0", "r1"}
    refusing(world, away, lambda: StoreUnavailable(operation="due.handled"))
    async with open_desk(world) as desk:
        desk.add(entries)
        assert await desk.after(minutes=10) == 0
        asked = desk.writes
        assert asked < 10 * 60 / 5 * 3 + 30
        away.clear()
        assert await desk.after(seconds=10) == 2


async def test_who_stood_still_does_not_replace_what_others_recorded(world: Any) -> None:
    """An attempt that failed a minute ago is on record as of then, not as of now.

    Found by the simulation: a dispatcher was stopped after a failed attempt, another delivered the
    job meanwhile, and the first one woke and put `retrying` over `delivered`.
    """
    entry = await world.reminder()
    world.sender.results = [world.BUSY]
    alone = world.runner()
    sent = await alone.jobs.run(world.job(entry))
    world.clock.advance(timedelta(seconds=20))
    await world.runner().run(world.job(entry, deliveries=2))
    world.clock.advance(timedelta(seconds=40))
    settled: list[str] = []
    late = Settlement(
        end=sent.end,
        entry=entry,
        since=world.clock.now(),
        settled=partial(settled.append, "late"),
        failed=partial(settled.append, "failed"),
    )
    assert await alone.settler.settle([late]) == []
    assert settled == ["late"]
    assert (await world.row()).delivery is DeliveryStatus.CONFIRMED

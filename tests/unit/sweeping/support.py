"""Walks with new zone data, in memory.

Algiers has had one hour ahead of UTC all year; with the new data it has the rules of Paris.
"""

from collections.abc import Coroutine, Sequence
from datetime import datetime
from typing import Any

from reminders.lifecycle.moves import Event, Left, Passed, Totals
from reminders.lifecycle.recomputing import Moved
from reminders.lifecycle.sweeping import Sweep
from reminders.model.definition import LocalTime
from tests.unit.lifecycle.world import World

JULY = LocalTime(date="2026-07-01", time="09:00", zone="Africa/Algiers")
JANUARY = LocalTime(date="2027-01-01", time="09:00", zone="Africa/Algiers")
PARIS = LocalTime(date="2026-07-01", time="09:00", zone="Europe/Paris")
WAS = datetime.fromisoformat("2026-07-01T08:00Z")
IS = datetime.fromisoformat("2026-07-01T07:00Z")
CHANGED = {"Africa/Algiers": "Europe/Paris"}
FAST = 1_000_000


def sweep(world: World, *, apply: bool = True, rate: int = FAST) -> Sweep:
    """One run."""
    return Sweep(world.platform, world.reminders.changes, apply=apply, rate=rate)


async def walked(world: World, *, apply: bool = True, rate: int = FAST) -> list[Event]:
    """All that a whole run tells."""
    return [event async for event in sweep(world, apply=apply, rate=rate).run()]


def told(events: Sequence[Event]) -> tuple[list[Moved], list[Left], Totals]:
    """By kind."""
    last = events[-1]
    assert isinstance(last, Passed)
    assert last.share == 1.0
    moved = [event for event in events if isinstance(event, Moved)]
    return moved, [event for event in events if isinstance(event, Left)], last.totals


async def rings_at(world: World, reminder_id: str) -> list[datetime]:
    """The instants ahead."""
    return [entry.key.ring_at for entry in (await world.stored(reminder_id)).current]


async def many(world: World, count: int) -> list[str]:
    """As many that the new data moves; the walk takes them in pages of ten."""
    return [await world.create(JULY, user_id=f"u{number}") for number in range(count)]


async def as_one(work: Coroutine[Any, Any, Any]) -> None:
    """A process that dies does so once, whatever it did at once."""
    try:
        await work
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None

"""What several of these suites ask of a world."""

from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from reminders.errors import TocsinError
from reminders.lifecycle import Created, CreateRequest
from reminders.model.definition import Schedule
from reminders.model.entry import Fate, Kind
from tests.unit.lifecycle.world import World, behind_the_scenes, created, definition


def request(**changes: Any) -> CreateRequest:
    """As the edge makes it."""
    keys = {name: changes.pop(name) for name in ("request_id", "validate_only") if name in changes}
    return CreateRequest(namespace="ns", definition=definition(**changes), **keys)


async def create_one(world: World, one: CreateRequest) -> Created:
    """Or what it failed with."""
    (result,) = await world.reminders.create([one])
    return created(result)


async def hints(world: World) -> list[str]:
    """What was announced."""
    with behind_the_scenes():
        heard = await world.coordination.hints.tail({0: "0-0"}, wait=timedelta(0))
    return [name for found in heard.values() for name, _, _ in found]


async def only(world: World, reminder_id: str) -> Any:
    """The one live entry."""
    (entry,) = (await world.stored(reminder_id)).current
    return entry


async def open_kinds(world: World, reminder_id: str) -> list[tuple[Kind, int]]:
    """What would still ring, with its version."""
    return [
        (state.entry.kind, state.entry.version)
        for state in await world.entries(reminder_id)
        if state.handled_at is None and state.fate is not Fate.VOID
    ]


@dataclass(frozen=True)
class Case:
    """A reminder and what was done about it before the change."""

    schedule: Schedule
    claimed: bool = False
    delivered: bool = False


async def tolerant(call: Awaitable[Any]) -> None:
    """A refusal is an answer, too."""
    with suppress(TocsinError):
        await call

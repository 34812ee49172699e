"""A create whose stores hang is answered in time, and its repeat completes it."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from reminders.errors import StoreUnavailable
from reminders.lifecycle import CreateRequest, Reminders
from reminders.model.definition import After
from reminders.platform import Platform
from tests.unit.lifecycle.world import HOUR, World, created, definition

PATIENCE = timedelta(milliseconds=20)


def impatient(world: World) -> Reminders:
    """A scheduler in this world that waits next to nothing for its stores."""
    limits = msgspec.structs.replace(world.limits, patience=PATIENCE)
    return Reminders(
        Platform(
            store=world.store, coordination=world.coordination, clock=world.clock, limits=limits
        )
    )


def hangs_at(step: int) -> tuple[Callable[[str], Awaitable[None]], list[str]]:
    """From this step on nothing answers; and the names of the steps that were reached."""
    reached: list[str] = []

    async def pass_or_hang(point: str) -> None:
        reached.append(point)
        if len(reached) > step:
            await asyncio.Event().wait()

    return pass_or_hang, reached


def request(**keys: Any) -> CreateRequest:
    """In an hour."""
    key = keys.pop("dedup_key", None)
    return CreateRequest(
        namespace="ns", definition=definition(After(delay=HOUR), dedup_key=key), **keys
    )


@pytest.mark.parametrize("keys", [{"dedup_key": "k"}, {"request_id": "k"}], ids=str)
async def test_wherever_a_create_hangs_its_repeat_completes_it(keys: dict[str, str]) -> None:
    """One reminder with one entry that may ring, as after a crash."""
    step = 0
    while True:
        world = World()
        world.on_point, reached = hangs_at(step)
        (first,) = await impatient(world).create([request(**keys)])
        world.on_point = None
        if len(reached) <= step:
            created(first)
            break
        assert isinstance(first, StoreUnavailable), reached
        (again,) = await impatient(world).create([request(**keys)])
        view = created(again).view
        states = await world.entries(view.record.reminder_id)
        assert [state.entry.key for state in states] == [view.ahead[0].key], reached
        step += 1
    assert step >= 3


async def test_what_a_batch_has_decided_by_then_stays_decided() -> None:
    """The rest is unavailable, each by itself."""
    world = World()
    reminders = impatient(world)
    conflicting = CreateRequest(namespace="ns", definition=definition(dedup_key="k", user_id="bob"))
    created((await reminders.create([request(dedup_key="k")]))[0])

    async def hang(point: str) -> None:
        if point.startswith("records.create"):
            await asyncio.Event().wait()

    world.on_point = hang
    results = await reminders.create([conflicting, request(), request(dedup_key="other")])
    assert [type(result).__name__ for result in results] == [
        "KeyConflict",
        "StoreUnavailable",
        "StoreUnavailable",
    ]

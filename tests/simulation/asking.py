"""How a client asks: one scheduler, and another one if that does not answer."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from reminders.errors import (
    AlreadyEnded,
    AlreadyFired,
    CoordinationUnavailable,
    InvalidRequest,
    NotFound,
    NotRecurring,
    ReminderPaused,
    TocsinError,
)
from reminders.lifecycle import Reminders
from tests.simulation.process import Process

if TYPE_CHECKING:
    from tests.simulation.world import World

TRIES = 6
PATIENCE_S = 20.0
"""How long a client waits for an answer."""
AGAIN_S = 2.0
ANSWERS = (AlreadyFired, AlreadyEnded, NotFound, ReminderPaused, NotRecurring, InvalidRequest)
"""Errors that are one."""

Ask = Callable[[Reminders], Awaitable[Any]]


async def insist(
    world: "World",
    what: str,
    via: int,
    ask: Ask,
    *,
    tries: int = TRIES,
    patience_s: float = PATIENCE_S,
) -> Any:
    """The answer, or the error that is one; None if nobody answered."""
    for number in range(tries):
        if number:
            await asyncio.sleep(AGAIN_S)
        try:
            async with asyncio.timeout(patience_s):
                return await _ask(world, via + number, ask)
        except ANSWERS as error:
            world.tell("client", f"{what}: {error!r}")
            return error
        except (TimeoutError, TocsinError) as error:
            world.tell("client", f"{what}: {error!r}")
    return None


async def _ask(world: "World", via: int, ask: Ask) -> Any:
    """One scheduler. A process that dies or stands still does not answer."""
    name = f"scheduler-{via % world.plan.instances}"
    process, reminders = world.processes.get(name), world.reminders.get(name)
    if process is None or reminders is None:
        raise CoordinationUnavailable(operation=f"reach {name}")
    answer = world.loop.create_future()
    process.spawn(_tell(answer, ask, reminders, process), "call")
    return await answer


async def _tell(
    answer: "asyncio.Future[Any]", ask: Ask, reminders: Reminders, process: Process
) -> None:
    try:
        result: Any = await ask(reminders)
    except TocsinError as error:
        if not answer.done():
            answer.set_exception(error)
    except asyncio.CancelledError:
        if not answer.done():
            answer.set_exception(CoordinationUnavailable(operation=f"keep {process!r} alive"))
    else:
        if not answer.done() and process.alive:
            answer.set_result(result)

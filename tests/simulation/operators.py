"""Who has things rung beside the schedule, or moved by newer zone data."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from reminders.errors import Unavailable
from reminders.lifecycle import Backfilled, OccurrenceView, Reminders
from reminders.lifecycle.editions import DataNewer
from reminders.lifecycle.moves import Left
from reminders.lifecycle.sweeping import Sweep
from reminders.model.ledger import OccurrenceStatus
from reminders.platform import Platform
from reminders.ports import Store
from tests.simulation.asking import TRIES, insist
from tests.simulation.clients import MS
from tests.simulation.history import BASE, Refilled, Triggered
from tests.simulation.subscribing import NAMESPACE
from tests.simulation.wishes import Backfill, Recompute, Trigger

if TYPE_CHECKING:
    from tests.simulation.world import World

AGAIN_S = 5.0
WALKS = 12
"""So often an operator begins again, at most."""


class Operators:
    """All of them."""

    def __init__(self, world: "World", ids: Mapping[str, str]) -> None:
        """`ids`: of reminders by their names in the plan."""
        self._world = world
        self._ids = ids
        self._does: dict[type, Callable[[Any], Coroutine[Any, Any, None]]] = {
            Trigger: self._trigger,
            Backfill: self._backfill,
            Recompute: self._recompute,
        }

    def do(self, item: Trigger | Backfill | Recompute) -> None:
        """Begins to; what comes of it is in the history."""
        work = self._does[type(item)](item)
        task = self._world.loop.create_task(work, name=f"operator-{item.at}")
        self._world.clients.append(task)

    async def _trigger(self, item: Trigger) -> None:
        reminder_id = self._ids.get(item.target)
        if reminder_id is None:
            return
        self._world.history.asked_triggers[reminder_id] += 1

        async def ask(reminders: Reminders) -> OccurrenceView:
            return await reminders.trigger(
                NAMESPACE, reminder_id, request_id=f"t{item.target}-{item.at}"
            )

        tries = 1 if item.once else TRIES
        view = await insist(self._world, item.target, item.via, ask, tries=tries)
        if not isinstance(view, OccurrenceView) or view.status is OccurrenceStatus.CANCELLED:
            return
        occurrence_id = view.occurrence.occurrence_id
        self._world.tell("client", f"trigger {item.target}: {occurrence_id} {view.status}")
        self._world.history.triggers.append(
            Triggered(reminder_id=reminder_id, occurrence_id=occurrence_id)
        )

    async def _backfill(self, item: Backfill) -> None:
        reminder_id = self._ids.get(item.target)
        if reminder_id is None:
            return
        start = BASE + item.start * MS
        end = BASE + item.end * MS if item.end else None

        async def ask(reminders: Reminders) -> Backfilled:
            return await reminders.backfill(
                NAMESPACE,
                reminder_id,
                start=start,
                end=end,
                validate_only=False,
                request_id=f"b{item.target}-{item.at}",
            )

        asked = Refilled(
            reminder_id=reminder_id,
            asked_us=self._world.loop.now_us,
            start=start,
            before=end,
        )
        history = self._world.history
        place = len(history.backfills)
        history.backfills.append(asked)
        found = await insist(self._world, item.target, item.via, ask)
        if isinstance(found, Backfilled):
            self._world.tell("client", f"backfill {item.target}: {found.count}")
            history.backfills[place] = Refilled(
                reminder_id=reminder_id,
                asked_us=asked.asked_us,
                start=start,
                before=end,
                answered_us=self._world.loop.now_us,
                named=tuple(view.occurrence for view in found.first),
            )

    async def _recompute(self, item: Recompute) -> None:
        """Until a walk comes to its end; one that dies is gone on with elsewhere."""
        for number in range(WALKS):
            if await self._walks(item.via + number):
                return
            await asyncio.sleep(AGAIN_S)
        self._world.tell("operator", "gives up")

    async def _walks(self, via: int) -> bool:
        """Whether it came to an end, in the process of a scheduler."""
        world = self._world
        name = f"scheduler-{via % world.plan.instances}"
        process, platform = world.processes.get(name), world.platforms.get(name)
        reminders = world.reminders.get(name)
        if process is None or platform is None or reminders is None:
            return False
        ended: asyncio.Future[bool] = world.loop.create_future()

        async def walk() -> None:
            through, everybody = False, world.all_have_newer_zones()
            sweep = Sweep(_plainly(platform), reminders.changes, apply=True)
            try:
                left = [event async for event in sweep.run() if isinstance(event, Left)]
                through = not any("newer" in each.why for each in left)
                world.tell("operator", f"walked: {[each.why for each in left]} left")
                if not left and everybody:
                    world.history.walks_us.append(world.loop.now_us)
            except (Unavailable, DataNewer) as error:
                world.tell("operator", f"walk ends: {error!r}")
            finally:
                if not ended.done():
                    ended.set_result(through and process.alive)

        process.spawn(walk(), "walk")
        return await ended


def _plainly(platform: Platform) -> Platform:
    """The same, with coroutine functions for what a walk asks: tenacity wants to see that it must
    wait for an answer.
    """
    store = SimpleNamespace(
        records=SimpleNamespace(scan=_awaiting(platform.store.records.scan)),
        sweeps=SimpleNamespace(
            read=_awaiting(platform.store.sweeps.read), save=_awaiting(platform.store.sweeps.save)
        ),
    )
    return replace(platform, store=cast("Store", store))


def _awaiting(method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def ask(*arguments: Any, **options: Any) -> Any:
        return await method(*arguments, **options)

    return ask

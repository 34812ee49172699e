"""The people who set reminders: they ask a scheduler, and ask another one if it does not answer."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from reminders.errors import (
    AlreadyEnded,
    AlreadyFired,
    CoordinationUnavailable,
    NotFound,
    TocsinError,
)
from reminders.lifecycle import Call, Changed, Created, CreateRequest, Reminders
from reminders.model.definition import (
    At,
    CatchUp,
    Channel,
    Definition,
    Policies,
    Recurring,
    Schedule,
    Webhook,
)
from reminders.model.record import Status
from tests.simulation.history import Answer, GroupEnd, Promise
from tests.simulation.plan import Cancel, CancelGroup, Create, Get, Reschedule, Silence, Wake
from tests.simulation.process import Process

if TYPE_CHECKING:
    from tests.simulation.world import World

NAMESPACE = "sim"
TRIES = 6
PATIENCE_S = 20.0
"""How long a client waits for an answer."""
AGAIN_S = 2.0
MS = timedelta(milliseconds=1)

Operation = Create | Cancel | Reschedule | Get | CancelGroup | Silence | Wake
Ask = Callable[[Reminders], Awaitable[Any]]


class Clients:
    """All of them."""

    def __init__(self, world: "World", base: datetime) -> None:
        self._world = world
        self._base = base
        self._ids: dict[str, str] = {}
        """Reminder ids by the names in the plan."""
        self._does: dict[type, Callable[[Any], Coroutine[Any, Any, None]]] = {
            Create: self._create,
            Cancel: self._cancel,
            Reschedule: self._reschedule,
            CancelGroup: self._cancel_group,
            Silence: self._silence,
            Wake: self._wake,
            Get: self._get,
        }

    def do(self, item: Operation) -> None:
        """Begins to; what comes of it is in the history."""
        work = self._does[type(item)](item)
        task = self._world.loop.create_task(work, name=f"client-{item.at}")
        self._world.clients.append(task)

    def cancel_endless(self) -> None:
        """Whoever has a rule without an end gives it up."""
        now_ms = self._world.loop.now_us // 1000
        for reminder_id, editions in self._world.history.editions.items():
            record = editions[-1].record
            schedule = record.definition.schedule
            if (
                record.status is Status.SCHEDULED
                and isinstance(schedule, Recurring)
                and schedule.max_occurrences is None
            ):
                self._ids[reminder_id] = reminder_id
                self.do(Cancel(at=now_ms, target=reminder_id))

    # --- what they want ---------------------------------------------------------------------------

    async def _create(self, item: Create) -> None:
        request = CreateRequest(
            namespace=NAMESPACE,
            definition=Definition(
                user_id="ann",
                schedule=self._schedule(item),
                policies=Policies(catch_up=CatchUp(item.catch_up)),
                channels=tuple(
                    Channel(channel_id=name, target=Webhook(url=name)) for name in item.channels
                ),
                dedup_key=item.name if item.keyed else None,
                group_id=item.group or None,
            ),
        )

        async def ask(reminders: Reminders) -> Created:
            (result,) = await reminders.create([request])
            if isinstance(result, TocsinError):
                raise result
            return result

        created = await self._insist(
            item.name,
            item.via,
            ask,
            tries=TRIES if item.keyed else 1,
            patience_s=item.patience / 1000,
        )
        if not isinstance(created, Created):
            return
        record = created.view.record
        known = self._ids.setdefault(item.name, record.reminder_id)
        if known != record.reminder_id:
            self._world.broken("two-for-one-key", f"{item.name}: {known}, {record.reminder_id}")
        if record.version == 1:
            promise = Promise(at_us=self._world.loop.now_us, name=item.name, record=record)
            self._world.history.promises.setdefault(record.reminder_id, promise)

    async def _cancel(self, item: Cancel) -> None:
        async def ask(reminders: Reminders) -> Changed:
            return await reminders.cancel(
                NAMESPACE,
                self._ids[item.target],
                expected_version=None,
                request_id=f"x{item.target}-{item.at}",
            )

        await self._change(item, ask, "cancel")

    async def _reschedule(self, item: Reschedule) -> None:
        async def ask(reminders: Reminders) -> Changed:
            return await reminders.reschedule(
                NAMESPACE,
                self._ids[item.target],
                self._schedule(item),
                expected_version=None,
                request_id=f"r{item.target}-{item.at}",
            )

        await self._change(item, ask, "reschedule")

    async def _silence(self, item: Silence) -> None:
        async def ask(reminders: Reminders) -> Changed:
            return await reminders.pause(self._call(item), "holiday")

        await self._change(item, ask, "pause")

    async def _wake(self, item: Wake) -> None:
        async def ask(reminders: Reminders) -> Changed:
            return await reminders.resume(self._call(item))

        await self._change(item, ask, "resume")

    def _call(self, item: Silence | Wake) -> Call:
        return Call(
            namespace=NAMESPACE,
            reminder_id=self._ids[item.target],
            request_id=f"{type(item).__name__}-{item.target}-{item.at}",
        )

    async def _cancel_group(self, item: CancelGroup) -> None:
        async def ask(reminders: Reminders) -> datetime:
            return await reminders.cancel_group(NAMESPACE, item.group)

        ends, asked_us = self._world.history.group_ends, self._world.loop.now_us
        ends[item.group] = GroupEnd(asked_us=asked_us, answered_us=None)
        cancelled_at = await self._insist(item.group, item.via, ask)
        if isinstance(cancelled_at, datetime):
            ends[item.group] = GroupEnd(
                asked_us=asked_us, answered_us=self._world.loop.now_us, cancelled_at=cancelled_at
            )

    async def _change(
        self, item: Cancel | Reschedule | Silence | Wake, ask: Ask, action: str
    ) -> None:
        if item.target not in self._ids:
            return
        tries = 1 if getattr(item, "once", False) else TRIES
        changed = await self._insist(item.target, item.via, ask, tries=tries)
        if isinstance(changed, Changed):
            answer = Answer(
                at_us=self._world.loop.now_us,
                reminder_id=self._ids[item.target],
                action=action,
                version=changed.view.record.version,
                applied=True,
                answers=changed.answers,
            )
            self._world.history.answers.append(answer)
            self._world.tell("client", f"{action} {item.target}: {_words(answer)}")

    async def _get(self, item: Get) -> None:
        if item.target not in self._ids:
            return
        reminder_id = self._ids[item.target]

        async def ask(reminders: Reminders) -> Any:
            return await reminders.get(NAMESPACE, reminder_id)

        answered = [a.version for a in self._world.history.answers if a.reminder_id == reminder_id]
        view = await self._insist(item.target, item.via, ask)
        if isinstance(view, NotFound):
            self._world.broken("not-found", f"{item.target} was acknowledged", reminder_id)
        elif not isinstance(view, TocsinError) and view.record.version < max(answered, default=1):
            self._world.broken(
                "read-back-in-time", f"{item.target} at {view.record.version}", reminder_id
            )

    def _schedule(self, item: Create | Reschedule) -> Schedule:
        at = self._base + item.rings * MS
        if not item.every_s:
            return At(instant=at)
        return Recurring(
            rrule=f"FREQ=SECONDLY;INTERVAL={item.every_s}",
            start_local=at.astimezone(ZoneInfo(item.zone)).replace(tzinfo=None, microsecond=0),
            zone=item.zone,
            max_occurrences=item.count or None,
        )

    # --- asking -----------------------------------------------------------------------------------

    async def _insist(
        self, what: str, via: int, ask: Ask, *, tries: int = TRIES, patience_s: float = PATIENCE_S
    ) -> Any:
        """The answer, or the error that is one; None if nobody answered."""
        for number in range(tries):
            if number:
                await asyncio.sleep(AGAIN_S)
            try:
                async with asyncio.timeout(patience_s):
                    return await self._ask(via + number, ask)
            except (AlreadyFired, AlreadyEnded, NotFound) as error:
                self._world.tell("client", f"{what}: {error!r}")
                return error
            except (TimeoutError, TocsinError) as error:
                self._world.tell("client", f"{what}: {error!r}")
        return None

    async def _ask(self, via: int, ask: Ask) -> Any:
        """One scheduler. A process that dies or stands still does not answer."""
        world = self._world
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


def _words(answer: Answer) -> str:
    each = (f"{a.occurrence_id}={'fired' if a.was_fired else 'not fired'}" for a in answer.answers)
    return f"v{answer.version} {' '.join(each)}"

"""The people who set reminders: they ask a scheduler, and ask another one if it does not answer."""

from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from reminders.errors import NotFound, TocsinError
from reminders.lifecycle import Call, Changed, Created, CreateRequest, Reminders
from reminders.model.definition import (
    At,
    CatchUp,
    Channel,
    Definition,
    LocalTime,
    Policies,
    Recurring,
    Schedule,
    Webhook,
)
from reminders.model.record import Status
from tests.simulation.asking import TRIES, Ask, insist
from tests.simulation.history import Answer, GroupEnd, Promise
from tests.simulation.subscribing import NAMESPACE
from tests.simulation.wishes import (
    Cancel,
    CancelGroup,
    Create,
    Get,
    Reschedule,
    Silence,
    Update,
    Wake,
)

if TYPE_CHECKING:
    from tests.simulation.world import World

MS = timedelta(milliseconds=1)
HOURS = "0,1"
"""In which all runs are, by the clocks of `zonedata.ZONE`."""

Change = Cancel | Reschedule | Silence | Wake | Update
Wish = Change | Create | Get | CancelGroup


class Clients:
    """All of them."""

    def __init__(self, world: "World", base: datetime) -> None:
        self.world = world
        self._base = base
        self.ids: dict[str, str] = {}
        """Reminder ids by the names in the plan."""
        self._does: dict[type, Callable[[Any], Coroutine[Any, Any, None]]] = {
            Create: self._create,
            Cancel: self._cancel,
            Reschedule: self._reschedule,
            CancelGroup: self._cancel_group,
            Silence: self._silence,
            Wake: self._wake,
            Update: self._update,
            Get: self._get,
        }

    def do(self, item: Wish) -> None:
        """Begins to; what comes of it is in the history."""
        work = self._does[type(item)](item)
        task = self.world.loop.create_task(work, name=f"client-{item.at}")
        self.world.clients.append(task)

    def cancel_endless(self) -> None:
        """Whoever has a rule without an end gives it up."""
        now_ms = self.world.loop.now_us // 1000
        for reminder_id, editions in self.world.history.editions.items():
            record = editions[-1].record
            schedule = record.definition.schedule
            if (
                record.status is Status.SCHEDULED
                and isinstance(schedule, Recurring)
                and schedule.max_occurrences is None
            ):
                self.ids[reminder_id] = reminder_id
                self.do(Cancel(at=now_ms, target=reminder_id))

    # --- what they want ---------------------------------------------------------------------------

    async def _create(self, item: Create) -> None:
        request = CreateRequest(
            namespace=NAMESPACE,
            definition=Definition(
                user_id="" if item.topic else "ann",
                topic_id=item.topic,
                schedule=self._schedule(item),
                policies=Policies(catch_up=CatchUp(item.catch_up)),
                channels=() if item.topic else _channels(item.channels),
                dedup_key=item.name if item.keyed else None,
                group_id=item.group or None,
            ),
        )

        async def ask(reminders: Reminders) -> Created:
            (result,) = await reminders.create([request])
            if isinstance(result, TocsinError):
                raise result
            return result

        created = await insist(
            self.world,
            item.name,
            item.via,
            ask,
            tries=TRIES if item.keyed else 1,
            patience_s=item.patience / 1000,
        )
        if not isinstance(created, Created):
            return
        record = created.view.record
        known = self.ids.setdefault(item.name, record.reminder_id)
        if known != record.reminder_id:
            self.world.broken("two-for-one-key", f"{item.name}: {known}, {record.reminder_id}")
        if record.version == 1:
            promise = Promise(at_us=self.world.loop.now_us, name=item.name, record=record)
            self.world.history.promises.setdefault(record.reminder_id, promise)

    async def _cancel(self, item: Cancel) -> None:
        async def ask(reminders: Reminders) -> Changed:
            return await reminders.cancel(
                NAMESPACE,
                self.ids[item.target],
                expected_version=None,
                request_id=f"x{item.target}-{item.at}",
            )

        await self._change(item, ask, "cancel")

    async def _reschedule(self, item: Reschedule) -> None:
        async def ask(reminders: Reminders) -> Changed:
            return await reminders.reschedule(
                NAMESPACE,
                self.ids[item.target],
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

    async def _update(self, item: Update) -> None:
        async def ask(reminders: Reminders) -> Changed:
            return await reminders.update(
                self._call(item), edit, content=repr(item).encode(), reschedules=False
            )

        def edit(old: Definition) -> Definition:
            policies = old.policies
            if item.catch_up:
                policies = replace(policies, catch_up=CatchUp(item.catch_up))
            channels = _channels(item.channels) if item.channels else old.channels
            return replace(old, policies=policies, channels=channels)

        await self._change(item, ask, "update")

    def _call(self, item: Silence | Wake | Update) -> Call:
        return Call(
            namespace=NAMESPACE,
            reminder_id=self.ids[item.target],
            request_id=f"{type(item).__name__}-{item.target}-{item.at}",
        )

    async def _cancel_group(self, item: CancelGroup) -> None:
        async def ask(reminders: Reminders) -> datetime:
            return await reminders.cancel_group(NAMESPACE, item.group)

        ends, asked_us = self.world.history.group_ends, self.world.loop.now_us
        ends[item.group] = GroupEnd(asked_us=asked_us, answered_us=None)
        cancelled_at = await insist(self.world, item.group, item.via, ask)
        if isinstance(cancelled_at, datetime):
            ends[item.group] = GroupEnd(
                asked_us=asked_us, answered_us=self.world.loop.now_us, cancelled_at=cancelled_at
            )

    async def _change(self, item: Change, ask: Ask, action: str) -> None:
        if item.target not in self.ids:
            return
        tries = 1 if getattr(item, "once", False) else TRIES
        changed = await insist(self.world, item.target, item.via, ask, tries=tries)
        if isinstance(changed, Changed):
            answer = Answer(
                at_us=self.world.loop.now_us,
                reminder_id=self.ids[item.target],
                action=action,
                version=changed.view.record.version,
                applied=True,
                answers=changed.answers,
            )
            self.world.history.answers.append(answer)
            self.world.tell("client", f"{action} {item.target}: {_words(answer)}")

    async def _get(self, item: Get) -> None:
        if item.target not in self.ids:
            return
        reminder_id = self.ids[item.target]

        async def ask(reminders: Reminders) -> Any:
            return await reminders.get(NAMESPACE, reminder_id)

        answered = [a.version for a in self.world.history.answers if a.reminder_id == reminder_id]
        view = await insist(self.world, item.target, item.via, ask)
        if isinstance(view, NotFound):
            self.world.broken("not-found", f"{item.target} was acknowledged", reminder_id)
        elif not isinstance(view, TocsinError) and view.record.version < max(answered, default=1):
            self.world.broken(
                "read-back-in-time", f"{item.target} at {view.record.version}", reminder_id
            )

    def _schedule(self, item: Create | Reschedule) -> Schedule:
        at = self._base + item.rings * MS
        local = at.astimezone(ZoneInfo(item.zone)).replace(tzinfo=None, microsecond=0)
        wall = isinstance(item, Create) and item.wall
        if not item.every_s and wall:
            return LocalTime(
                time=local.time().isoformat(), date=local.date().isoformat(), zone=item.zone
            )
        if not item.every_s:
            return At(instant=at)
        return Recurring(
            rrule=_by_the_clock(item.every_s) if wall else _by_elapsed_time(item.every_s),
            start_local=local,
            zone=item.zone,
            max_occurrences=item.count or None,
        )


def _channels(names: tuple[str, ...]) -> tuple[Channel, ...]:
    return tuple(Channel(channel_id=name, target=Webhook(url=name)) for name in names)


def _by_elapsed_time(every_s: int) -> str:
    return f"FREQ=SECONDLY;INTERVAL={every_s}"


def _by_the_clock(every_s: int) -> str:
    minutes = ",".join(map(str, range(60)))
    seconds = ",".join(map(str, range(0, 60, every_s)))
    return f"FREQ=DAILY;BYHOUR={HOURS};BYMINUTE={minutes};BYSECOND={seconds}"


def _words(answer: Answer) -> str:
    each = (f"{a.occurrence_id}={'fired' if a.was_fired else 'not fired'}" for a in answer.answers)
    return f"v{answer.version} {' '.join(each)}"

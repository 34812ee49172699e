"""Everything that changes a reminder: one procedure, safe against a claim in progress (DESIGN §5).

```
 0  due[finish]      written half a minute ahead: whatever happens below, somebody comes back
 1  LWT begin        version v → v+1, the new record, `change` (all that 2–5 need)
 2  due[old]         fate = void                 a scanner that reads it from now on leaves it
 3  Redis revoke     void up to v; who was claimed before?     one that holds a copy is refused
                     claimed → fate = claimed (stamped later, so it wins): it rings, also if Redis
                     dies
 4  ledger, live, due[new]   unless the answer forbids it; of a paused one neither live nor due
 5  LWT end          clears `change`, records the outcome; then due[finish] handled
```

Between 1 and 5 the record is *changing*. Whoever meets that — a repeat, the next change, Get,
expander, late scan, dispatcher — runs 2–5 again: `completing`. This module begins changes, steps 0
and 1, and answers the caller from what was recorded. What a cancel, reschedule, update, pause,
resume or recompute makes of the reminder is its `Action`: see `actions`.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from reminders.errors import (
    AlreadyEnded,
    AlreadyFired,
    CoordinationUnavailable,
    NotFound,
    NotReady,
    VersionMismatch,
)
from reminders.lifecycle.actions import (
    Action,
    Before,
    Cancel,
    Pause,
    Plan,
    Recompute,
    Reschedule,
    Resume,
    Update,
)
from reminders.lifecycle.aside import HASTY_STEPS, Aside, TakesLong
from reminders.lifecycle.beginning import begun, next_version, recorded, repeated
from reminders.lifecycle.completing import Completion
from reminders.lifecycle.outcomes import finish_entry
from reminders.lifecycle.planning import Planner
from reminders.lifecycle.reading import Reads
from reminders.lifecycle.recomputing import Moved
from reminders.lifecycle.replanning import Replanner
from reminders.lifecycle.requests import Call, Changed
from reminders.lifecycle.writing import EntryWriter
from reminders.model.definition import Definition, Schedule
from reminders.model.entry import DueEntry
from reminders.model.record import Change, Outcome, Record, Status, Stored
from reminders.platform import Platform

ATTEMPTS = 5
"""How often a change starts over after it lost to another one."""


Read = Callable[[str, str], Awaitable[Stored]]


class Changes:
    """The use cases that change a reminder. They raise `NotFound`, `VersionMismatch`,
    `KeyConflict`, `AlreadyEnded`, `Unavailable`.
    """

    def __init__(
        self,
        platform: Platform,
        writer: EntryWriter,
        planner: Planner,
        reads: Reads,
        aside: Aside,
    ) -> None:
        self._store = platform.store
        self._completion = Completion(platform, writer, planner)
        self._replanner = Replanner(planner)
        self._in_haste = Replanner(planner, steps=HASTY_STEPS)
        self._aside = aside
        self._reads = reads
        self._clock = platform.clock
        self._limits = platform.limits

    async def cancel(self, call: Call) -> Changed:
        """Ends the reminder. Of a cancelled one it answers what the cancel found out."""
        return await self._change(call, Cancel())

    async def reschedule(self, call: Call, schedule: Schedule) -> Changed:
        """Replaces the schedule: exactly one of the two times rings. Raises `AlreadyFired` if the
        old did, `InvalidRequest` if nothing lies ahead.
        """
        return await self._change(call, Reschedule(schedule))

    async def update(
        self,
        call: Call,
        edit: Callable[[Definition], Definition],
        *,
        content: bytes,
        reschedules: bool,
    ) -> Changed:
        """Replaces the definition by what `edit` makes of the stored one: see `actions.Update`.
        Raises `AlreadyFired` and `InvalidRequest`, also what `edit` raises.
        """
        action = Update(edit=edit, content=content, reschedules=reschedules)
        return await self._change(call, action)

    async def pause(self, call: Call, reason: str) -> Changed:
        """Silences it until it is resumed. One that has fired answers that, as a cancel does."""
        return await self._change(call, Pause(reason))

    async def resume(self, call: Call) -> Changed:
        """Lets it ring again; see `actions.Resume`. One that is not paused is answered as it is."""
        return await self._change(call, Resume())

    async def recompute(self, stored: Stored, *, apply: bool) -> tuple[Moved, ...]:
        """Moves what is ahead and not claimed to where our zone and holiday data puts the same
        local intents; the same occurrence ids, strictly after what was claimed. Answers what
        moves, soonest first, and, if `apply`, moves it: a change like any other, made only if
        something moves. Repeating is safe. Of a reminder that has ended or is paused (resuming it
        plans it anew) nothing moves. `stored` may be out of date: it is read again.

        Raises:
            DataNewer: Something ahead was computed with newer data than ours.
            EditionUnknown: It carries an edition that has no place in the order.
            InvalidRequest: Our data can't compute it, such as when its zone is gone.
            Unavailable: A server did not answer.
        """
        record = stored.record
        if not apply:
            return await self._would_move(record)
        call = Call(namespace=record.namespace, reminder_id=record.reminder_id)
        try:
            run = await self._run(call, Recompute())
        except (NotFound, AlreadyEnded):
            return ()
        if run.plan is None or run.outcome is None:
            return ()
        fired = {each.occurrence_id for each in run.outcome.answers if each.was_fired}
        return tuple(one for one in run.plan.moved if one.occurrence_id not in fired)

    async def end_with_group(self, namespace: str, reminder_id: str) -> None:
        """Ends the record of a reminder whose group was cancelled, as a cancel does. Repeating is
        safe.
        """
        call = Call(namespace=namespace, reminder_id=reminder_id)
        with suppress(NotFound, AlreadyEnded):
            await self._run(call, Cancel(), self._reads.stored)

    async def finish(self, reminder_id: str) -> Stored | None:
        """Completes a change that is in progress; answers the record as it then is."""
        return await self._completion.finish(reminder_id)

    # --- starting -------------------------------------------------------------------------------

    async def _change(self, call: Call, action: Action) -> Changed:
        run = await self._run(call, action)
        fired = run.stored.record.status is Status.FIRED
        if run.outcome is not None:
            fired = not run.outcome.applied
        if fired and action.needs_unfired:
            raise AlreadyFired(reminder_id=call.reminder_id)
        answers = run.outcome.answers if run.outcome is not None else ()
        return Changed(
            view=await self._reads.view(run.stored),
            was_fired=any(answer.was_fired for answer in answers) or fired,
            answers=answers,
            stopped=run.outcome.stopped if run.outcome is not None else 0,
        )

    async def _run(self, call: Call, action: Action, read: Read | None = None) -> "_Run":
        """Until it is recorded, by whomever. `read`: `Reads.owned`, unless told otherwise."""
        read = read or self._reads.owned
        if not self._clock.in_bounds():
            raise NotReady(operation=action.name.value)
        for _ in range(ATTEMPTS):
            stored = await read(call.namespace, call.reminder_id)
            if stored.change is not None:
                await self.finish(call.reminder_id)
                stored = await read(call.namespace, call.reminder_id)
            record = stored.record
            done = repeated(record, call, action)
            if done is not None:
                return _Run(stored=stored, outcome=done)
            if call.expected_version is not None and record.version != call.expected_version:
                raise VersionMismatch(actual=record.version)
            if record.status is Status.FIRED:
                if not await self._goes_on(action, record):
                    return _Run(stored=stored)
            elif record.status not in (Status.SCHEDULED, Status.PAUSED):
                raise AlreadyEnded(status=record.status.value)
            new = next_version(record, self._clock.now())
            before, revoked = await self._before(stored)
            plan = await self._plan(action, before, new)
            if plan is None:
                return _Run(stored=stored)
            change = begun(record, plan, call, action, revoked=revoked, shards=self._limits.shards)
            if await self._put_finish(plan.record, change) and await self._store.records.begin(
                plan.record, change
            ):
                # By the change that is there: one of the same request id may have come first.
                after = await self._completion.finish(call.reminder_id, begun=change)
                outcome = recorded(after, change)
                if after is not None and outcome is not None:
                    return _Run(stored=after, outcome=outcome, plan=plan)
        raise CoordinationUnavailable(operation=f"{action.name.value}: lost to other changes")

    async def _goes_on(self, action: Action, record: Record) -> bool:
        """Whether there is something to do although it has fired. Not where it is only shown so: a
        one-shot that rang before its group was cancelled, whose fence stops what waits.
        """
        if record.stopped or not action.stops:
            return False
        stored = await self._store.records.read(record.reminder_id)
        return stored is not None and stored.record.status is Status.FIRED

    async def _plan(self, action: Action, before: Before, new: Record) -> Plan | None:
        try:
            return action.plan(before, new, self._in_haste)
        except TakesLong:
            return await self._aside.run(action.plan, before, new, self._replanner)

    async def _would_move(self, record: Record) -> tuple[Moved, ...]:
        stored = await self._store.records.read(record.reminder_id)
        if stored is None or stored.change is not None:
            return ()
        before, _ = await self._before(stored)
        new = next_version(stored.record, self._clock.now())
        plan = Recompute().plan(before, new, self._replanner)
        return plan.moved if plan is not None else ()

    async def _before(self, stored: Stored) -> tuple[Before, tuple[DueEntry, ...]]:
        """What the change finds, and which entries it makes void."""
        record = stored.record
        ahead = record.silenced
        past: tuple[DueEntry, ...] = ()
        revoked: tuple[DueEntry, ...] = ()
        if record.status is not Status.PAUSED:
            ahead, past = await self._completion.history(record, stored.current)
            revoked = ahead or past[-1:]  # of a rule that ended, its last
        emitted = [entry.occurrence for entry in past if entry.occurrence is not None]
        if record.emitted is not None:
            emitted.append(record.emitted)
        return Before(record=record, ahead=ahead, emitted=tuple(emitted)), revoked

    async def _put_finish(self, new: Record, change: Change) -> bool:
        """Whether it is there in time. One that was written into a settled minute nobody would see.

        No hint: the trailing scan finds it if its slice was read already, and seconds do not
        matter.
        """
        await self._store.due.put([finish_entry(new, change)], stamp=change.stamp)
        return self._clock.now() < change.finish.ring_at


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """How a call ended."""

    stored: Stored
    outcome: Outcome | None = None
    """None: there was nothing to change, or it had fired before."""
    plan: Plan | None = None
    """Of the change that this call made."""

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

import hashlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

import msgspec

from reminders.buckets import finish_entry_id, shard_of
from reminders.errors import (
    AlreadyEnded,
    AlreadyFired,
    CoordinationUnavailable,
    KeyConflict,
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
from reminders.lifecycle.completing import Completion
from reminders.lifecycle.outcomes import finish_entry
from reminders.lifecycle.planning import Planner, instant_ms
from reminders.lifecycle.reading import Reads
from reminders.lifecycle.recomputing import Moved
from reminders.lifecycle.replanning import Replanner
from reminders.lifecycle.requests import Call, Changed
from reminders.lifecycle.writing import EntryWriter, stamp_of
from reminders.model.codec import encode
from reminders.model.definition import Definition, Schedule
from reminders.model.entry import DueEntry, DueKey
from reminders.model.record import Change, Outcome, Record, Status, Stored
from reminders.platform import Platform
from reminders.reminder_id import new_reminder_id

FINISH_AFTER = timedelta(seconds=30)
"""When somebody looks after a change that its process did not end."""
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
        )

    async def _run(self, call: Call, action: Action, read: Read | None = None) -> "_Run":
        """Until it is recorded, by whomever. `read`: `Reads.owned`, unless told otherwise."""
        read = read or self._reads.owned
        if not self._clock.in_bounds():
            raise NotReady(operation=action.name.value)
        content = _content_hash(action, call.expected_version)
        for _ in range(ATTEMPTS):
            stored = await read(call.namespace, call.reminder_id)
            if stored.change is not None:
                await self.finish(call.reminder_id)
                stored = await read(call.namespace, call.reminder_id)
            record = stored.record
            done = _repeated(record, call, action, content)
            if done is not None:
                return _Run(stored=stored, outcome=done)
            if call.expected_version is not None and record.version != call.expected_version:
                raise VersionMismatch(actual=record.version)
            if record.status is Status.FIRED:
                return _Run(stored=stored)
            if record.status not in (Status.SCHEDULED, Status.PAUSED):
                raise AlreadyEnded(status=record.status.value)
            new = self._next_version(record)
            before, revoked = await self._before(stored)
            plan = await self._plan(action, before, new)
            if plan is None:
                return _Run(stored=stored)
            change = self._begun(record, plan, call, action, content, revoked)
            if await self._put_finish(plan.record, change) and await self._store.records.begin(
                plan.record, change
            ):
                # By the change that is there: one of the same request id may have come first.
                after = await self.finish(call.reminder_id)
                outcome = _recorded(after, change)
                if after is not None and outcome is not None:
                    return _Run(stored=after, outcome=outcome, plan=plan)
        raise CoordinationUnavailable(operation=f"{action.name.value}: lost to other changes")

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
        new = self._next_version(stored.record)
        plan = Recompute().plan(before, new, self._replanner)
        return plan.moved if plan is not None else ()

    def _next_version(self, old: Record) -> Record:
        now = instant_ms(self._clock.now())
        return msgspec.structs.replace(
            old,
            version=old.version + 1,
            updated_at=now,
            stamp=max(stamp_of(now), old.stamp + 2),
        )

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

    def _begun(
        self,
        old: Record,
        plan: Plan,
        call: Call,
        action: Action,
        content: bytes,
        revoked: tuple[DueEntry, ...],
    ) -> Change:
        new = plan.record
        return Change(
            action=action.name.value,
            request_id=call.request_id or new_reminder_id(),
            content_hash=content,
            version=new.version,
            stamp=new.stamp,
            previous=old,
            revoked=revoked,
            planned=plan.planned,
            finish=DueKey(
                ring_at=new.updated_at + FINISH_AFTER,
                entry_id=finish_entry_id(old.reminder_id, new.version),
                shard=shard_of(old.reminder_id, self._limits.shards),
            ),
            keeps_schedule=plan.keeps_schedule,
            rows=plan.rows,
        )

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


def _content_hash(action: Action, expected_version: int | None) -> bytes:
    content = encode((action.name.value, action.content, expected_version))
    return hashlib.sha256(content).digest()[:16]


def _recorded(stored: Stored | None, change: Change) -> Outcome | None:
    outcomes = stored.record.outcomes if stored is not None else ()
    return next((each for each in outcomes if each.request_id == change.request_id), None)


def _repeated(record: Record, call: Call, action: Action, content: bytes) -> Outcome | None:
    """The outcome that this call already had, if it is a repeat."""
    for outcome in record.outcomes:
        if call.request_id is not None and outcome.request_id == call.request_id:
            if outcome.content_hash != content:
                raise KeyConflict(key="request_id", reminder_id=record.reminder_id)
            return outcome
    last = record.outcomes[0] if record.outcomes else None
    if last is not None and last.version == record.version and action.repeats(record, last):
        return last
    return None

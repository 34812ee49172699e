"""Cancel and reschedule: one procedure that is safe against a claim in progress (DESIGN §5).

```
 0  due[finish]      written half a minute ahead: whatever happens below, somebody comes back
 1  LWT begin        version v → v+1, the new record, `change` (all that 2–5 need)
 2  due[old]         fate = void                 a scanner that reads it from now on leaves it
 3  Redis revoke     void up to v; who was claimed before?     one that holds a copy is refused
                     claimed → fate = claimed (stamped later, so it wins): it rings, also if Redis
                     dies
 4  live, due[new]   unless the answer forbids it
 5  LWT end          clears `change`, records the outcome; then due[finish] handled
```

Between 1 and 5 the record is *changing*. Whoever meets that — a repeat, the next change, Get,
expander, late scan, dispatcher — runs 2–5 again: `completing`. This module begins changes, steps 0
and 1, and answers the caller from what was recorded.
"""

import hashlib
from datetime import timedelta
from enum import StrEnum

import msgspec

from reminders.buckets import finish_entry_id, shard_of
from reminders.errors import (
    AlreadyEnded,
    AlreadyFired,
    CoordinationUnavailable,
    KeyConflict,
    NotReady,
    VersionMismatch,
)
from reminders.lifecycle.completing import Completion, finish_entry
from reminders.lifecycle.planning import Planner, instant_ms
from reminders.lifecycle.reading import Reads
from reminders.lifecycle.requests import Changed
from reminders.lifecycle.writing import EntryWriter, stamp_of
from reminders.model.codec import encode
from reminders.model.definition import Schedule
from reminders.model.entry import DueEntry, DueKey
from reminders.model.record import Change, Outcome, Record, Status, Stored
from reminders.platform import Platform
from reminders.reminder_id import new_reminder_id

FINISH_AFTER = timedelta(seconds=30)
"""When somebody looks after a change that its process did not end."""
ATTEMPTS = 5
"""How often a change starts over after it lost to another one."""


class Action(StrEnum):
    """What a change does."""

    CANCEL = "cancel"
    RESCHEDULE = "reschedule"


class Changes:
    """The use cases that change a reminder."""

    def __init__(
        self, platform: Platform, writer: EntryWriter, planner: Planner, reads: Reads
    ) -> None:
        self._store = platform.store
        self._completion = Completion(platform, writer, planner)
        self._planner = planner
        self._reads = reads
        self._clock = platform.clock
        self._limits = platform.limits

    async def cancel(
        self,
        namespace: str,
        reminder_id: str,
        *,
        expected_version: int | None,
        request_id: str | None,
    ) -> Changed:
        """Ends the reminder. Of a cancelled one it answers what the cancel found out."""
        return await self._change(
            Action.CANCEL, namespace, reminder_id, None, expected_version, request_id
        )

    async def reschedule(
        self,
        namespace: str,
        reminder_id: str,
        schedule: Schedule,
        *,
        expected_version: int | None,
        request_id: str | None,
    ) -> Changed:
        """Replaces the schedule: exactly one of the two times rings. Raises `AlreadyFired` if the
        old did.
        """
        return await self._change(
            Action.RESCHEDULE, namespace, reminder_id, schedule, expected_version, request_id
        )

    async def finish(self, reminder_id: str) -> Stored | None:
        """Completes a change that is in progress; answers the record as it then is."""
        return await self._completion.finish(reminder_id)

    # --- starting -------------------------------------------------------------------------------

    async def _change(
        self,
        action: Action,
        namespace: str,
        reminder_id: str,
        schedule: Schedule | None,
        expected_version: int | None,
        request_id: str | None,
    ) -> Changed:
        if not self._clock.in_bounds():
            raise NotReady(operation=action.value)
        content = hashlib.sha256(encode((action.value, schedule, expected_version))).digest()[:16]
        for _ in range(ATTEMPTS):
            stored = await self._reads.owned(namespace, reminder_id)
            if stored.change is not None:
                stored = await self.finish(reminder_id) or stored
            record = stored.record
            done = _repeated(record, action, request_id, content)
            if done is not None:
                return await self._answer(stored, done)
            if expected_version is not None and record.version != expected_version:
                raise VersionMismatch(actual=record.version)
            if record.status is Status.FIRED:
                return await self._refuse(stored, action)
            if record.status not in (Status.SCHEDULED, Status.PAUSED):
                raise AlreadyEnded(status=record.status.value)
            new, change = await self._begin(stored, action, schedule, request_id, content)
            if await self._put_finish(new, change) and await self._store.records.begin(new, change):
                # By the change that is there: one of the same request id may have come first.
                after = await self.finish(reminder_id)
                outcome = _recorded(after, change)
                if after is not None and outcome is not None:
                    return await self._answer(after, outcome)
        raise CoordinationUnavailable(operation=f"{action.value}: lost to other changes")

    async def _begin(
        self,
        stored: Stored,
        action: Action,
        schedule: Schedule | None,
        request_id: str | None,
        content: bytes,
    ) -> tuple[Record, Change]:
        old = stored.record
        now = instant_ms(self._clock.now())
        new = msgspec.structs.replace(
            old,
            version=old.version + 1,
            updated_at=now,
            stamp=max(stamp_of(now), old.stamp + 2),
        )
        planned: tuple[DueEntry, ...] = ()
        if schedule is not None:
            definition = msgspec.structs.replace(old.definition, schedule=schedule)
            new = msgspec.structs.replace(new, definition=definition)
            planned = self._planner.first(new)
        else:
            new = msgspec.structs.replace(new, status=Status.CANCELLED)
        present, past = await self._completion.history(old, stored.current)
        change = Change(
            action=action.value,
            request_id=request_id or new_reminder_id(),
            content_hash=content,
            version=new.version,
            stamp=new.stamp,
            previous=old,
            revoked=present or past[-1:],  # of a rule that ended, its last
            planned=planned,
            finish=DueKey(
                ring_at=now + FINISH_AFTER,
                entry_id=finish_entry_id(old.reminder_id, new.version),
                shard=shard_of(old.reminder_id, self._limits.shards),
            ),
        )
        return new, change

    async def _put_finish(self, new: Record, change: Change) -> bool:
        """Whether it is there in time. One that was written into a settled minute nobody would see.

        No hint: the trailing scan finds it if its slice was read already, and seconds do not
        matter.
        """
        await self._store.due.put([finish_entry(new, change)], stamp=change.stamp)
        return self._clock.now() < change.finish.ring_at

    # --- answering ------------------------------------------------------------------------------

    async def _answer(self, stored: Stored, outcome: Outcome) -> Changed:
        if outcome.action == Action.RESCHEDULE and not outcome.applied:
            raise AlreadyFired(reminder_id=stored.record.reminder_id)
        return Changed(
            view=await self._reads.view(stored),
            was_fired=any(answer.was_fired for answer in outcome.answers),
            answers=outcome.answers,
        )

    async def _refuse(self, stored: Stored, action: Action) -> Changed:
        if action is Action.RESCHEDULE:
            raise AlreadyFired(reminder_id=stored.record.reminder_id)
        return Changed(view=await self._reads.view(stored), was_fired=True)


def _recorded(stored: Stored | None, change: Change) -> Outcome | None:
    outcomes = stored.record.outcomes if stored is not None else ()
    return next((each for each in outcomes if each.request_id == change.request_id), None)


def _repeated(
    record: Record, action: Action, request_id: str | None, content: bytes
) -> Outcome | None:
    """The outcome that this call already had, if it is a repeat."""
    for outcome in record.outcomes:
        if request_id is not None and outcome.request_id == request_id:
            if outcome.content_hash != content:
                raise KeyConflict(key="request_id", reminder_id=record.reminder_id)
            return outcome
    if action is Action.CANCEL and record.outcomes:
        last = record.outcomes[0]
        ended = record.status is Status.CANCELLED or (not last.applied)
        if last.action == Action.CANCEL and ended and last.version == record.version:
            return last
    return None

"""Cancel and reschedule: one procedure that is safe against a claim in progress (DESIGN §5).

```
 0  due[finish]      written half a minute ahead: whatever happens below, somebody comes back
 1  LWT begin        version v → v+1, the new record, `change` (all that 2–5 need)
 2  due[old]         fate = void                 a scanner that reads it from now on leaves it
 3  Redis revoke     void up to v; who was claimed before?     a scanner that holds a copy is
 refused
                     claimed → fate = claimed (stamped later, so it wins): it rings, also if Redis
                     dies
 4  live, due[new]   unless the answer forbids it
 5  LWT end          clears `change`, records the outcome; then due[finish] handled
```

Between 1 and 5 the record is *changing*. Whoever meets that — a repeat, the next change, Get,
expander, late
scan, dispatcher — runs 2–5 again (`Changes.finish`). All steps are idempotent, and after 3 no first
claim of version v can succeed, so everybody finds the same answer unless Redis lost data; then step
5
lets one win, and who loses makes void what it inserted against the recorded outcome.

*Not fired* is answered only if there is no claim, no outcome in the due row read again afterwards,
and no
doubt: the minute is not settled, and, if Redis is not what it was, the time is ahead of it by a
margin. In
doubt the ledger decides; if it knows nothing, the answer is "fired", and the entry is marked so
that it
does ring.
"""

import hashlib
from collections.abc import Sequence
from datetime import timedelta
from enum import StrEnum

import msgspec
import structlog

from reminders.buckets import MINUTE, finish_entry_id, shard_of
from reminders.errors import (
    AlreadyEnded,
    AlreadyFired,
    CoordinationUnavailable,
    KeyConflict,
    NotReady,
    VersionMismatch,
)
from reminders.lifecycle.planning import Planner, instant_ms
from reminders.lifecycle.reading import Reads
from reminders.lifecycle.requests import Changed
from reminders.lifecycle.writing import EntryWriter, stamp_of
from reminders.model.codec import encode
from reminders.model.definition import Recurring, Schedule
from reminders.model.entry import DueEntry, DueKey, Fate, Kind
from reminders.model.ledger import OccurrenceStatus
from reminders.model.record import (
    Change,
    OccurrenceAnswer,
    Outcome,
    Record,
    Status,
    Stored,
)
from reminders.platform import Platform
from reminders.ports import Revocation
from reminders.reminder_id import new_reminder_id

log = structlog.get_logger(__name__)

FINISH_AFTER = timedelta(seconds=30)
"""When somebody looks after a change that its process did not end."""
KEPT_OUTCOMES = 8
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
        self._coordination = platform.coordination
        self._writer = writer
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
        stored = await self._store.records.read(reminder_id)
        while stored is not None and stored.change is not None:
            await self._complete(stored.record, stored.change)
            stored = await self._store.records.read(reminder_id)
        return stored

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
            new, change = self._begin(stored, action, schedule, request_id, content)
            await self._put_finish(new, change)
            if await self._store.records.begin(new, change):
                await self._complete(new, change)
                after = await self._store.records.read(reminder_id)
                assert after is not None
                outcome = next(
                    o for o in after.record.outcomes if o.request_id == change.request_id
                )
                return await self._answer(after, outcome)
        raise CoordinationUnavailable(operation=f"{action.value}: lost to other changes")

    def _begin(
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
        change = Change(
            action=action.value,
            request_id=request_id or new_reminder_id(),
            content_hash=content,
            version=new.version,
            stamp=new.stamp,
            previous=old,
            revoked=stored.current,
            planned=planned,
            finish=DueKey(
                ring_at=now + FINISH_AFTER,
                entry_id=finish_entry_id(old.reminder_id, new.version),
                shard=shard_of(old.reminder_id, self._limits.shards),
            ),
        )
        return new, change

    async def _put_finish(self, new: Record, change: Change) -> None:
        """No hint: the trailing scan finds it if its slice was read already, and seconds do not
        matter.
        """
        await self._store.due.put([_finish_entry(new, change)], stamp=change.stamp)

    # --- completing -----------------------------------------------------------------------------

    async def _complete(self, new: Record, change: Change) -> None:
        """Steps 2–5, from the start: by whoever began or met the change."""
        keys = [entry.key for entry in change.revoked]
        await self._store.due.mark(keys, Fate.VOID, stamp=change.stamp)
        answers = await self._answers(change)
        fired = [e for e, a in zip(change.revoked, answers, strict=True) if a.was_fired]
        if fired:
            claimed = [entry.key for entry in fired]
            await self._store.due.mark(claimed, Fate.CLAIMED, stamp=change.stamp + 1)
        applied = _applies(change, answers)
        if applied:
            await self._insert(new, change)
        outcome = Outcome(
            request_id=change.request_id,
            action=change.action,
            content_hash=change.content_hash,
            version=change.version,
            applied=applied,
            answers=answers,
        )
        await self._end(new, change, outcome)
        await self._store.due.handled([_finish_entry(new, change)], at=self._clock.now())

    async def _answers(self, change: Change) -> tuple[OccurrenceAnswer, ...]:
        """Step 3: for each entry of the old version, whether it fired."""
        horizon = self._clock.now() + self._limits.lookahead + self._limits.margin
        near = [entry for entry in change.revoked if entry.key.ring_at <= horizon]
        revocation: Revocation | None = None
        if near:  # what is further ahead is in no scanner's heap
            revocation = await self._coordination.claims.revoke(
                change.finish.shard,
                change.previous.reminder_id,
                through_version=change.version - 1,
                entries=near,
            )
        answers = []
        for entry in change.revoked:
            assert entry.occurrence is not None
            was_fired = revocation is not None and await self._fired(entry, revocation)
            answers.append(
                OccurrenceAnswer(
                    occurrence_id=entry.occurrence.occurrence_id,
                    planned_at=entry.occurrence.planned_at,
                    was_fired=was_fired,
                )
            )
        return tuple(answers)

    async def _fired(self, entry: DueEntry, revocation: Revocation) -> bool:
        if entry.dedupe_id in revocation.claimed:
            return True
        state = await self._store.due.read(entry.key)
        if state is not None and state.handled_at is not None:
            return True
        if not await self._in_doubt(entry, revocation):
            return False
        assert entry.occurrence is not None
        rows = await self._store.ledger.page(
            entry.reminder_id, occurrence_id=entry.occurrence.occurrence_id, limit=1
        )
        log.warning("change.in_doubt", entry_id=entry.key.entry_id, ledger_rows=len(rows))
        return not rows or rows[0].ended not in (
            OccurrenceStatus.CANCELLED,
            OccurrenceStatus.SKIPPED,
        )

    async def _in_doubt(self, entry: DueEntry, revocation: Revocation) -> bool:
        """Whether a claim may have been made that nobody can see any more."""
        if revocation.moved and entry.key.ring_at <= revocation.server_now + self._limits.margin:
            return True
        if entry.key.minute + MINUTE > revocation.server_now:
            return False  # a minute that is not over is not settled
        progress = await self._store.progress.read()
        return entry.key.minute < progress[entry.key.shard]

    async def _insert(self, new: Record, change: Change) -> None:
        """Step 4. Live entries are acknowledged before their due entries are written."""
        user_id = new.definition.user_id
        await self._store.users.remove(change.revoked, user_id, stamp=change.stamp)
        if change.planned:
            await self._store.records.add_live(change.planned, stamp=change.stamp)
            await self._store.users.add(change.planned, user_id, stamp=change.stamp)
            await self._writer.put(change.planned, stamp=change.stamp)

    async def _end(self, new: Record, change: Change, outcome: Outcome) -> None:
        """Step 5. A refused change leaves the old definition, under the new version, as fired."""
        if outcome.applied:
            record = new
        else:
            record = msgspec.structs.replace(
                change.previous,
                version=new.version,
                stamp=new.stamp,
                updated_at=new.updated_at,
                status=Status.FIRED,
            )
        kept = (outcome, *record.outcomes)[:KEPT_OUTCOMES]
        record = msgspec.structs.replace(record, outcomes=kept)
        if await self._store.records.end(record, change):
            return
        after = await self._store.records.read(new.reminder_id)
        outcomes = after.record.outcomes if after is not None else ()
        recorded = next((o for o in outcomes if o.version == change.version), None)
        if outcome.applied and (recorded is None or not recorded.applied):
            await self._store.due.mark(
                [entry.key for entry in change.planned], Fate.VOID, stamp=change.stamp
            )

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


def _applies(change: Change, answers: Sequence[OccurrenceAnswer]) -> bool:
    """A rule can always be changed; a one-shot not once it fired, or both times would ring."""
    if isinstance(change.previous.definition.schedule, Recurring):
        return True
    return not answers or not all(answer.was_fired for answer in answers)


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


def _finish_entry(new: Record, change: Change) -> DueEntry:
    return DueEntry(
        key=change.finish,
        kind=Kind.FINISH,
        namespace=new.namespace,
        reminder_id=new.reminder_id,
        version=change.version,
        occurrence=None,
        record_created_at=new.created_at,
    )

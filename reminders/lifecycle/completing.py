"""Steps 2–5 of a change (`changing` has the picture), by whoever began it or met it half-way.

All steps are idempotent. After step 3 no first claim of the old version can succeed, so everybody
who runs them finds the same answer, unless Redis lost data in between; then step 5 lets one win,
and who loses makes void what it inserted against the recorded outcome.

Which entries a change revokes is decided *after* step 1: an expander that read the record before it
may have written one more occurrence, and anything written later it takes back itself.

Which of them had fired, `evidence` finds out; what is left lying about, `aftermath` clears away.
"""

import asyncio
from collections.abc import Collection, Sequence
from datetime import datetime

import msgspec

from reminders.lifecycle.actions import Name
from reminders.lifecycle.aftermath import Aftermath
from reminders.lifecycle.beside import carried, not_rung, outstanding
from reminders.lifecycle.endings import write_ends
from reminders.lifecycle.evidence import Evidence
from reminders.lifecycle.outcomes import (
    emitted_by,
    finish_entry,
    outcome_of,
)
from reminders.lifecycle.planning import Planner
from reminders.lifecycle.replanning import Replanner
from reminders.lifecycle.stopping import Stopping, Waiting, with_stopped
from reminders.lifecycle.writing import EntryWriter
from reminders.model.definition import Recurring
from reminders.model.entry import DueEntry, DueKey, Fate, Occurrence
from reminders.model.record import Change, Outcome, Record, Status, Stored
from reminders.platform import Platform

KEPT_OUTCOMES = 8
SILENCING: dict[str, str] = {Name.CANCEL: "cancelled", Name.PAUSE: "paused"}
"""Actions that make a trigger void as well, if nobody has claimed it yet; and the reason."""


class Completion:
    """Brings changes to their end."""

    def __init__(self, platform: Platform, writer: EntryWriter, planner: Planner) -> None:
        self._store = platform.store
        self._clock = platform.clock
        self._writer = writer
        self._replanner = Replanner(planner)
        self._evidence = Evidence(platform)
        self._stopping = Stopping(platform)
        self._aftermath = Aftermath(platform)

    async def finish(self, reminder_id: str, begun: Change | None = None) -> Stored | None:
        """Completes a change that is in progress; answers the record as it then is. `begun`: the
        one that the caller has just begun; its entries are made void while the record is read.
        """
        known_at = self._clock.now()
        if begun is None:
            stored = await self._store.records.read(reminder_id)
            voided: tuple[DueKey, ...] = ()
        else:
            voided = tuple(entry.key for entry in begun.revoked)
            stored, _ = await asyncio.gather(
                self._store.records.read(reminder_id),
                self._store.due.mark(voided, Fate.VOID, stamp=begun.stamp),
            )
        while stored is not None and stored.change is not None:
            known = voided if stored.change == begun else ()
            known_at, stored = await self._complete(stored, stored.change, known_at, known)
        return stored

    async def history(
        self, record: Record, entries: Sequence[DueEntry]
    ) -> tuple[tuple[DueEntry, ...], tuple[DueEntry, ...]]:
        """Splits a record's live entries into what a change is about and what is past.

        A rule keeps a few old ones that were handled long ago: nobody asks about these. A one-shot
        has no past; there the question is whether it fired.
        """
        if not isinstance(record.definition.schedule, Recurring):
            return tuple(entries), ()
        now = self._clock.now()
        present: list[DueEntry] = []
        past: list[DueEntry] = []
        for entry in entries:
            state = await self._store.due.read(entry.key) if entry.key.ring_at <= now else None
            handled = state is not None and state.handled_at is not None
            (past if handled else present).append(entry)
        return tuple(present), tuple(past)

    async def _complete(
        self, stored: Stored, change: Change, known_at: datetime, voided: Collection[DueKey]
    ) -> tuple[datetime, Stored | None]:
        """The record as it is afterwards, and the clock before it was read."""
        new = stored.record
        revoked, past = await self._revoked(stored, change)
        triggers = await outstanding(
            self._store, stored, change.previous.version, self._clock.now()
        )
        old = (*revoked, *triggers)
        fired, waiting = await asyncio.gather(
            self._fired(change, old, voided), self._waiting(change)
        )
        silent = change.action in SILENCING
        going_on = [e for e in triggers if not silent and e.occurrence_id not in fired]
        told = [entry for entry in triggers if entry not in going_on]
        outcome = with_stopped(outcome_of(change, revoked, told, fired), waiting)
        emitted = emitted_by(change, past, revoked, fired)
        planned = self._planned(new, change, outcome, emitted)
        if outcome.applied:
            await self._settle(change, revoked, fired)
            if new.status is Status.SCHEDULED:
                await self._insert(new, change, planned)
        if going_on:
            await self._carry(new, change, outcome, going_on, known_at)
        silenced = [entry for entry in told if entry.occurrence_id not in fired]
        if silenced:
            rows = not_rung(silenced, SILENCING[change.action])
            await write_ends(self._store, rows, at=self._clock.now())
        ended = await self._end(new, change, outcome, planned, emitted)
        if ended:
            await self._stopping.end(waiting)
        else:
            await self._aftermath.take_back(change, planned, old, fired)
        now = self._clock.now()
        after, *_ = await asyncio.gather(
            self._store.records.read(new.reminder_id),
            self._store.due.handled([finish_entry(new, change)], at=now),
            *([self._aftermath.tidy(stored, change, outcome, old)] if ended else []),
        )
        return now, after

    # --- steps 2 and 3 --------------------------------------------------------------------------

    async def _revoked(
        self, stored: Stored, change: Change
    ) -> tuple[tuple[DueEntry, ...], tuple[DueEntry, ...]]:
        """The old version's entries, as known at the beginning and as they are now; and those that
        are past.
        """
        known = {entry.key for entry in change.revoked}
        old = [entry for entry in stored.live if entry.version == change.previous.version]
        since = [entry for entry in old if entry.key not in known]
        present, past = await self.history(change.previous, since)
        return (*change.revoked, *present), past

    async def _fired(
        self, change: Change, old: Sequence[DueEntry], voided: Collection[DueKey]
    ) -> set[str]:
        """What of the old version rings all the same. `voided` are void already."""
        keys = [entry.key for entry in old if entry.key not in voided]
        if keys:
            await self._store.due.mark(keys, Fate.VOID, stamp=change.stamp)
        fired = await self._evidence.fired(change, old)
        claimed = [entry.key for entry in old if entry.occurrence_id in fired]
        if claimed:
            await self._store.due.mark(claimed, Fate.CLAIMED, stamp=change.stamp + 1)
        return fired

    async def _waiting(self, change: Change) -> tuple[Waiting, ...]:
        return await self._stopping.waiting(change) if change.action == Name.CANCEL else ()

    # --- steps 4 and 5 --------------------------------------------------------------------------

    def _planned(
        self, new: Record, change: Change, outcome: Outcome, emitted: Sequence[Occurrence]
    ) -> tuple[DueEntry, ...]:
        """What is ahead under the new version."""
        if not outcome.applied or new.status is Status.CANCELLED:
            return ()
        return self._replanner.onward(
            new, change.planned, emitted, keeps_schedule=change.keeps_schedule
        )

    async def _settle(
        self, change: Change, revoked: Sequence[DueEntry], fired: Collection[str]
    ) -> None:
        """The old version's index rows, and the ledger's word on what will not ring."""
        audience = change.previous.definition.audience
        await self._store.users.remove(revoked, audience, stamp=change.stamp)
        rows = [row for row in change.rows if row.occurrence.occurrence_id not in fired]
        if rows:
            await write_ends(self._store, rows, at=self._clock.now())

    async def _insert(self, new: Record, change: Change, planned: Sequence[DueEntry]) -> None:
        """Live entries are acknowledged before their due entries are written; and these are written
        only while the change is in progress. Somebody else may have ended it meanwhile, as refused:
        what we wrote then could ring before step 5 tells us.
        """
        if not planned:
            return
        await self._store.records.add_live(planned, stamp=change.stamp)
        await self._store.users.add(planned, new.definition.audience, stamp=change.stamp)
        known_at = self._clock.now()
        again = await self._store.records.read(new.reminder_id)
        if again is not None and again.change is not None and again.change.version == new.version:
            await self._writer.put(planned, stamp=change.stamp, known_at=known_at)

    async def _carry(
        self,
        new: Record,
        change: Change,
        outcome: Outcome,
        triggers: Sequence[DueEntry],
        known_at: datetime,
    ) -> None:
        """Triggers are beside the schedule: what changes that lets them ring all the same."""
        record = new
        if not outcome.applied:
            record = msgspec.structs.replace(change.previous, version=new.version)
        entries = carried(record, triggers)
        await self._store.records.add_live(entries, stamp=change.stamp)
        await self._writer.put(entries, stamp=change.stamp, known_at=known_at)

    async def _end(
        self,
        new: Record,
        change: Change,
        outcome: Outcome,
        planned: Sequence[DueEntry],
        emitted: Sequence[Occurrence],
    ) -> bool:
        """Whether this run ended it. A refused change leaves the old definition, under the new
        version, as fired.
        """
        if outcome.applied:
            record = self._applied(new, change.previous, planned, emitted)
        else:
            record = msgspec.structs.replace(
                change.previous,
                version=new.version,
                stamp=new.stamp,
                updated_at=new.updated_at,
                status=Status.FIRED,
                stopped=change.action == Name.CANCEL,
            )
        kept = (outcome, *record.outcomes)[:KEPT_OUTCOMES]
        record = msgspec.structs.replace(record, outcomes=kept)
        return await self._store.records.end(record, change)

    def _applied(
        self,
        new: Record,
        previous: Record,
        planned: Sequence[DueEntry],
        emitted: Sequence[Occurrence],
    ) -> Record:
        """A paused record holds itself what is nowhere else."""
        before = (previous.emitted,) if previous.emitted is not None else ()
        furthest = self._replanner.furthest(new, (*emitted, *before))
        if new.status is not Status.PAUSED:
            return msgspec.structs.replace(new, emitted=furthest)
        silenced = tuple(msgspec.structs.replace(entry, body=b"") for entry in planned)
        return msgspec.structs.replace(new, emitted=furthest, silenced=silenced)

"""Steps 2–5 of a change (`changing` has the picture), by whoever began it or met it half-way.

All steps are idempotent. After step 3 no first claim of the old version can succeed, so everybody
who runs them finds the same answer, unless Redis lost data in between; then step 5 lets one win,
and who loses makes void what it inserted against the recorded outcome.

Which entries a change revokes is decided *after* step 1: an expander that read the record before it
may have written one more occurrence, and anything written later it takes back itself.

*Not fired* is answered only if there is no claim, no outcome in the due row read again afterwards,
and no doubt: the minute is not settled, and, if Redis is not what it was, the time is ahead of it
by a margin. In doubt the ledger decides; if it knows nothing, the answer is "fired", and the entry
is marked so that it does ring.
"""

from collections.abc import Collection, Sequence
from datetime import datetime

import msgspec
import structlog

from reminders.buckets import MINUTE
from reminders.errors import StoreUnavailable
from reminders.lifecycle.beside import carried, not_rung, outstanding
from reminders.lifecycle.creating import MISSING_IS_UNWRITTEN
from reminders.lifecycle.grouping import CLOCKS_APART, fences_of
from reminders.lifecycle.outcomes import (
    emitted_by,
    finish_entry,
    outcome_of,
)
from reminders.lifecycle.planning import Planner
from reminders.lifecycle.replanning import Replanner
from reminders.lifecycle.writing import CLOCKS_DIFFER, EntryWriter, stamp_of
from reminders.model.definition import Recurring
from reminders.model.entry import DueEntry, Fate, Occurrence
from reminders.model.ledger import OccurrenceStatus
from reminders.model.record import Change, Outcome, Record, Status, Stored
from reminders.platform import Platform
from reminders.ports import Revocation

log = structlog.get_logger(__name__)

KEPT_OUTCOMES = 8
SILENCING = {"cancel": "cancelled", "pause": "paused"}
"""Actions that make a trigger void as well, if nobody has claimed it yet; and the reason."""


class Completion:
    """Brings changes to their end."""

    def __init__(self, platform: Platform, writer: EntryWriter, planner: Planner) -> None:
        self._store = platform.store
        self._claims = platform.coordination.claims
        self._clock = platform.clock
        self._limits = platform.limits
        self._writer = writer
        self._replanner = Replanner(planner)

    async def finish(self, reminder_id: str) -> Stored | None:
        """Completes a change that is in progress; answers the record as it then is."""
        while True:
            known_at = self._clock.now()
            stored = await self._store.records.read(reminder_id)
            if stored is None or stored.change is None:
                return stored
            await self._complete(stored, stored.change, known_at)

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

    async def _complete(self, stored: Stored, change: Change, known_at: datetime) -> None:
        new = stored.record
        revoked, past = await self._revoked(stored, change)
        triggers = await outstanding(
            self._store, stored, change.previous.version, self._clock.now()
        )
        old = (*revoked, *triggers)
        await self._store.due.mark([entry.key for entry in old], Fate.VOID, stamp=change.stamp)
        fired = await self._fired_ones(change, old)
        claimed = [entry.key for entry in old if entry.occurrence_id in fired]
        if claimed:
            await self._store.due.mark(claimed, Fate.CLAIMED, stamp=change.stamp + 1)
        silent = change.action in SILENCING
        going_on = [e for e in triggers if not silent and e.occurrence_id not in fired]
        told = [entry for entry in triggers if entry not in going_on]
        outcome = outcome_of(change, revoked, told, fired)
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
            await self._store.ledger.write(rows, at=self._clock.now())
        if await self._end(new, change, outcome, planned, emitted):
            await self._tidy(stored, change, outcome, old)
        elif claimed:
            await self._take_back(change, old, fired)
        await self._store.due.handled([finish_entry(new, change)], at=self._clock.now())

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

    async def _fired_ones(self, change: Change, revoked: Sequence[DueEntry]) -> set[str]:
        """The occurrences that fired."""
        horizon = self._clock.now() + self._limits.lookahead + self._limits.margin
        near = [entry for entry in revoked if entry.key.ring_at <= horizon]
        if not near:  # what is further ahead is in no scanner's heap
            return set()
        revocation = await self._claims.revoke(
            change.finish.shard,
            change.previous.reminder_id,
            through_version=change.version - 1,
            entries=near,
        )
        fired = set()
        for entry in near:
            if await self._fired(change, entry, revocation):
                fired.add(entry.occurrence_id)
        return fired

    async def _fired(self, change: Change, entry: DueEntry, revocation: Revocation) -> bool:
        if entry.dedupe_id in revocation.claimed and not await self._rings_anew(change, entry):
            return True
        state = await self._store.due.read(entry.key)
        if state is not None and (state.handled_at is not None or state.fate is Fate.CLAIMED):
            return True
        if state is None and self._unwritten(change, entry):
            return False
        if not await self._in_doubt(change, entry, revocation) or await self._inserted(change):
            return False
        if await self._fenced_off(entry):
            return False
        rows = await self._store.ledger.page(
            entry.reminder_id, occurrence_id=entry.occurrence_id, limit=1
        )
        log.warning("change.in_doubt", entry_id=entry.key.entry_id, ledger_rows=len(rows))
        return not rows or rows[0].ended not in (
            OccurrenceStatus.CANCELLED,
            OccurrenceStatus.SKIPPED,
        )

    async def _fenced_off(self, entry: DueEntry) -> bool:
        """Whether its time came after its group was cancelled: nobody can have claimed it."""
        fenced = await fences_of(self._store.fences, [entry])
        settled = entry.key.ring_at - 2 * CLOCKS_APART
        return fenced.covers(entry.namespace, entry.group_id, entry.record_created_at) and (
            settled > fenced.fences[entry.namespace, entry.group_id or ""]
        )

    async def _rings_anew(self, change: Change, entry: DueEntry) -> bool:
        """Whether the claim may be of the new version's entry of the same occurrence. Then somebody
        went as far as to insert it, who had asked before and marked what had been claimed.
        """
        same = any(each.dedupe_id == entry.dedupe_id for each in change.planned)
        return same and await self._inserted(change)

    def _unwritten(self, change: Change, entry: DueEntry) -> bool:
        """Whether a row that is not there was never written, so that nobody can have claimed it:
        its expander died after the live entry. Not one that expired or is on the way elsewhere.
        """
        moved = entry.key.ring_at > max(entry.promised_at, change.previous.updated_at)
        return not moved and entry.key.ring_at > self._clock.now() - MISSING_IS_UNWRITTEN

    async def _in_doubt(self, change: Change, entry: DueEntry, revocation: Revocation) -> bool:
        """Whether a claim may have been made that nobody can see any more."""
        known_since = revocation.known_since
        if known_since is None:
            if entry.key.ring_at <= revocation.server_now + self._limits.margin:
                return True
        elif max(entry.promised_at, change.previous.updated_at) <= known_since + CLOCKS_DIFFER:
            return True  # another server, or this one before it lost its data, may have claimed it
        if entry.key.minute + MINUTE > revocation.server_now:
            return False  # a minute that is not over is not settled
        progress = await self._store.progress.read()
        return entry.key.minute < progress[entry.key.shard]

    async def _inserted(self, change: Change) -> bool:
        """Whether somebody who ran this before wrote the new entries already: it had asked when
        Redis still knew, and marked what had fired.
        """
        for entry in change.planned:
            if await self._store.due.read(entry.key) is not None:
                return True
        return False

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
        user_id = change.previous.definition.user_id
        await self._store.users.remove(revoked, user_id, stamp=change.stamp)
        rows = [row for row in change.rows if row.occurrence.occurrence_id not in fired]
        if rows:
            await self._store.ledger.write(rows, at=self._clock.now())

    async def _insert(self, new: Record, change: Change, planned: Sequence[DueEntry]) -> None:
        """Live entries are acknowledged before their due entries are written; and these are written
        only while the change is in progress. Somebody else may have ended it meanwhile, as refused:
        what we wrote then could ring before step 5 tells us.
        """
        if not planned:
            return
        await self._store.records.add_live(planned, stamp=change.stamp)
        await self._store.users.add(planned, new.definition.user_id, stamp=change.stamp)
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
            )
        kept = (outcome, *record.outcomes)[:KEPT_OUTCOMES]
        record = msgspec.structs.replace(record, outcomes=kept)
        if await self._store.records.end(record, change):
            return True
        after = await self._store.records.read(new.reminder_id)
        outcomes = after.record.outcomes if after is not None else ()
        recorded = next((o for o in outcomes if o.version == change.version), None)
        if planned and (recorded is None or not recorded.applied):
            keys = [entry.key for entry in planned]
            await self._store.due.mark(keys, Fate.VOID, stamp=change.stamp)
        return False

    async def _take_back(
        self, change: Change, old: Sequence[DueEntry], fired: Collection[str]
    ) -> None:
        """Makes void what we marked as claimed, in doubt, where somebody who knew better has
        recorded that it did not fire. Stamped later still, so it wins.
        """
        after = await self._store.records.read(change.previous.reminder_id)
        outcomes = after.record.outcomes if after is not None else ()
        recorded = next((o for o in outcomes if o.version == change.version), None)
        answers = recorded.answers if recorded is not None else ()
        silent = {each.occurrence_id for each in answers if not each.was_fired}
        keys = [e.key for e in old if e.occurrence_id in silent.intersection(fired)]
        if keys:
            await self._store.due.mark(keys, Fate.VOID, stamp=change.stamp + 2)

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

    async def _tidy(
        self, stored: Stored, change: Change, outcome: Outcome, revoked: Sequence[DueEntry]
    ) -> None:
        """Drops live entries that nothing names any more: a read brings only the newest few, and
        must bring those that count. What rings stays: its body may stand in its live entry.

        It changes nothing for the caller, so it may fail.
        """
        fired = {answer.occurrence_id for answer in outcome.answers if answer.was_fired}
        gone = {entry.key.entry_id for entry in revoked if entry.occurrence_id not in fired}
        now = self._clock.now()
        gone |= {
            entry.key.entry_id
            for entry in stored.live
            if entry.version < change.previous.version and entry.key.ring_at > now
        }
        try:
            if not outcome.applied and change.planned:  # of somebody who found otherwise and died
                keys = [entry.key for entry in change.planned]
                await self._store.due.mark(keys, Fate.VOID, stamp=change.stamp)
            if gone:
                stamp = max(change.stamp, stamp_of(now))  # one that was moved is stamped later
                await self._store.records.drop_live(
                    change.previous.reminder_id, sorted(gone), stamp=stamp
                )
        except StoreUnavailable as error:
            log.warning(
                "change.untidy", reminder_id=change.previous.reminder_id, operation=error.operation
            )

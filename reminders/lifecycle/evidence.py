"""Step 3 of a change: which of the old version's occurrences had fired.

*Not fired* is answered only if there is no claim, no outcome in the due row read again afterwards,
and no doubt: the minute is not settled, and the time is behind that from which on Redis knows all
(now, if it is not what it was) by more than clocks differ. In doubt the ledger decides; if it knows
nothing, the answer is "fired", and the entry is marked so that it does ring.
"""

from collections.abc import Sequence

import structlog

from reminders.buckets import MINUTE
from reminders.lifecycle.creation_keys import MISSING_IS_UNWRITTEN
from reminders.lifecycle.grouping import CLOCKS_APART, fences_of
from reminders.lifecycle.writing import CLOCKS_DIFFER
from reminders.model.entry import DueEntry, Fate
from reminders.model.ledger import OccurrenceStatus
from reminders.model.record import Change
from reminders.platform import Platform
from reminders.ports import Revocation

log = structlog.get_logger(__name__)


class Evidence:
    """What Redis, due rows, ledger and fences know of first claims."""

    def __init__(self, platform: Platform) -> None:
        self._store = platform.store
        self._claims = platform.coordination.claims
        self._clock = platform.clock
        self._limits = platform.limits

    async def fired(self, change: Change, revoked: Sequence[DueEntry]) -> set[str]:
        """The occurrences among `revoked` that fired, by their ids. From now on no first claim of
        the old version succeeds.
        """
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
        # Another server, or this one before it lost its data, may have claimed what was due by
        # then: a claim is refused further ahead than 0.1 s, which is within what clocks differ by;
        # and a server that was replaced claims no more.
        known_since = revocation.known_since or revocation.server_now
        if max(entry.promised_at, change.previous.updated_at) <= known_since + CLOCKS_DIFFER:
            return True
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

"""Ends what a cancelled group left open when its time comes.

Entries, not groups: a group is never counted or walked over. Each entry is found open by the
trailing scan like any other, so a scan that stops goes on where it was, and the outcome is on
record for each.
"""

from collections.abc import Sequence
from datetime import datetime

import structlog
from msgspec import Struct

from reminders.lifecycle.endings import ended_row
from reminders.lifecycle.grouping import CANCELLED, Fenced, fences_of
from reminders.lifecycle.writing import CLOCKS_DIFFER
from reminders.model.entry import EntryState
from reminders.model.ledger import OccurrenceStatus
from reminders.platform import Platform
from reminders.ports import Revocation
from scanner.lead import Lead, stopped
from scanner.metrics import Metrics

log = structlog.get_logger(__name__)


class Ended(Struct, frozen=True, kw_only=True):
    """What became of some open entries."""

    left: list[EntryState]
    """Not ended: no fence stops them, or they were claimed before it."""
    settled: int
    """Nothing is left to do for these."""
    unexpanded: list[EntryState]
    """Handled; their rule's record has still to be ended, which expanders do."""


class GroupCloser:
    """Closes entries of cancelled groups, many at once."""

    def __init__(self, platform: Platform, metrics: Metrics) -> None:
        self._store = platform.store
        self._claims = platform.coordination.claims
        self._clock = platform.clock
        self._metrics = metrics

    async def end(self, lead: Lead, waiting: Sequence[EntryState]) -> Ended:
        """`waiting`: open entries whose time has come, not in the lead's own hands."""
        fenced = await fences_of(self._store.fences, (state.entry for state in waiting))
        refused = [s for s in waiting if s.fate is None and stopped(fenced, s)]
        if not refused:
            return Ended(left=list(waiting), settled=0, unexpanded=[])
        over = await self._unclaimed(lead, fenced, refused)
        await self._close(over)
        closed = {state.entry.key for state in over}
        rules = [state for state in over if state.entry.recurs]
        return Ended(
            left=[state for state in waiting if state.entry.key not in closed],
            settled=len(over) - len(rules),
            unexpanded=rules,
        )

    async def _unclaimed(
        self, lead: Lead, fenced: Fenced, refused: Sequence[EntryState]
    ) -> list[EntryState]:
        """Those that were not claimed before the fence, and never will be: who asks after the fence
        is in Redis (where it may have expired, or never have come to) hears all that ever will.
        """
        groups = {(s.entry.namespace, s.entry.group_id) for s in refused}
        for namespace, group_id in sorted((n, g) for n, g in groups if g is not None):
            at = fenced.fences[namespace, group_id]
            await self._claims.fence((lead.shard,), namespace, group_id, at)
        found = await self._claims.claimed(lead.shard, [state.entry for state in refused])
        return [
            state
            for state in refused
            if state.entry.dedupe_id not in found.claimed and not await self._rang(state, found)
        ]

    async def _rang(self, state: EntryState, found: Revocation) -> bool:
        """Where Redis may have forgotten a claim, the ledger knows of those that went out."""
        known_since, entry = found.known_since, state.entry
        if known_since is not None and entry.promised_at > known_since + CLOCKS_DIFFER:
            return False
        rows = await self._store.ledger.page(
            entry.reminder_id, occurrence_id=entry.occurrence_id, limit=1
        )
        return bool(rows) and rows[0].rang

    async def _close(self, states: Sequence[EntryState]) -> None:
        """On record first: what is handled is not looked at again."""
        if not states:
            return
        now: datetime = self._clock.now()
        rows = [
            ended_row(state.entry, state.entry.occurrence, OccurrenceStatus.CANCELLED, CANCELLED)
            for state in states
            if state.entry.occurrence is not None
        ]
        await self._store.ledger.write(rows, at=now)
        await self._store.due.handled([state.entry for state in states], at=now)
        for _ in states:
            self._metrics.closed(CANCELLED)
        log.info("group.closed", entries=len(states), minute=states[0].entry.key.minute.isoformat())

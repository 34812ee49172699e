"""After step 5 of a change: what is left lying about is made void, or dropped.

Whoever lost that step takes back what he inserted against the recorded outcome; whoever won drops
what nothing names any more.
"""

from collections.abc import Collection, Sequence

import structlog

from reminders.errors import StoreUnavailable
from reminders.lifecycle.writing import stamp_of
from reminders.model.entry import DueEntry, Fate
from reminders.model.record import Change, Outcome, Stored
from reminders.platform import Platform

log = structlog.get_logger(__name__)


class Aftermath:
    """What comes after a change was ended."""

    def __init__(self, platform: Platform) -> None:
        self._store = platform.store
        self._clock = platform.clock

    async def take_back(
        self,
        change: Change,
        planned: Sequence[DueEntry],
        old: Sequence[DueEntry],
        fired: Collection[str],
    ) -> None:
        """Somebody else ended it. Makes void what we inserted, if he refused the change; and what
        we marked as claimed, in doubt, where he knew better and has recorded that it did not fire:
        stamped later still, so it wins.
        """
        if not planned and not fired:
            return
        after = await self._store.records.read(change.previous.reminder_id)
        outcomes = after.record.outcomes if after is not None else ()
        recorded = next((o for o in outcomes if o.version == change.version), None)
        if planned and (recorded is None or not recorded.applied):
            keys = [entry.key for entry in planned]
            await self._store.due.mark(keys, Fate.VOID, stamp=change.stamp)
        answers = recorded.answers if recorded is not None else ()
        silent = {each.occurrence_id for each in answers if not each.was_fired}
        keys = [e.key for e in old if e.occurrence_id in silent.intersection(fired)]
        if keys:
            await self._store.due.mark(keys, Fate.VOID, stamp=change.stamp + 2)

    async def tidy(
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

"""Whether a retry or a parked delivery may still go out: only the record can tell (DESIGN §5).

A void stops first claims of occurrences. What was claimed and comes back later is sent only after
this look, so whatever waits for a cancelled or paused reminder ends by itself.

A newer version alone stops nothing: only what was claimed can be retried or parked, so the caller
of the change was told that it fired, and it rings beside the new one. (A refused change makes a new
version, too.) What a change answered "not fired" about must stay silent.

Three exceptions. A forced replay goes out whatever the record says, as long as there is one. A
reminder that is paused may be triggered, so a trigger of the paused version goes on. A backfill is
of one version: what it has not sent yet, any change ends.
"""

from collections.abc import Awaitable, Callable

from dispatcher.work import LegWork
from reminders.errors import CoordinationUnavailable
from reminders.lifecycle.grouping import fences_of
from reminders.model.entry import DueEntry, Fate, Kind, Origin
from reminders.model.record import Record, Status
from reminders.ports import Store

Finish = Callable[[str], Awaitable[object]]
"""Completes a change of that reminder that stopped half-way; does nothing if there is none."""
Disabled = Callable[[LegWork], str | None]
"""Why nothing is sent to a leg's endpoint now: a stable word (`health`). Reads nothing."""


def healthy(leg: LegWork) -> None:
    """Whatever it is."""
    del leg


class RecordGate:
    """Reads the record before a later attempt; knows which endpoints are disabled."""

    def __init__(self, store: Store, finish: Finish, disabled: Disabled = healthy) -> None:
        self.disabled = disabled
        self._store = store
        self._finish = finish

    async def objection(self, entry: DueEntry) -> str | None:
        """Why it must not be sent: a stable word. None: it may."""
        stored = await self._store.records.read(entry.reminder_id)
        if stored is not None and stored.change is not None:
            await self._finish(entry.reminder_id)
            stored = await self._store.records.read(entry.reminder_id)
            if stored is not None and stored.change is not None:
                raise CoordinationUnavailable(operation="finish a change")  # the next one began
        if stored is None:
            return "orphan"
        if entry.replay is not None and entry.replay.forced:
            return None
        if (await fences_of(self._store.fences, [entry])).stops(entry):
            return "cancelled"
        reason = _objection(stored.record, entry)
        if reason is None:
            return None
        state = await self._store.due.read(entry.key)
        claimed = state is not None and state.fate is Fate.CLAIMED
        return None if claimed else reason


def _objection(record: Record, entry: DueEntry) -> str | None:
    if record.over is not None:
        return "cancelled"
    origin = entry.occurrence.origin if entry.occurrence else Origin.SCHEDULE
    if record.status is Status.PAUSED and not (
        origin is Origin.TRIGGER and entry.version == record.version
    ):
        return "paused"
    replayed = entry.replay is not None
    if origin is Origin.BACKFILL and entry.kind is not Kind.RETRY and not replayed:
        return "outdated" if entry.version < record.version else None
    silenced = any(
        answer.occurrence_id == entry.occurrence_id and not answer.was_fired
        for outcome in record.outcomes
        if outcome.applied and outcome.version > entry.version
        for answer in outcome.answers
    )
    return "rescheduled" if silenced else None

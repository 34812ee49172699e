"""Explain: one answer to what was promised, what became of it, and who acts next (R-OPS-1).

```
 record ──▶ what is ahead, what a change or a pause keeps from ringing ─┐
 ledger ──▶ what rang or did not, who was tried, with what answer ──────┼─▶ `explained`, pure
 due    ──▶ whether a retry's entry waits, and what is claimed ─────────┘
```
It reads and changes nothing, except that a change met half-way is finished first, as by a Get.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import groupby

from msgspec import Struct

from reminders.lifecycle.beside import entries_beside
from reminders.lifecycle.reading import (
    MAX_CHANNELS,
    Finish,
    Reads,
    occurrence_view,
    unrecorded_view,
)
from reminders.lifecycle.requests import OccurrenceView, View
from reminders.lifecycle.stopping import waiting_key
from reminders.lifecycle.verdicts import (
    CALLER,
    ENDED,
    LOST,
    NOBODY,
    NextAction,
    Replay,
    next_of_delivery,
    next_of_fanout,
    next_of_planned,
    replay_command,
    replay_of,
    why,
)
from reminders.model.definition import LocalTime, Recurring
from reminders.model.entry import DueEntry, DueKey, EntryState, Occurrence
from reminders.model.ledger import LedgerRow, OccurrenceStatus
from reminders.model.record import OccurrenceAnswer, Outcome, Record, Status, Stored
from reminders.platform import Platform
from reminders.recurrence.identity import parse_occurrence_key
from reminders.recurrence.wording import policy_word
from reminders.recurrence.zones import zone


class ExplainedDelivery(Struct, frozen=True, kw_only=True):
    """One receiver of an occurrence."""

    row: LedgerRow
    replay: Replay
    command: str
    """That sends it again; empty while it is under way."""
    following: NextAction


class ExplainedOccurrence(Struct, frozen=True, kw_only=True):
    """One promise and what became of it."""

    view: OccurrenceView
    policy: str
    """Which policies made the instant, stable words; empty if none acted."""
    why: str
    """Why it did or did not fire, a sentence."""
    deliveries: tuple[ExplainedDelivery, ...]
    following: NextAction


class Explanation(Struct, frozen=True, kw_only=True):
    """All that is known of a reminder."""

    view: View
    occurrences: tuple[ExplainedOccurrence, ...]
    """Newest first."""
    truncated: bool
    """There are older ones."""
    following: NextAction
    """Of all its occurrences the action that comes first."""


class Found(Struct, frozen=True, kw_only=True):
    """What was read, each after the one before."""

    stored: Stored
    view: View
    rows: Sequence[LedgerRow]
    beside: Sequence[DueEntry]
    """Triggers of the record's version."""
    states: Mapping[DueKey, EntryState | None]
    """Of what is ahead, of triggers, and of retries."""


class Explanations:
    """The use case."""

    def __init__(self, platform: Platform, reads: Reads, finish: Finish) -> None:
        self._store = platform.store
        self._clock = platform.clock
        self._shards = platform.limits.shards
        self._reads = reads
        self._finish = finish

    async def explain(self, namespace: str, reminder_id: str, *, limit: int) -> Explanation:
        """The newest `limit` occurrences. Raises `NotFound`."""
        stored = await self._reads.finished(namespace, reminder_id, self._finish)
        view = await self._reads.view(stored)
        rows = await self._store.ledger.page(reminder_id, limit=(limit + 1) * MAX_CHANNELS)
        beside = await entries_beside(self._store, stored)
        beside = tuple(each for each in beside if each.version == stored.record.version)
        keys = {entry.key for entry in (*view.ahead, *beside)}
        keys |= {key for row in rows if (key := waiting_key(row, self._shards)) is not None}
        states = await asyncio.gather(*(self._store.due.read(key) for key in keys))
        found = Found(
            stored=stored,
            view=view,
            rows=rows,
            beside=beside,
            states=dict(zip(keys, states, strict=True)),
        )
        return explained(found, shards=self._shards, now=self._clock.now(), limit=limit)


def explained(found: Found, *, shards: int, now: datetime, limit: int) -> Explanation:
    """From what was read. Pure."""
    record = found.stored.record
    known: dict[str, ExplainedOccurrence] = {}
    for occurrence_id, group in groupby(found.rows, key=lambda row: row.occurrence.occurrence_id):
        known[occurrence_id] = _from_ledger(list(group), found, shards, now)
    for entry in (*found.view.ahead, *found.beside):
        if entry.occurrence is not None and entry.occurrence.occurrence_id not in known:
            one = _planned(entry, found, now)
            known[one.view.occurrence.occurrence_id] = one
    for one in _silent(found):
        known.setdefault(one.view.occurrence.occurrence_id, one)
    newest = sorted(known, reverse=True)
    shown = tuple(known[occurrence_id] for occurrence_id in newest[:limit])
    actions = [one.following for one in shown if one.following.owner != NOBODY]
    first = min(actions, key=lambda action: _order(action, now), default=None)
    if first is None and record.status is Status.PAUSED:
        first = NextAction(owner=CALLER, what="resumes it, or leaves it silent")
    return Explanation(
        view=found.view,
        occurrences=shown,
        truncated=len(newest) > limit,
        following=first or NextAction(owner=NOBODY, what="nothing is left to do"),
    )


def _order(action: NextAction, now: datetime) -> tuple[bool, datetime]:
    """What happens by itself comes before what somebody may do about a loss of long ago."""
    return action == LOST, action.at or now


def _from_ledger(
    rows: list[LedgerRow], found: Found, shards: int, now: datetime
) -> ExplainedOccurrence:
    view = occurrence_view(rows)
    record = found.stored.record
    stops = record.over is not None or record.status is Status.PAUSED
    deliveries = []
    for row in rows:
        if row.delivery is None:
            continue
        key = waiting_key(row, shards)
        state = found.states.get(key) if key is not None else None
        following = next_of_delivery(row, waits=state is not None, stops=stops, now=now)
        deliveries.append(
            ExplainedDelivery(
                row=row,
                replay=replay_of(row),
                command=replay_command(row, stops=stops),
                following=following,
            )
        )
    following = min(
        (one.following for one in deliveries if one.following.owner != NOBODY),
        key=lambda action: _order(action, now),
        default=ENDED,
    )
    if view.fanout is not None:
        following = next_of_fanout(view.fanout, stops=stops)
    return ExplainedOccurrence(
        view=view,
        policy=policy_word(view.occurrence.note),
        why=why(view, [one.row for one in deliveries]),
        deliveries=tuple(deliveries),
        following=following,
    )


def _planned(entry: DueEntry, found: Found, now: datetime) -> ExplainedOccurrence:
    """Nobody has put anything on record about it."""
    assert entry.occurrence is not None
    view = unrecorded_view(found.stored.record, entry.occurrence, version=entry.version)
    state = found.states.get(entry.key)
    return ExplainedOccurrence(
        view=view,
        policy=policy_word(entry.occurrence.note),
        why=why(view, []),
        deliveries=(),
        following=next_of_planned(entry, state, now),
    )


def _silent(found: Found) -> list[ExplainedOccurrence]:
    """What a change, or the pause, keeps from ringing: nothing but the record knows of it."""
    record = found.stored.record
    silent = {
        answer.occurrence_id: (_recalled(answer, outcome, record), outcome.action)
        for outcome in reversed(record.outcomes)
        if outcome.applied
        for answer in outcome.answers
        if not answer.was_fired
    }
    silent |= {
        entry.occurrence.occurrence_id: (entry.occurrence, "pause")
        for entry in record.silenced
        if entry.occurrence is not None
    }
    return [
        _kept_silent(
            unrecorded_view(
                record,
                one,
                version=record.version,
                status=OccurrenceStatus.CANCELLED,
                reason=action,
            )
        )
        for one, action in silent.values()
    ]


def _kept_silent(view: OccurrenceView) -> ExplainedOccurrence:
    return ExplainedOccurrence(
        view=view,
        policy=policy_word(view.occurrence.note),
        why=why(view, []),
        deliveries=(),
        following=NextAction(owner=NOBODY, what="it does not ring"),
    )


def _recalled(answer: OccurrenceAnswer, outcome: Outcome, record: Record) -> Occurrence:
    """By its id and its instant. The zone is known only where the change left the schedule as it
    was; else the local time is the one that was named.
    """
    intent = parse_occurrence_key(answer.occurrence_id)
    schedule = record.definition.schedule
    name = "UTC" if intent.absolute else ""
    local = intent.local
    if isinstance(schedule, LocalTime | Recurring) and outcome.action in ("cancel", "pause"):
        name = schedule.zone
        local = answer.planned_at.astimezone(zone(name)).replace(tzinfo=None)
    return Occurrence(
        occurrence_id=answer.occurrence_id,
        nominal_local=intent.local,
        planned_local=local,
        fold=int(intent.second_pass),
        zone=name,
        planned_at=answer.planned_at,
        fire_at=answer.planned_at,
        zone_data="",
    )

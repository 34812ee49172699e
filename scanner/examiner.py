"""What becomes of an entry that is open though its time has passed.

| found                              | done                                                   |
|------------------------------------|--------------------------------------------------------|
| unreadable                         | an alarm; closed as such after an hour                 |
| void, its record not changing      | closed                                                 |
| its record changing                | the change is finished; looked at again                |
| late, no record                    | closed as `orphan`, once nobody can still be writing it |
| late, of an older version          | closed as `outdated`: it was moved, then changed       |
| late, overtaken by its rule's next | skipped: `superseded`, `too_old`, `catch_up_none`      |
| else                               | to be claimed                                          |

What was claimed is never closed or skipped here: it rings, and its dispatcher settles it.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum

import structlog

from reminders.buckets import MINUTE
from reminders.lifecycle.catching_up import LATE, overtaken
from reminders.lifecycle.endings import ended_row, write_ends
from reminders.lifecycle.planning import body_of
from reminders.lifecycle.reading import Finish
from reminders.model.codec import decode_body
from reminders.model.entry import DueEntry, EntryState, Fate, Kind, Occurrence, Origin
from reminders.model.ledger import OccurrenceStatus
from reminders.model.record import Stored
from reminders.platform import Platform
from scanner.lead import Lead
from scanner.metrics import Metrics

log = structlog.get_logger(__name__)


READABLE_WITHIN = timedelta(hours=1)
"""After its time, how long an entry that can't be decoded waits for somebody who can."""


class Verdict(Enum):
    """What is left to do for an entry."""

    SETTLED = "settled"
    OPEN = "open"
    """Look again later."""
    EXPAND = "expand"
    """Skipped, and its rule has to go on: tell the expanders."""
    CLAIM = "claim"


class Examiner:
    """Decides about late and void entries, by their records."""

    def __init__(self, platform: Platform, finish: Finish, metrics: Metrics) -> None:
        self._store = platform.store
        self._claims = platform.coordination.claims
        self._clock = platform.clock
        self._grace = platform.limits.grace
        self._finish = finish
        self._metrics = metrics

    async def records(self, states: Sequence[EntryState], now: datetime) -> Mapping[str, Stored]:
        """The records that `verdict` needs, read together."""
        wanted = {state.entry.reminder_id for state in states if _needs_record(state, now)}
        return await self._store.records.read_many(wanted) if wanted else {}

    async def verdict(
        self, lead: Lead, state: EntryState, records: Mapping[str, Stored], now: datetime
    ) -> Verdict:
        """`records`: read after `state`. `now`: the clock before either was read."""
        if state.entry.kind is Kind.UNREADABLE:
            stored = records.get(state.entry.reminder_id)
            return await self._unreadable(state.entry, stored, now)
        if not _needs_record(state, now):
            return Verdict.CLAIM
        stored = records.get(state.entry.reminder_id)
        if stored is not None and stored.change is not None:
            await self._finish(state.entry.reminder_id)
            return Verdict.OPEN
        if state.fate is Fate.VOID:
            return await self._close_void(state.entry)
        # Of one that is marked as claimed, somebody was told that it rings.
        reason = self._why_not(state.entry, stored, now) if state.fate is None else None
        if reason is None or await self._claimed(lead, state.entry):
            return Verdict.CLAIM
        return await self._end(state.entry, reason, now)

    def _why_not(self, entry: DueEntry, stored: Stored | None, now: datetime) -> str | None:
        if stored is None:
            return "orphan"
        if entry.kind is not Kind.OCCURRENCE:
            return None
        if entry.version < stored.record.version:
            return "outdated"
        if entry.occurrence is not None and entry.occurrence.origin is Origin.TRIGGER:
            return None  # asked for as such, whatever the rule's policy
        body = decode_body(entry.body) if entry.body else body_of(stored.record.definition)
        if body.expire_after is not None:
            return None  # a one-shot: the dispatcher knows when it expires
        return overtaken(
            body.catch_up,
            body.catch_up_max_age,
            fire_at=entry.promised_at,
            next_at=entry.next_at,
            now=now,
        )

    async def _claimed(self, lead: Lead, entry: DueEntry) -> bool:
        return bool((await self._claims.claimed(lead.shard, [entry])).claimed)

    async def _end(self, entry: DueEntry, reason: str, now: datetime) -> Verdict:
        if reason == "orphan" and now < entry.key.minute + MINUTE + self._grace:
            return Verdict.OPEN  # its record may be on its way
        if reason in ("orphan", "outdated"):
            return await self._close(entry, reason)
        return await self._skip(entry, reason)

    async def _skip(self, entry: DueEntry, reason: str) -> Verdict:
        """On record, never rung."""
        assert entry.occurrence is not None
        row = ended_row(entry, entry.occurrence, OccurrenceStatus.SKIPPED, reason)
        now = self._clock.now()
        await self._store.ledger.write([row], at=now)
        await self._store.due.handled([entry], at=now)
        self._metrics.closed(reason)
        log.info(
            "occurrence.skipped",
            reminder_id=entry.reminder_id,
            occurrence_id=entry.occurrence.occurrence_id,
            reason=reason,
        )
        return Verdict.EXPAND if entry.recurs else Verdict.SETTLED

    async def _unreadable(self, entry: DueEntry, stored: Stored | None, now: datetime) -> Verdict:
        """Another process may be able to read it, such as one of a newer release. If nobody does
        for so long, it must not hold the watermark for ever.

        A rule goes on from its other entry: two are always planned.
        """
        log.error("entry.unreadable", entry_id=entry.key.entry_id, ring_at=str(entry.key.ring_at))
        self._metrics.reopened("unreadable")
        if now - entry.key.ring_at < READABLE_WITHIN:
            return Verdict.OPEN
        if stored is not None:
            occurrence = _presumed(entry)
            row = ended_row(stored.record, occurrence, OccurrenceStatus.FAILED, "unreadable")
            await write_ends(self._store, [row], at=self._clock.now())
        await self._store.due.expanded([entry], at=self._clock.now())  # it may be one of a rule
        return await self._close(entry, "unreadable")

    async def _close_void(self, entry: DueEntry) -> Verdict:
        """Its change has ended, so what it decided is on disk; our copy may be older than that."""
        state = await self._store.due.read(entry.key)
        if state is not None and state.fate is not Fate.VOID:
            return Verdict.OPEN
        return await self._close(entry, "void")

    async def _close(self, entry: DueEntry, reason: str) -> Verdict:
        """Nothing will ring here and nothing follows from it."""
        now = self._clock.now()
        if entry.recurs:
            await self._store.due.expanded([entry], at=now)
        await self._store.due.handled([entry], at=now)
        self._metrics.closed(reason)
        log.info("entry.closed", entry_id=entry.key.entry_id, reason=reason)
        return Verdict.SETTLED


def _presumed(entry: DueEntry) -> Occurrence:
    """As far as an entry's id and place tell."""
    name = entry.key.entry_id.split(".")
    local = entry.key.ring_at.replace(tzinfo=None)
    return Occurrence(
        occurrence_id=name[1] if len(name) > 1 else entry.key.entry_id,
        nominal_local=local,
        planned_local=local,
        zone="UTC",
        planned_at=entry.key.ring_at,
        fire_at=entry.key.ring_at,
        zone_data="",
    )


def _needs_record(state: EntryState, now: datetime) -> bool:
    return state.fate is Fate.VOID or now - state.entry.promised_at > LATE

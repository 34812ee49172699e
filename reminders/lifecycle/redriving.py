"""Redrive: what ended failed or expired is sent again, many at a time, from the list of those.

Each delivery gets the entry that a replay would write for it: the same key, marked as a replay,
sent after another look at the ledger and the record. One call writes a bounded number of them, due
10 ms after each other, and answers where to go on; the next one's follow behind these, so a redrive
of any size comes at 100 a second at most, behind what is on time (`scanner.lead`).

A call that is repeated with its request id writes the same entries. Without one, a delivery may get
a second entry, for the same attempt: the ledger lets one of them through.
"""

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

import structlog
from msgspec import Struct
from msgspec.structs import replace

from reminders.errors import NotReady
from reminders.lifecycle.ended_list import EndedFilter, EndedList, FoundEnded
from reminders.lifecycle.grouping import fences_of
from reminders.lifecycle.planning import instant_ms
from reminders.lifecycle.replay_entries import APART, delivery_entry
from reminders.lifecycle.replaying_targets import TargetReplays
from reminders.lifecycle.request_ids import first_of
from reminders.lifecycle.writing import EntryWriter
from reminders.model.codec import encode
from reminders.model.ended import Ended, EndedPlace
from reminders.model.entry import DueEntry
from reminders.model.ledger import LedgerRow, Place
from reminders.model.record import Record, Status, Stored
from reminders.platform import Platform
from reminders.reminder_id import new_reminder_id

log = structlog.get_logger(__name__)


class Redrive(StrEnum):
    """What is done about one of them."""

    SENT_AGAIN = "sent_again"
    ENDED = "ended"
    """Left: its reminder, or its group, is cancelled or gone."""
    PAUSED = "paused"
    """Left: its reminder is paused."""
    CHANNEL_GONE = "channel_gone"
    """Not possible: the reminder has no such channel any more, or the topic no such subscriber."""
    NO_DELIVERY = "no_delivery"
    """Not possible: its occurrence ended before there was a delivery; a trigger rings anew."""


class EndedView(Struct, frozen=True, kw_only=True):
    """One of the list, with what is needed to show what was to be sent."""

    ended: Ended
    row: LedgerRow
    record: Record | None
    """None: it has expired."""


class RedrivePlace(Struct, frozen=True, kw_only=True, array_like=True):
    """How far a list or a redrive has come."""

    through: EndedPlace
    end: datetime
    """Of the range, as the first call understood it."""
    free_at: datetime
    """When the next delivery may go."""


class RedriveCall(Struct, frozen=True, kw_only=True):
    """One call of several."""

    content: bytes = b""
    """What was asked for, without what depends on now: a request id stands for it."""
    after: RedrivePlace | None = None
    """Where the call before said to go on; None: the first one."""
    limit: int
    wait: timedelta = timedelta(0)
    """Nothing is sent sooner after the call."""
    dry_run: bool = False
    request_id: str | None = None


class Redriven(Struct, frozen=True, kw_only=True):
    """What one call came to."""

    counts: Mapping[Redrive, int]
    following: RedrivePlace | None
    """None: that was all."""


class Redrives:
    """The use case."""

    def __init__(self, platform: Platform, writer: EntryWriter) -> None:
        self._store = platform.store
        self._clock = platform.clock
        self._shards = platform.limits.shards
        self._writer = writer
        self._list = EndedList(platform)
        self._targets = TargetReplays(platform, writer)

    async def listed(
        self, wanted: EndedFilter, *, after: RedrivePlace | None, limit: int
    ) -> tuple[Sequence[EndedView], RedrivePlace | None]:
        """Those that stand, oldest first. May be empty before the end."""
        wanted = _going_on(wanted, after)
        step = await self._list.step(wanted, after=_place(after), limit=limit)
        stored = await self._store.records.read_many({one.row.reminder_id for one in step.found})
        views = [
            EndedView(ended=one.ended, row=one.row, record=_record(stored, one))
            for one in step.found
        ]
        return views, _following(wanted, step.through, self._clock.now())

    async def redrive(self, wanted: EndedFilter, call: RedriveCall) -> Redriven:
        """Durable when it answers. Raises `NotReady`, `KeyConflict`."""
        if not self._clock.in_bounds():
            raise NotReady(operation="redrive")
        name, asked_at = await self._named(wanted.namespace, call)
        after = call.after
        wanted = _going_on(wanted, after)
        known_at = self._clock.now()
        step = await self._list.step(wanted, after=_place(after), limit=call.limit)
        stored = await self._store.records.read_many({one.row.reminder_id for one in step.found})
        start = asked_at + call.wait
        if after is not None:
            start = max(start, after.free_at)
        present = await self._present(step.found, stored)
        counts: Counter[Redrive] = Counter()
        entries: list[DueEntry] = []
        for one in step.found:
            there = not one.row.target or one.row.place in present
            record = _record(stored, one)
            verdict, entry = self._decide(one, record, (name, start), there=there)
            counts[verdict] += 1
            if entry is not None:
                entries.append(entry)
        fenced = await fences_of(self._store.fences, entries)
        alive = [entry for entry in entries if not fenced.stops(entry)]
        counts[Redrive.ENDED] += len(entries) - len(alive)
        counts[Redrive.SENT_AGAIN] -= len(entries) - len(alive)
        if not call.dry_run:
            await self._write(alive, known_at)
        return Redriven(
            counts={verdict: count for verdict, count in counts.items() if count},
            following=_following(wanted, step.through, start + step.fitting * APART),
        )

    async def _present(
        self, found: Sequence[FoundEnded], stored: Mapping[str, Stored]
    ) -> Collection[Place]:
        """Of those for subscribers, whose subscriber is still there."""
        of: dict[str, list[LedgerRow]] = {}
        for one in found:
            if one.row.target and one.row.reminder_id in stored:
                of.setdefault(one.row.reminder_id, []).append(one.row)
        there: set[Place] = set()
        for reminder_id, rows in of.items():
            targets = await self._targets.present(stored[reminder_id].record, rows)
            there.update(row.place for row in rows if row.target in targets)
        return there

    def _decide(
        self, one: FoundEnded, record: Record | None, name: tuple[str, datetime], *, there: bool
    ) -> tuple[Redrive, DueEntry | None]:
        """`there`: it is for no subscriber, or for one who has not left."""
        row = one.row
        if row.delivery is None:
            return Redrive.NO_DELIVERY, None
        if record is None or record.over is not None:
            return Redrive.ENDED, None
        if record.status is Status.PAUSED:
            return Redrive.PAUSED, None
        channels = {each.channel_id for each in record.definition.channels}
        if not there or (not row.target and row.channel_id not in channels):
            return Redrive.CHANNEL_GONE, None
        delivery = "/".join((name[0], *one.ended.place[1:]))
        replay_id = hashlib.sha256(delivery.encode()).hexdigest()[:25]
        entry = delivery_entry(
            record, row, (replay_id, name[1]), force=False, place=one.number, shards=self._shards
        )
        return Redrive.SENT_AGAIN, entry

    async def _named(self, namespace: str, call: RedriveCall) -> tuple[str, datetime]:
        """Its name and when it was asked for; of a repeat, as of the first time."""
        now = instant_ms(self._clock.now())
        if call.request_id is None or call.dry_run:
            return new_reminder_id(), now
        place = "start"
        if call.after is not None:
            place = hashlib.sha256(encode(call.after)).hexdigest()[:16]
        key = f"redrive:{call.request_id}:{place}"
        first = await first_of(self._store.dedup, namespace, "", key, content=call.content, at=now)
        return f"{namespace}/{key}", first.created_at

    async def _write(self, entries: Sequence[DueEntry], known_at: datetime) -> None:
        """Those that no earlier call with the same request id has written."""
        new = await self._writer.put_missing(entries, known_at=known_at)
        told = {
            (entry.reminder_id, entry.occurrence_id): entry
            for entry in new
            if entry.leg is not None and entry.leg.target
        }
        for entry in told.values():  # the last one of each occurrence
            await self._targets.count_again(entry)
        log.info("redrive.asked", deliveries=len(new))


def _record(stored: Mapping[str, Stored], one: FoundEnded) -> Record | None:
    found = stored.get(one.row.reminder_id)
    return found.record if found is not None else None


def _place(after: RedrivePlace | None) -> EndedPlace | None:
    return after.through if after is not None else None


def _going_on(wanted: EndedFilter, after: RedrivePlace | None) -> EndedFilter:
    """The range as the first call understood it, where it was given by when that was made."""
    if after is None:
        return wanted
    start = min(wanted.start, after.through.ended_at)
    return replace(wanted, start=start, end=min(wanted.end, after.end))


def _following(
    wanted: EndedFilter, through: EndedPlace | None, free_at: datetime
) -> RedrivePlace | None:
    if through is None:
        return None
    return RedrivePlace(through=through, end=wanted.end, free_at=free_at)

"""Replay: deliveries of one occurrence again, under the keys that they always had (R-DEL-7).

```
 ledger ──▶ which deliveries ended, and which of them nobody took
 due[replay, one for each] ──claimed, as everything that waits──▶ dispatcher: ledger, record, send
```
The call writes an entry for each delivery: that makes it durable. Its attempt number is the next
one of the delivery, so of two replays that are asked for at once only one is sent. The dispatcher
looks into the ledger again, and whatever was taken meanwhile is not sent, unless it is forced.

The retry policy applies anew from the call on. What is sent is the reminder's content as it is now;
the receiver is told that it is a replay.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from enum import StrEnum

import structlog
from msgspec import Struct
from opentelemetry import metrics

from reminders.errors import (
    AlreadyEnded,
    InvalidRequest,
    NotReady,
    ReminderPaused,
    Violation,
)
from reminders.lifecycle.grouping import fences_of
from reminders.lifecycle.planning import instant_ms
from reminders.lifecycle.reading import MAX_CHANNELS, Finish, Reads
from reminders.lifecycle.replay_entries import delivery_entry, occurrence_entry
from reminders.lifecycle.replaying_targets import ReplayedAll, TargetReplays
from reminders.lifecycle.request_ids import first_of, id_of
from reminders.lifecycle.writing import EntryWriter
from reminders.model.codec import encode
from reminders.model.entry import DueEntry, Replay
from reminders.model.ledger import LedgerRow, Place
from reminders.model.record import Record, Status
from reminders.platform import Platform
from reminders.reminder_id import new_reminder_id

_METER = metrics.get_meter("tocsin.replays")

log = structlog.get_logger(__name__)


class Verdict(StrEnum):
    """What a replay does about one delivery."""

    SENT_AGAIN = "sent_again"
    ACKNOWLEDGED = "acknowledged"
    """Refused: it was taken, and would be a duplicate."""
    UNDER_WAY = "under_way"
    """Left alone: it is still being tried by itself."""
    CHANNEL_GONE = "channel_gone"
    """Not possible: the reminder has no such channel any more."""
    SUBSCRIBER_GONE = "subscriber_gone"
    """Not possible: whom it was for has unsubscribed."""


class Asked(Struct, frozen=True, kw_only=True):
    """What is to be replayed."""

    occurrence_id: str
    channels: tuple[str, ...] = ()
    """Sorted. Empty: every one that was attempted."""
    subscribers: tuple[str, ...] = ()
    """Of a topic, sorted. Empty: every one whom it did not reach."""
    force: bool = False
    dry_run: bool = False


class Replayed(Struct, frozen=True, kw_only=True):
    """One delivery, as the ledger had it, and what is done about it."""

    row: LedgerRow
    verdict: Verdict


class Replays:
    """The use case."""

    def __init__(
        self,
        platform: Platform,
        writer: EntryWriter,
        reads: Reads,
        finish: Finish,
        meter: metrics.Meter = _METER,
    ) -> None:
        self._store = platform.store
        self._clock = platform.clock
        self._shards = platform.limits.shards
        self._writer = writer
        self._reads = reads
        self._finish = finish
        self._targets = TargetReplays(platform, writer)
        self._suppressed = meter.create_counter(
            "tocsin_duplicates_suppressed", description="Jobs for what was done already"
        )

    async def replay(
        self, namespace: str, reminder_id: str, asked: Asked, *, request_id: str | None
    ) -> tuple[Replayed, ...] | ReplayedAll:
        """Every delivery that was asked for, by channel or subscriber, or how many where it is all
        of a topic's; durable when it answers, unless it is a dry run. What the receiver took is
        refused unless it is forced, and counted; of all of a topic's it is left alone, forced or
        not.

        Raises `NotFound`, `InvalidRequest`, `KeyConflict`; unless forced, `AlreadyEnded` and
        `ReminderPaused`.
        """
        if not self._clock.in_bounds():
            raise NotReady(operation="replay")
        record = (await self._reads.finished(namespace, reminder_id, self._finish)).record
        if not asked.force:
            _refuse(record)
        replay_id, asked_at = await self._named(record, asked, request_id)
        own = await self._store.ledger.read(reminder_id, asked.occurrence_id)
        of_topic = own is not None and own.fanout is not None
        _check_selection(asked, of_topic=of_topic)
        if own is not None and of_topic and not asked.subscribers:
            template = Replay(
                replay_id=replay_id, asked_at=asked_at, after=0, stood="", forced=asked.force
            )
            if not asked.force:
                await self._refuse_fenced(
                    occurrence_entry(record, own, template, shards=self._shards)
                )
            return await self._targets.all(record, own, template, dry_run=asked.dry_run)
        rows = await (self._told(record, asked) if of_topic else self._rows(reminder_id, asked))
        present = await self._targets.present(record, rows)
        found = tuple(
            Replayed(row=row, verdict=_verdict(row, record, asked, present)) for row in rows
        )
        if not asked.force:
            name = (replay_id, asked_at)
            first = delivery_entry(record, rows[0], name, force=False, place=0, shards=self._shards)
            await self._refuse_fenced(first)
        if asked.dry_run:
            return found
        done = {row.place for row in rows if _part_of(row, replay_id)}
        found = tuple(
            Replayed(row=one.row, verdict=Verdict.SENT_AGAIN) if one.row.place in done else one
            for one in found
        )
        await self._write(record, found, done, (replay_id, asked_at), force=asked.force)
        self._count(record, found)
        return found

    async def _told(self, record: Record, asked: Asked) -> list[LedgerRow]:
        """The deliveries to the subscribers that were asked for."""
        rows = await self._targets.rows(record.reminder_id, asked.occurrence_id, asked.subscribers)
        for number, subscriber_id in enumerate(asked.subscribers):
            if subscriber_id not in rows:
                raise _unknown(f"subscriber_ids[{number}]", "has no delivery of this occurrence")
        return [rows[each] for each in asked.subscribers]

    async def _named(
        self, record: Record, asked: Asked, request_id: str | None
    ) -> tuple[str, datetime]:
        """Its id and when it was asked for; of a repeat, as of the first time."""
        now = instant_ms(self._clock.now())
        if request_id is None or asked.dry_run:
            return new_reminder_id(), now
        first = await first_of(
            self._store.dedup,
            record.namespace,
            record.reminder_id,
            f"replay:{record.reminder_id}:{request_id}",
            content=encode(asked),
            at=now,
        )
        return id_of(first), first.created_at

    async def _rows(self, reminder_id: str, asked: Asked) -> list[LedgerRow]:
        """The deliveries that were asked for, by channel."""
        page = await self._store.ledger.page(
            reminder_id, occurrence_id=asked.occurrence_id, limit=MAX_CHANNELS + 1
        )
        rows = {row.channel_id: row for row in page if row.delivery is not None}
        if not rows:
            raise _unknown("occurrence_id", "has no delivery on record; a trigger rings anew")
        for place, channel_id in enumerate(asked.channels):
            if channel_id not in rows:
                known = ", ".join(sorted(rows))
                raise _unknown(f"channel_ids[{place}]", f"was not attempted; these were: {known}")
        wanted: Collection[str] = asked.channels or rows.keys()
        return [rows[channel_id] for channel_id in sorted(wanted)]

    async def _refuse_fenced(self, entry: DueEntry) -> None:
        """What rang before its group was cancelled is shown as fired, but sends no more."""
        if (await fences_of(self._store.fences, [entry])).stops(entry):
            raise AlreadyEnded(status=Status.CANCELLED.value)

    async def _write(
        self,
        record: Record,
        found: Sequence[Replayed],
        done: Collection[Place],
        name: tuple[str, datetime],
        *,
        force: bool,
    ) -> None:
        """The entries that no earlier call with the same request id has written."""
        entries = [
            delivery_entry(record, one.row, name, force=force, place=place, shards=self._shards)
            for place, one in enumerate(found)
            if one.verdict is Verdict.SENT_AGAIN and one.row.place not in done
        ]
        new = await self._writer.put_missing(entries)
        if entries and entries[0].leg is not None and entries[0].leg.target:
            await self._targets.count_again(entries[-1])
        log.info(
            "replay.asked", reminder_id=record.reminder_id, replay_id=name[0], deliveries=len(new)
        )

    def _count(self, record: Record, found: Sequence[Replayed]) -> None:
        """What was refused is a duplicate that nobody got."""
        kinds = {each.channel_id: each.target for each in record.definition.channels}
        for one in found:
            if one.verdict is Verdict.ACKNOWLEDGED:
                kind = type(kinds.get(one.row.channel_id)).__name__.lower()
                self._suppressed.add(1, {"channel": kind, "reason": "replay"})


def _check_selection(asked: Asked, *, of_topic: bool) -> None:
    if of_topic and asked.channels:
        raise _unknown("channel_ids", "a topic's deliveries are chosen by subscriber_ids")
    if asked.subscribers and not of_topic:
        raise _unknown("subscriber_ids", "the occurrence was not for the subscribers of a topic")


def _verdict(row: LedgerRow, record: Record, asked: Asked, present: Collection[str]) -> Verdict:
    assert row.delivery is not None
    if not row.delivery.terminal:
        return Verdict.UNDER_WAY
    if row.taken and not asked.force:
        return Verdict.ACKNOWLEDGED
    if row.target:
        return Verdict.SENT_AGAIN if row.target in present else Verdict.SUBSCRIBER_GONE
    if all(each.channel_id != row.channel_id for each in record.definition.channels):
        return Verdict.CHANNEL_GONE
    return Verdict.SENT_AGAIN


def _part_of(row: LedgerRow, replay_id: str) -> bool:
    return any(attempt.replay == replay_id for attempt in row.attempts)


def _refuse(record: Record) -> None:
    if record.over is not None:
        raise AlreadyEnded(status=record.over.value)
    if record.status is Status.PAUSED:
        raise ReminderPaused(reminder_id=record.reminder_id)


def _unknown(field: str, description: str) -> InvalidRequest:
    violation = Violation(field=field, reason="VALUE_INVALID", description=description)
    return InvalidRequest(violations=[violation])

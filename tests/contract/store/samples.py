"""Values for the store's contract: every call makes new ids, and every partition is a test's
own.
"""

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from reminders.buckets import minute_of, occurrence_entry_id, retry_entry_id, shard_of
from reminders.model.codec import encode
from reminders.model.definition import At, Channel, Definition, Log, Recurring
from reminders.model.entry import Body, DueEntry, DueKey, Kind, Leg, Occurrence
from reminders.model.ledger import Attempt, DeliveryStatus, LedgerRow
from reminders.model.record import Change, NewReminder, Outcome, Record, Status

SHARDS = 8
SECOND = timedelta(seconds=1)
MS = timedelta(milliseconds=1)
US = timedelta(microseconds=1)
_numbers = count()
_START = minute_of(datetime.now(UTC)) + timedelta(days=1)
NAMESPACE = f"ns{_START:%H%M}{id(_numbers):x}"
CHANNELS = (Channel(channel_id="log", target=Log()),)


def unique(prefix: str) -> str:
    """An id that no other test has."""
    return f"{prefix}-{id(_numbers):x}-{next(_numbers)}"


def fresh_minute() -> datetime:
    """A minute whose partitions are empty."""
    return _START + timedelta(minutes=next(_numbers))


def stamp_now() -> int:
    """As creators stamp: a minute behind the clock."""
    return int(datetime.now(UTC).timestamp() * 1_000_000) - 60_000_000


def body(size: int = 0) -> bytes:
    """An encoded body of at least `size` bytes."""
    return encode(Body(user_id="u", channels=CHANNELS, params_json="x" * size))


def occurrence(fire_at: datetime, occurrence_id: str | None = None) -> Occurrence:
    """Promised in UTC."""
    local = fire_at.replace(tzinfo=None)
    return Occurrence(
        occurrence_id=occurrence_id or f"{local:%Y%m%dT%H%M%S.%f}",
        nominal_local=local,
        planned_local=local,
        zone="UTC",
        planned_at=fire_at,
        fire_at=fire_at,
        zone_data="2026a",
    )


def entry(
    ring_at: datetime | None = None,
    *,
    reminder_id: str | None = None,
    version: int = 1,
    shard: int | None = None,
    **more: Any,
) -> DueEntry:
    """An occurrence's first send."""
    ring_at = ring_at or fresh_minute()
    reminder_id = reminder_id or unique("r")
    promised = more.pop("occurrence", None) or occurrence(ring_at)
    key = DueKey(
        ring_at=ring_at,
        entry_id=more.pop("entry_id", None)
        or occurrence_entry_id(reminder_id, promised.occurrence_id, version),
        shard=shard_of(reminder_id, SHARDS) if shard is None else shard,
    )
    values: dict[str, Any] = {
        "key": key,
        "kind": Kind.OCCURRENCE,
        "namespace": NAMESPACE,
        "reminder_id": reminder_id,
        "version": version,
        "occurrence": promised,
        "record_created_at": _START,
        "body": body(),
    }
    return DueEntry(**(values | more))


def retry(of: DueEntry, at: datetime, *, size: int) -> DueEntry:
    """Its second attempt."""
    assert of.occurrence is not None
    entry_id = retry_entry_id(of.reminder_id, of.occurrence.occurrence_id, "log", 2)
    return entry(
        at,
        reminder_id=of.reminder_id,
        entry_id=entry_id,
        kind=Kind.RETRY,
        occurrence=of.occurrence,
        leg=Leg(channel_id="log", attempt=2),
        body=body(size),
    )


def record(reminder_id: str, *, user_id: str | None = None, rule: bool = False) -> Record:
    """Version 1, as a creation writes it."""
    return Record(
        namespace=NAMESPACE,
        reminder_id=reminder_id,
        version=1,
        status=Status.SCHEDULED,
        definition=Definition(
            user_id=user_id or unique("u"),
            schedule=Recurring(rrule="FREQ=DAILY", zone="UTC") if rule else At(instant=_START),
            channels=CHANNELS,
        ),
        created_at=datetime.now(UTC),
        updated_at=datetime.now(UTC),
        stamp=stamp_now(),
    )


def new(*ring_at: datetime, user_id: str | None = None, **of_entries: Any) -> NewReminder:
    """A reminder with an entry at each time (one in a fresh minute, if none is given)."""
    reminder_id = unique("r")
    rule = bool(of_entries.get("recurs", False))
    return NewReminder(
        record=record(reminder_id, user_id=user_id, rule=rule),
        entries=tuple(
            entry(at, reminder_id=reminder_id, **of_entries) for at in ring_at or (fresh_minute(),)
        ),
    )


def change_of(old: NewReminder, *, to: datetime | None = None) -> tuple[Record, Change]:
    """The next version and the change that makes it: a cancel, or a reschedule `to` another
    time.
    """
    request_id, version = unique("req"), old.record.version + 1
    planned = (
        () if to is None else (entry(to, reminder_id=old.record.reminder_id, version=version),)
    )
    change = Change(
        action="cancel" if to is None else "reschedule",
        request_id=request_id,
        content_hash=b"0" * 16,
        version=version,
        stamp=old.record.stamp + 2,
        previous=old.record,
        revoked=old.entries,
        planned=planned,
        finish=DueKey(ring_at=_START, entry_id=unique("finish"), shard=0),
    )
    return next_record(old.record, change), change


def next_record(old: Record, change: Change) -> Record:
    """`old`, a version on, as `change` wants it."""
    values = {name: getattr(old, name) for name in old.__struct_fields__}
    status = Status.CANCELLED if change.action == "cancel" else Status.SCHEDULED
    return Record(**values | {"version": change.version, "status": status, "stamp": change.stamp})


def ended(begun: Record, change: Change, *, applied: bool = True) -> Record:
    """`begun` with the outcome of `change`."""
    values = {name: getattr(begun, name) for name in begun.__struct_fields__}
    outcome = Outcome(
        request_id=change.request_id,
        action=change.action,
        content_hash=change.content_hash,
        version=change.version,
        applied=applied,
    )
    return Record(**values | {"outcomes": (outcome,)})


def ledger_row(reminder_id: str, at: datetime, channel_id: str = "log", **more: Any) -> LedgerRow:
    """A delivery that went well."""
    values: dict[str, Any] = {
        "namespace": NAMESPACE,
        "reminder_id": reminder_id,
        "reminder_version": 1,
        "occurrence": occurrence(at),
        "channel_id": channel_id,
        "delivery": DeliveryStatus.DELIVERED,
        "attempts": (Attempt(number=1, started_at=at),),
        "attempt_count": 1,
    }
    return LedgerRow(**(values | more))

"""What a change begins with: the next version, the change itself, and whether it was made already.
Pure.
"""

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from reminders.buckets import finish_entry_id, shard_of
from reminders.errors import KeyConflict
from reminders.lifecycle.actions import Action, Plan
from reminders.lifecycle.planning import instant_ms
from reminders.lifecycle.requests import Call
from reminders.lifecycle.writing import stamp_of
from reminders.model.codec import encode
from reminders.model.entry import DueEntry, DueKey
from reminders.model.record import Change, Outcome, Record, Stored
from reminders.reminder_id import new_reminder_id

FINISH_AFTER = timedelta(seconds=30)
"""When somebody looks after a change that its process did not end."""


def next_version(old: Record, now: datetime) -> Record:
    """The same, made now."""
    now = instant_ms(now)
    return msgspec.structs.replace(
        old, version=old.version + 1, updated_at=now, stamp=max(stamp_of(now), old.stamp + 2)
    )


def begun(
    old: Record,
    plan: Plan,
    call: Call,
    action: Action,
    *,
    revoked: Sequence[DueEntry],
    shards: int,
) -> Change:
    """Complete enough for anybody to finish it."""
    new = plan.record
    return Change(
        action=action.name.value,
        request_id=call.request_id or new_reminder_id(),
        content_hash=_content_hash(action, call.expected_version),
        version=new.version,
        stamp=new.stamp,
        previous=old,
        revoked=tuple(revoked),
        planned=plan.planned,
        finish=DueKey(
            ring_at=new.updated_at + FINISH_AFTER,
            entry_id=finish_entry_id(old.reminder_id, new.version),
            shard=shard_of(old.reminder_id, shards),
        ),
        keeps_schedule=plan.keeps_schedule,
        rows=plan.rows,
    )


def recorded(stored: Stored | None, change: Change) -> Outcome | None:
    """How the change ended, if it did."""
    outcomes = stored.record.outcomes if stored is not None else ()
    return next((each for each in outcomes if each.request_id == change.request_id), None)


def repeated(record: Record, call: Call, action: Action) -> Outcome | None:
    """The outcome that this call already had, if it is a repeat. Raises `KeyConflict`."""
    for outcome in record.outcomes:
        if call.request_id is not None and outcome.request_id == call.request_id:
            if outcome.content_hash != _content_hash(action, call.expected_version):
                raise KeyConflict(key="request_id", reminder_id=record.reminder_id)
            return outcome
    last = record.outcomes[0] if record.outcomes else None
    if last is not None and last.version == record.version and action.repeats(record, last):
        return last
    return None


def _content_hash(action: Action, expected_version: int | None) -> bytes:
    content = encode((action.name.value, action.content, expected_version))
    return hashlib.sha256(content).digest()[:16]

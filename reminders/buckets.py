"""Which partition a reminder's entries go to, and what entries are called."""

from datetime import datetime, timedelta
from zlib import crc32

MINUTE = timedelta(minutes=1)
DUE_LIFE = timedelta(days=28)
"""How long after its time a due entry stays in the store, at least."""
TRUSTED_LIFE = DUE_LIFE - timedelta(days=1)
"""How old a minute may be at most that is believed to hold all that it ever held."""


def shard_of(reminder_id: str, shards: int) -> int:
    """Stable hash of the id; `shards` is fixed for a keyspace (it stores the count)."""
    return crc32(reminder_id.encode()) % shards


def minute_of(at: datetime) -> datetime:
    """The UTC minute that holds `at`."""
    return at.replace(second=0, microsecond=0)


def hour_of(at: datetime) -> datetime:
    """The UTC hour that holds `at`."""
    return at.replace(minute=0, second=0, microsecond=0)


def occurrence_entry_id(reminder_id: str, occurrence_id: str, version: int) -> str:
    """Sorts by local time within a reminder; another version is another entry."""
    return f"{reminder_id}.{occurrence_id}.v{version}"


def retry_entry_id(
    reminder_id: str, occurrence_id: str, channel_id: str, attempt: int, target: str = ""
) -> str:
    """The same for every repeat of the same retry. `target`: the subscriber of a topic."""
    return f"{reminder_id}.{occurrence_id}.{_receiver(channel_id, target)}.a{attempt}"


def replay_entry_id(
    reminder_id: str, occurrence_id: str, channel_id: str, replay_id: str, target: str = ""
) -> str:
    """The same for every repeat of the same replay."""
    return f"{reminder_id}.{occurrence_id}.{_receiver(channel_id, target)}.r{replay_id}"


def _receiver(channel_id: str, target: str) -> str:
    return f"{channel_id}/{target}" if target else channel_id


def fanout_entry_id(
    reminder_id: str, occurrence_id: str, bucket: int, page: int, replay_id: str = ""
) -> str:
    """A page of a fan-out, or of the replay of one; the same for whoever writes it again."""
    replayed = f".r{replay_id}" if replay_id else ""
    return f"{reminder_id}.{occurrence_id}.f{bucket}.{page}{replayed}"


def tally_entry_id(reminder_id: str, occurrence_id: str, at_ms: int) -> str:
    """A count of a fan-out. `at_ms`: when, in ms since 1970."""
    return f"{reminder_id}.{occurrence_id}.tally.{at_ms}"


def parked_entry_id(entry_id: str, counter: int) -> str:
    """A job that waits again under its own name."""
    return f"{entry_id.partition('!')[0]}!{counter}"


def finish_entry_id(reminder_id: str, version: int) -> str:
    """The entry that looks after the change that makes `version`."""
    return f"{reminder_id}.finish.v{version}"


TRIGGERS = "+"
"""Sorts before every digit: live entries of triggers stand behind those of the schedule."""


def trigger_entry_id(reminder_id: str, occurrence_id: str, version: int) -> str:
    """Sorts by time among the triggers of a reminder, and before all that its schedule names."""
    return f"{reminder_id}.{TRIGGERS}{occurrence_id}.v{version}"


def before_schedule(reminder_id: str) -> str:
    """Sorts behind every trigger of a reminder, and before all that its schedule names."""
    return f"{reminder_id}.{chr(ord(TRIGGERS) + 1)}"


def backfill_entry_id(reminder_id: str, backfill_id: str, page: int) -> str:
    """A page of a backfill, from 1."""
    return f"{reminder_id}.backfill.{backfill_id}.{page}"


def backfilled_entry_id(reminder_id: str, occurrence_id: str, version: int) -> str:
    """The same for every backfill of the same occurrence."""
    return f"{reminder_id}.{occurrence_id}.v{version}.b"

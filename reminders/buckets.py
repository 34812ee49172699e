"""Which partition a reminder's entries go to, and what entries are called."""

from datetime import datetime, timedelta
from zlib import crc32

MINUTE = timedelta(minutes=1)


def shard_of(reminder_id: str, shards: int) -> int:
    """Stable hash of the id; `shards` is fixed for a keyspace (it stores the count)."""
    return crc32(reminder_id.encode()) % shards


def minute_of(at: datetime) -> datetime:
    """The UTC minute that holds `at`."""
    return at.replace(second=0, microsecond=0)


def occurrence_entry_id(reminder_id: str, occurrence_id: str, version: int) -> str:
    """Sorts by local time within a reminder; another version is another entry."""
    return f"{reminder_id}.{occurrence_id}.v{version}"


def retry_entry_id(reminder_id: str, occurrence_id: str, channel_id: str, attempt: int) -> str:
    """The same for every repeat of the same retry."""
    return f"{reminder_id}.{occurrence_id}.{channel_id}.a{attempt}"


def parked_entry_id(entry_id: str, counter: int) -> str:
    """A job that waits again under its own name."""
    return f"{entry_id.partition('!')[0]}!{counter}"


def finish_entry_id(reminder_id: str, version: int) -> str:
    """The entry that looks after the change that makes `version`."""
    return f"{reminder_id}.finish.v{version}"

"""How long each row stays. Every value is a TTL in seconds as of now; 0 is none.

Cassandra counts TTLs by the wall clock of its nodes, so `now` is this machine's. An expiry further
away than Cassandra can hold becomes no TTL: a row that stays too long costs a little disk, one that
leaves before its time would be a lost reminder.
"""

import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

from reminders.buckets import DUE_LIFE
from reminders.model.definition import Recurring
from reminders.model.entry import DueEntry
from reminders.model.record import Record, Status

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
SECOND_US = 1_000_000

DUE_BACKSTOP = DUE_LIFE
"""After ring_at. Distant: settling is what ends an entry, and the watermark stops at a minute that
could have expired."""
OUTCOME_SLACK = timedelta(minutes=1)
"""Outcomes leave just after their row, never before: without them a handled entry would look
open."""
INDEX_LIFE = timedelta(days=3)
"""After fire_at."""
MAX_TTL_S = 20 * 365 * 24 * 3600
"""Cassandra refuses a longer one."""
MAX_EXPIRY_US = int(datetime(2038, 1, 19, tzinfo=UTC).timestamp()) * SECOND_US
"""Cassandra refuses to let anything expire later, unless storage_compatibility_mode is NONE."""


def to_us(at: datetime) -> int:
    """µs since 1970."""
    return (at - EPOCH) // MICROSECOND


def from_us(us: int) -> datetime:
    """Aware UTC."""
    return EPOCH + timedelta(microseconds=us)


class Expiry:
    """TTLs under one retention."""

    def __init__(self, retention: timedelta, now: Callable[[], float] = time.time) -> None:
        self._retention_us = retention // MICROSECOND
        self._now = now
        self._due_us = DUE_BACKSTOP // MICROSECOND
        self._outcome_us = (DUE_BACKSTOP + OUTCOME_SLACK) // MICROSECOND
        self._index_us = INDEX_LIFE // MICROSECOND

    def _ttl(self, expires_us: int) -> int:
        if expires_us > MAX_EXPIRY_US:
            return 0
        ttl = -((int(self._now() * SECOND_US) - expires_us) // SECOND_US)  # rounded up
        return max(ttl, 1) if ttl <= MAX_TTL_S else 0

    def due(self, ring_at_us: int) -> int:
        """Of a due row."""
        return self._ttl(ring_at_us + self._due_us)

    def outcome(self, ring_at_us: int) -> int:
        """Of a fate or an outcome."""
        return self._ttl(ring_at_us + self._outcome_us)

    def index(self, fire_at_us: int) -> int:
        """Of a row of the user index."""
        return self._ttl(fire_at_us + self._index_us)

    def ledger(self, at_us: int) -> int:
        """Of a ledger row written at that time."""
        return self._ttl(at_us + self._retention_us)

    def live(self, entry: DueEntry) -> int:
        """Of a live entry that is added to a record: an entry of a rule stays until it is
        dropped.
        """
        if entry.recurs:
            return 0
        return self._ttl(to_us(entry.key.ring_at) + self._due_us + self._retention_us)

    def record(self, record: Record, entries: Iterable[DueEntry]) -> int:
        """Of a record and its live entries; `entries` are all that it has planned."""
        if record.status is Status.PAUSED:
            return 0
        end = record.updated_at
        if record.status is Status.SCHEDULED:
            if isinstance(record.definition.schedule, Recurring):
                return 0
            for entry in entries:
                end = max(end, entry.key.ring_at)
        end += record.definition.policies.expire_after
        return self._ttl(to_us(end) + self._retention_us)

    def dedup(self, expires_at: datetime | None) -> int:
        """Of a claim; rounded down, so that it never outlives its record."""
        return 0 if expires_at is None else self._ttl(to_us(expires_at) - SECOND_US)

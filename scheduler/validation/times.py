"""Instants and durations as protobuf has them. Resolution: milliseconds.

What must not ring early is rounded up to the next millisecond, an end of validity down. Times that
are texts are read by `reminders.lifecycle.texts`.
"""

from datetime import UTC, datetime, timedelta

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from reminders.lifecycle.problems import Problems, Reason
from reminders.lifecycle.texts import EARLIEST, LATEST, YEARS

_EARLIEST_S, _LATEST_S = int(EARLIEST.timestamp()), int(LATEST.timestamp())
_NANOS = 1_000_000_000
_LONGEST_S = int(timedelta(days=36_525).total_seconds())


def read_instant(
    stamp: Timestamp, field: str, problems: Problems, *, round_up: bool = True
) -> datetime | None:
    """Aware, UTC, in whole milliseconds."""
    seconds, nanos = stamp.seconds, stamp.nanos
    if not (_EARLIEST_S <= seconds < _LATEST_S and 0 <= nanos < _NANOS):
        problems.add(field, Reason.VALUE_INVALID, f"is not a valid instant {YEARS}")
        return None
    instant = datetime.fromtimestamp(seconds, UTC)
    return instant + timedelta(milliseconds=_milliseconds(nanos, round_up)) if nanos else instant


def read_duration(duration: Duration, field: str, problems: Problems) -> timedelta | None:
    """In whole milliseconds, rounded up; not negative."""
    seconds, nanos = duration.seconds, duration.nanos
    if not (0 <= seconds <= _LONGEST_S and 0 <= nanos < _NANOS):
        negative = seconds < 0 or nanos < 0
        problem = "is negative" if negative else "is not a duration of at most 100 years"
        problems.add(field, Reason.VALUE_INVALID, f"{problem}; give one such as 90s")
        return None
    return timedelta(seconds=seconds, milliseconds=_milliseconds(nanos, round_up=True))


def _milliseconds(nanos: int, round_up: bool) -> int:  # noqa: FBT001  private, two callers
    return -(-nanos // 1_000_000) if round_up else nanos // 1_000_000

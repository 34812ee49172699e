"""Instants, durations and local times as the wire has them. Resolution: milliseconds.

What must not ring early is rounded up to the next millisecond, an end of validity down.
"""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import TypeVar
from zoneinfo import ZoneInfo

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from reminders.recurrence.errors import ZoneError, ZoneIsOffset
from reminders.recurrence.zones import zone
from scheduler.validation.problems import Problems, Reason, shown

PAST_TOLERANCE = timedelta(seconds=60)
"""A time up to this far in the past rings now; an older one is refused."""
FARTHEST = timedelta(days=3653)
"""Ten years: how far ahead a first occurrence may lie; Cassandra's longest TTL is 20 years."""
EARLIEST = datetime(1900, 1, 1, tzinfo=UTC)
LATEST = datetime(2200, 1, 1, tzinfo=UTC)
"""Dates outside [EARLIEST, LATEST) are typing errors."""

T = TypeVar("T")

_EARLIEST_S, _LATEST_S = int(EARLIEST.timestamp()), int(LATEST.timestamp())
_NANOS = 1_000_000_000
_LONGEST_ZONE = 65
"""Characters: one more than any zone's name has."""
_LONGEST_S = int(timedelta(days=36_525).total_seconds())
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIME = re.compile(r"\d{2}:\d{2}(:\d{2})?", re.ASCII)
_LOCAL = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2})?", re.ASCII)
_YEARS = f"with a year from {EARLIEST.year} to {LATEST.year - 1}"


def read_instant(
    stamp: Timestamp, field: str, problems: Problems, *, round_up: bool = True
) -> datetime | None:
    """Aware, UTC, in whole milliseconds."""
    seconds, nanos = stamp.seconds, stamp.nanos
    if not (_EARLIEST_S <= seconds < _LATEST_S and 0 <= nanos < _NANOS):
        problems.add(field, Reason.VALUE_INVALID, f"is not a valid instant {_YEARS}")
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


def check_ahead(instant: datetime, now: datetime, field: str, problems: Problems) -> None:
    """Neither past nor out of reach."""
    if instant < now - PAST_TOLERANCE:
        late = now - instant
        problems.add(
            field,
            Reason.TIME_IN_PAST,
            f"{instant.isoformat()} was {late} ago; give a time at most 60 s in the past",
        )
    elif instant > now + FARTHEST:
        problems.add(
            field,
            Reason.TIME_TOO_FAR,
            f"{instant.isoformat()} is more than ten years ahead; create it later",
        )


def read_zone(name: str, field: str, problems: Problems) -> ZoneInfo | None:
    """The zone of an IANA name."""
    if not name:
        problems.required(field, "an IANA name such as Europe/Paris")
        return None
    found = _lookup(name[:_LONGEST_ZONE])
    if isinstance(found, ZoneInfo):
        return found
    reason = Reason.ZONE_IS_OFFSET if isinstance(found, ZoneIsOffset) else Reason.ZONE_UNKNOWN
    remedy = "" if found.suggestion else "; use an IANA name such as Europe/Paris"
    problems.add(field, reason, f"{found.reason}{remedy}")
    return None


def read_date(text: str, field: str, problems: Problems) -> date | None:
    """`2026-12-24`."""
    found = _parsed(text, _DATE, date.fromisoformat)
    if found is None or not EARLIEST.year <= found.year < LATEST.year:
        problems.add(
            field, Reason.VALUE_INVALID, f"{shown(text)} is not a date such as 2026-12-24, {_YEARS}"
        )
        return None
    return found


def read_time(text: str, field: str, problems: Problems) -> time | None:
    """`09:00` or `09:00:30`, naive."""
    if not text:
        problems.required(field, "a local time such as 09:00")
        return None
    found = _parsed(text, _TIME, time.fromisoformat)
    if found is None:
        problems.add(
            field,
            Reason.VALUE_INVALID,
            f"{shown(text)} is not a time from 00:00 to 23:59:59, without zone or offset",
        )
    return found


def read_local(text: str, field: str, problems: Problems) -> datetime | None:
    """`2026-12-07T09:00`, seconds allowed; naive."""
    found = _parsed(text, _LOCAL, datetime.fromisoformat)
    if found is None or not EARLIEST.year <= found.year < LATEST.year:
        problems.add(
            field,
            Reason.VALUE_INVALID,
            f"{shown(text)} is not a local time such as 2026-12-07T09:00, without offset, {_YEARS}",
        )
        return None
    return found


def _parsed(text: str, form: re.Pattern[str], parse: Callable[[str], T]) -> T | None:
    """`fromisoformat` takes many more forms than are promised, so `form` goes first."""
    if not form.fullmatch(text):
        return None
    try:
        return parse(text)
    except ValueError:
        return None


def _milliseconds(nanos: int, round_up: bool) -> int:  # noqa: FBT001  private, two callers
    return -(-nanos // 1_000_000) if round_up else nanos // 1_000_000


@lru_cache(maxsize=4096)
def _lookup(name: str) -> ZoneInfo | ZoneError:
    """Wrong names are kept too: the search for a similar one takes milliseconds."""
    try:
        return zone(name)
    except ZoneError as error:
        return error.with_traceback(None)

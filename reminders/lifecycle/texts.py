"""Zones, dates and times as people write them: on the wire and on the command line.

Each reader returns a value that is only meaningful as long as no problem was noted.
"""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from math import ceil
from typing import TypeVar
from zoneinfo import ZoneInfo

from reminders.lifecycle.problems import Problems, Reason, check_length, shown
from reminders.lifecycle.request_limits import RequestLimits
from reminders.recurrence.business import check_holiday_calendar
from reminders.recurrence.errors import HolidayCalendarUnknown, ZoneError, ZoneIsOffset
from reminders.recurrence.zones import zone

PAST_TOLERANCE = timedelta(seconds=60)
"""A time up to this far in the past rings now; an older one is refused."""
EARLIEST = datetime(1900, 1, 1, tzinfo=UTC)
LATEST = datetime(2200, 1, 1, tzinfo=UTC)
"""Dates outside [EARLIEST, LATEST) are typing errors."""
YEARS = f"with a year from {EARLIEST.year} to {LATEST.year - 1}"
"""The same for a description."""
HOLIDAY_CALENDAR_BYTES = 16
A_ZONE = "an IANA name such as Europe/Paris"

T = TypeVar("T")

_LONGEST_ZONE = 65
"""Characters: one more than any zone's name has."""
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIME = re.compile(r"\d{2}:\d{2}(:\d{2})?", re.ASCII)
_ICALENDAR = re.compile(
    r"(?:TZID=(?P<zone>[^:]{1,64}):)?(?P<local>\d{8}T\d{6})(?P<utc>Z)?", re.ASCII
)
_LOCAL = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2})?", re.ASCII)


def _utc(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def check_ahead(
    instant: datetime, now: datetime, field: str, problems: Problems, limits: RequestLimits
) -> None:
    """Neither past nor out of reach."""
    if instant < now - PAST_TOLERANCE:
        late = timedelta(seconds=ceil((now - instant).total_seconds()))
        problems.add(
            field,
            Reason.TIME_IN_PAST,
            f"{_utc(instant)} was {late} ago; give a time at most 60 s in the past",
        )
    elif instant > now + limits.horizon:
        problems.add(
            field,
            Reason.TIME_TOO_FAR,
            f"{_utc(instant)} is more than {limits.horizon_text} ahead; create it later",
        )


def read_instant_text(
    text: str, field: str, problems: Problems, *, round_up: bool = True
) -> datetime | None:
    """`2026-12-01T09:00:00Z`, any offset: aware, UTC, in whole milliseconds."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        problems.add(
            field,
            Reason.VALUE_INVALID,
            f"{shown(text)} is no instant such as 2026-12-01T09:00:00Z",
        )
        return None
    if moment.tzinfo is None:
        problems.add(
            field,
            Reason.VALUE_INVALID,
            f"{shown(text)} names no offset: end it with Z for UTC, or with one such as +01:00",
        )
        return None
    far = not 1 < moment.year < 9999  # beyond, UTC may leave the range of datetime
    if far or not EARLIEST <= (instant := moment.astimezone(UTC)) < LATEST:
        problems.add(field, Reason.VALUE_INVALID, f"is not a valid instant {YEARS}")
        return None
    excess = timedelta(microseconds=instant.microsecond % 1000)
    up = timedelta(milliseconds=1) if excess and round_up else timedelta(0)
    return instant - excess + up


def read_zone(name: str, field: str, problems: Problems, wanted: str = A_ZONE) -> ZoneInfo | None:
    """The zone of an IANA name. `wanted`: what to give where there is none."""
    if not name:
        problems.required(field, wanted)
        return None
    found = _lookup(name[:_LONGEST_ZONE])
    if isinstance(found, ZoneInfo):
        return found
    reason = Reason.ZONE_IS_OFFSET if isinstance(found, ZoneIsOffset) else Reason.ZONE_UNKNOWN
    remedy = "" if found.suggestion else f"; use {A_ZONE}"
    problems.add(field, reason, f"{found.reason}{remedy}")
    return None


def read_date(text: str, field: str, problems: Problems) -> date | None:
    """`2026-12-24`."""
    found = _parsed(text, _DATE, date.fromisoformat)
    if found is None or not EARLIEST.year <= found.year < LATEST.year:
        problems.add(
            field, Reason.VALUE_INVALID, f"{shown(text)} is not a date such as 2026-12-24, {YEARS}"
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
            f"{shown(text)} is not a time such as 09:00 or 09:00:30, without zone or offset",
        )
    return found


def read_local(text: str, field: str, problems: Problems) -> datetime | None:
    """`2026-12-07T09:00`, seconds allowed; naive."""
    found = _parsed(text, _LOCAL, datetime.fromisoformat)
    if found is None or not EARLIEST.year <= found.year < LATEST.year:
        problems.add(
            field,
            Reason.VALUE_INVALID,
            f"{shown(text)} is not a local time such as 2026-12-07T09:00, without offset, {YEARS}",
        )
        return None
    return found


def read_local_in(
    text: str, where: ZoneInfo | None, field: str, problems: Problems
) -> datetime | None:
    """As `read_local`, or a DATE-TIME of iCalendar: `20261207T090000`, `20261207T080000Z`,
    `TZID=America/New_York:20261207T030000` (RFC 5545 3.3.5, which reads a time in a gap or an
    overlap by the offset before it); of another zone, what the clocks of `where` show then.
    """
    match = _ICALENDAR.fullmatch(text)
    if match is None or (match["zone"] and match["utc"]):
        return read_local(text, field, problems)
    if where is None:
        return None  # noted already
    there: tzinfo | None = UTC if match["utc"] else where
    if match["zone"] and match["zone"] != where.key:
        there = read_zone(match["zone"], field, problems)
    day, at = match["local"].split("T")
    local = read_local(
        f"{day[:4]}-{day[4:6]}-{day[6:]}T{at[:2]}:{at[2:4]}:{at[4:]}", field, problems
    )
    if there is None or local is None or there is where:
        return local
    here = local.replace(tzinfo=there).astimezone(where)
    if here.fold:
        problems.add(
            field,
            Reason.VALUE_INVALID,
            f"{shown(text)} is the second {here:%H:%M:%S} of {here:%Y-%m-%d} in {where.key}, which "
            "a local time can't say: give the local time that is meant, and an overlap policy",
        )
    return here.replace(tzinfo=None, fold=0)


def read_holiday_calendar(name: str, field: str, problems: Problems) -> str | None:
    """`FR`, `US-CA`; None where it is empty."""
    if not name:
        return None
    if len(name) > HOLIDAY_CALENDAR_BYTES:
        check_length(name, HOLIDAY_CALENDAR_BYTES, field, problems)
        return None
    try:
        check_holiday_calendar(name)
    except HolidayCalendarUnknown as error:
        problems.add(field, Reason.HOLIDAY_CALENDAR_UNKNOWN, error.reason)
    return name


def _parsed(text: str, form: re.Pattern[str], parse: Callable[[str], T]) -> T | None:
    """`fromisoformat` takes many more forms than are promised, so `form` goes first."""
    if not form.fullmatch(text):
        return None
    try:
        return parse(text)
    except ValueError:
        return None


@lru_cache(maxsize=4096)
def _lookup(name: str) -> ZoneInfo | ZoneError:
    """Wrong names are kept too: the search for a similar one takes milliseconds."""
    try:
        return zone(name)
    except ZoneError as error:
        return error.with_traceback(None)

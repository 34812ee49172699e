"""The text of an RRULE (RFC 5545 3.3.10) → its parts, each read strictly and by itself.

What the parts say together is for `rules`. Whatever is wrong is a `RuleInvalid` with the part's
name.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from reminders.recurrence.errors import RuleInvalid

WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_LONGEST_TEXT = 1000
"""Characters of a rule."""
_LARGEST_NUMBER = 999_999_999
"""For INTERVAL and COUNT."""


class Freq(StrEnum):
    """FREQ."""

    YEARLY = "YEARLY"
    MONTHLY = "MONTHLY"
    WEEKLY = "WEEKLY"
    DAILY = "DAILY"
    HOURLY = "HOURLY"
    MINUTELY = "MINUTELY"
    SECONDLY = "SECONDLY"

    @property
    def elapses(self) -> bool:
        """Shorter than a day: periods of elapsed time, not of local dates."""
        return self in (Freq.HOURLY, Freq.MINUTELY, Freq.SECONDLY)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ByDay:
    """One value of BYDAY. `nth` 0: every such weekday; negative: from the end."""

    weekday: int
    """0 is Monday, as in `datetime.date.weekday`."""
    nth: int = 0

    def __str__(self) -> str:
        return f"{self.nth or ''}{WEEKDAYS[self.weekday]}"


LISTS: dict[str, tuple[str, int, int, bool]] = {
    "BYMONTH": ("by_month", 1, 12, False),
    "BYWEEKNO": ("by_week_no", 1, 53, True),
    "BYYEARDAY": ("by_year_day", 1, 366, True),
    "BYMONTHDAY": ("by_month_day", 1, 31, True),
    "BYHOUR": ("by_hour", 0, 23, False),
    "BYMINUTE": ("by_minute", 0, 59, False),
    "BYSECOND": ("by_second", 0, 59, False),
    "BYSETPOS": ("by_set_pos", 1, 366, True),
}
"""Lists of numbers: field of `Rule`, lowest, highest, and whether one may count from the end."""
_OTHER_LINES = {
    "DTSTART": "is no part of the rule: give it as start, with time_zone",
    "RDATE": "is no part of the rule: list its times in rdates, with the TZID before each",
    "EXDATE": "is no part of the rule: list its times in exdates, with the TZID before each",
    "EXRULE": "is obsolete (RFC 5545): list the exceptions in exdates",
}
"""Lines of iCalendar that come with a rule, and what to do with them here."""
_SHORTHANDS = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY")
_PARTS = frozenset({"FREQ", "INTERVAL", "COUNT", "UNTIL", "BYDAY", "WKST", *LISTS})
_BYDAY = re.compile(r"([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)", re.ASCII)
_SIGNED = re.compile(r"[+-]?\d{1,3}", re.ASCII)
_UTC_TIME = re.compile(r"\d{8}T\d{6}Z", re.ASCII)
_UNSIGNED = re.compile(r"\d{1,9}", re.ASCII)


def split(text: str) -> dict[str, str]:
    """Part name → value, upper-case. Refuses what is no single RRULE value."""
    if len(text) > _LONGEST_TEXT:
        raise RuleInvalid("RRULE", f"is longer than {_LONGEST_TEXT} characters")
    body = text.strip().upper()
    for name, remedy in _OTHER_LINES.items():
        if re.search(rf"^{name}[;:]", body, re.MULTILINE):
            raise RuleInvalid(name, remedy)
    body = body.removeprefix("RRULE:")
    if body in _SHORTHANDS:
        body = f"FREQ={body}"
    if len(body.split()) != 1:
        raise RuleInvalid("RRULE", "must be one value such as FREQ=DAILY, without spaces")
    parts: dict[str, str] = {}
    for piece in body.split(";"):
        name, equals, value = piece.partition("=")
        if not equals or not name or not value:
            raise RuleInvalid(
                name[:20] or "RRULE",
                "is not of the form NAME=VALUE, as in FREQ=DAILY;INTERVAL=2, nor one of "
                + ", ".join(word.lower() for word in _SHORTHANDS),
            )
        if name not in _PARTS:
            raise RuleInvalid(name[:20], "is not a part of an RRULE that is supported")
        if name in parts:
            raise RuleInvalid(name, "is given twice")
        parts[name] = value
    return parts


def read_freq(value: str) -> Freq:
    """FREQ."""
    try:
        return Freq(value)
    except ValueError as error:
        raise RuleInvalid("FREQ", f"must be one of {', '.join(Freq)}") from error


def read_number(name: str, value: str) -> int:
    """INTERVAL or COUNT."""
    if not _UNSIGNED.fullmatch(value) or int(value) == 0:
        raise RuleInvalid(name, f"must be a whole number from 1 to {_LARGEST_NUMBER}")
    return int(value)


def read_numbers(name: str, value: str) -> tuple[int, ...]:
    """A list of `LISTS`: sorted, each once."""
    _, low, high, from_end = LISTS[name]
    form = _SIGNED if from_end else _UNSIGNED
    numbers = set()
    for item in value.split(","):
        number = int(item) if form.fullmatch(item) else None
        if number is None or not low <= (abs(number) if from_end else number) <= high:
            back = f", or -{high} to -{low} from the end" if from_end else ""
            raise RuleInvalid(name, f"{item[:20]!r} must be a number from {low} to {high}{back}")
        numbers.add(number)
    return tuple(sorted(numbers))


def read_by_days(value: str) -> tuple[ByDay, ...]:
    """BYDAY: sorted, each once."""
    days = set()
    for item in value.split(","):
        match = _BYDAY.fullmatch(item)
        nth = int(match[1] or 0) if match else 0
        if match is None or (match[1] and not 1 <= abs(nth) <= 53):
            raise RuleInvalid("BYDAY", f"{item[:20]!r} must be a weekday such as MO, 1MO or -1MO")
        days.add(ByDay(weekday=WEEKDAYS.index(match[2]), nth=nth))
    return tuple(sorted(days))


def read_week_start(value: str) -> int:
    """WKST: 0 is Monday."""
    if value not in WEEKDAYS:
        raise RuleInvalid("WKST", f"must be one of {', '.join(WEEKDAYS)}")
    return WEEKDAYS.index(value)


def read_until(value: str) -> datetime:
    """UNTIL: aware, UTC."""
    reason = "must be a UTC date-time such as 20261224T080000Z, as the start has a zone"
    if not _UTC_TIME.fullmatch(value):
        raise RuleInvalid("UNTIL", reason)
    try:
        return datetime.strptime(value, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError as error:
        raise RuleInvalid("UNTIL", reason) from error

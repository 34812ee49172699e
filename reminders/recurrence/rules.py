"""RRULE values of RFC 5545 3.3.10, parsed strictly: a part that can't work is refused by name.

Libraries accept INTERVAL=0, BYMONTH=13 or `WEEKLY;BYDAY=1MO` and then give nothing, or something
else; here each of them is a `RuleInvalid`. Stricter than the RFC in two points: UNTIL is a UTC
date-time (as the RFC wants it for a start with a zone; a date or a local time would say another
instant in each zone), and BYSECOND=60 is refused. Looser in one: a word such as `weekly` stands for
FREQ=WEEKLY, with the weekday, the day and the time of the start.

One value is taken, no lines of iCalendar: a series has its start, zone, exceptions and additions
beside the rule (DTSTART, TZID, EXDATE, RDATE). EXRULE, which RFC 5545 gave up, is refused.
"""

import re
from calendar import monthrange
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Self

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A valid RRULE. Lists are sorted and without repeats; an empty one is an absent part.

    COUNT and UNTIL are carried beside the rule: a series applies them after the policies.
    """

    freq: Freq
    interval: int = 1
    by_month: tuple[int, ...] = ()
    by_week_no: tuple[int, ...] = ()
    by_year_day: tuple[int, ...] = ()
    by_month_day: tuple[int, ...] = ()
    by_day: tuple[ByDay, ...] = ()
    by_hour: tuple[int, ...] = ()
    by_minute: tuple[int, ...] = ()
    by_second: tuple[int, ...] = ()
    by_set_pos: tuple[int, ...] = ()
    week_start: int = 0
    count: int | None = None
    until: datetime | None = None
    """Aware, UTC, inclusive."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an RRULE value, with or without the `RRULE:` prefix, or a shorthand, in any case.

        Raises:
            RuleInvalid: With the part's name and what is wrong with it.
        """
        parts = _split(text)
        if "FREQ" not in parts:
            raise RuleInvalid("FREQ", "is required")
        rule = cls(
            freq=_freq(parts["FREQ"]),
            interval=_number("INTERVAL", parts.get("INTERVAL", "1")),
            by_day=_by_days(parts["BYDAY"]) if "BYDAY" in parts else (),
            week_start=_week_start(parts.get("WKST", "MO")),
            count=_number("COUNT", parts["COUNT"]) if "COUNT" in parts else None,
            until=_until(parts["UNTIL"]) if "UNTIL" in parts else None,
            **{
                field: _numbers(name, parts[name])
                for name, (field, *_) in _LISTS.items()
                if name in parts
            },
        )
        _check(rule)
        return rule

    @property
    def text(self) -> str:
        """The one normal form of equal rules: what content hashes are made of; no prefix."""
        parts: list[tuple[str, object]] = [("FREQ", self.freq)]
        if self.interval != 1:
            parts.append(("INTERVAL", self.interval))
        for name, values in self._lists():
            if values:
                parts.append((name, ",".join(str(value) for value in values)))
        if self.week_start:
            parts.append(("WKST", WEEKDAYS[self.week_start]))
        if self.count is not None:
            parts.append(("COUNT", self.count))
        if self.until is not None:
            parts.append(("UNTIL", f"{self.until:%Y%m%dT%H%M%SZ}"))
        return ";".join(f"{name}={value}" for name, value in parts)

    def completed(self, start: datetime) -> "Rule":
        """With what the rule leaves to its start (RFC 5545 3.3.10) written out.

        After this the start no longer matters but for the phase of INTERVAL. Elapsing rules stay
        as they are: their phase is all that they take from the start.
        """
        if self.freq.elapses:
            return self
        rule = replace(
            self,
            by_hour=self.by_hour or (start.hour,),
            by_minute=self.by_minute or (start.minute,),
            by_second=self.by_second or (start.second,),
        )
        if rule.by_day or rule.by_month_day or rule.by_year_day or rule.freq is Freq.DAILY:
            return rule
        if rule.by_week_no or rule.freq is Freq.WEEKLY:
            return replace(rule, by_day=(ByDay(weekday=start.weekday()),))
        if rule.freq is Freq.YEARLY:
            rule = replace(rule, by_month=rule.by_month or (start.month,))
        return replace(rule, by_month_day=(start.day,))

    def _lists(self) -> tuple[tuple[str, tuple[object, ...]], ...]:
        return (
            ("BYMONTH", self.by_month),
            ("BYWEEKNO", self.by_week_no),
            ("BYYEARDAY", self.by_year_day),
            ("BYMONTHDAY", self.by_month_day),
            ("BYDAY", self.by_day),
            ("BYHOUR", self.by_hour),
            ("BYMINUTE", self.by_minute),
            ("BYSECOND", self.by_second),
            ("BYSETPOS", self.by_set_pos),
        )


# Lists of numbers: field, lowest, highest, and whether a value may count from the end.
_LISTS: dict[str, tuple[str, int, int, bool]] = {
    "BYMONTH": ("by_month", 1, 12, False),
    "BYWEEKNO": ("by_week_no", 1, 53, True),
    "BYYEARDAY": ("by_year_day", 1, 366, True),
    "BYMONTHDAY": ("by_month_day", 1, 31, True),
    "BYHOUR": ("by_hour", 0, 23, False),
    "BYMINUTE": ("by_minute", 0, 59, False),
    "BYSECOND": ("by_second", 0, 59, False),
    "BYSETPOS": ("by_set_pos", 1, 366, True),
}
_OTHER_LINES = {
    "DTSTART": "is no part of the rule: give it as start, with time_zone",
    "RDATE": "is no part of the rule: list its local times in rdates, in the zone of the rule",
    "EXDATE": "is no part of the rule: list its local times in exdates, in the zone of the rule",
    "EXRULE": "is obsolete (RFC 5545): list the exceptions in exdates",
}
"""Lines of iCalendar that come with a rule, and what to do with them here."""
_SHORTHANDS = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY")
_PARTS = frozenset({"FREQ", "INTERVAL", "COUNT", "UNTIL", "BYDAY", "WKST", *_LISTS})
_BYDAY = re.compile(r"([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)", re.ASCII)
_SIGNED = re.compile(r"[+-]?\d{1,3}", re.ASCII)
_UTC_TIME = re.compile(r"\d{8}T\d{6}Z", re.ASCII)
_UNSIGNED = re.compile(r"\d{1,9}", re.ASCII)


def _split(text: str) -> dict[str, str]:
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


def _freq(value: str) -> Freq:
    try:
        return Freq(value)
    except ValueError as error:
        raise RuleInvalid("FREQ", f"must be one of {', '.join(Freq)}") from error


def _number(name: str, value: str) -> int:
    if not _UNSIGNED.fullmatch(value) or int(value) == 0:
        raise RuleInvalid(name, f"must be a whole number from 1 to {_LARGEST_NUMBER}")
    return int(value)


def _numbers(name: str, value: str) -> tuple[int, ...]:
    _, low, high, from_end = _LISTS[name]
    form = _SIGNED if from_end else _UNSIGNED
    numbers = set()
    for item in value.split(","):
        number = int(item) if form.fullmatch(item) else None
        if number is None or not low <= (abs(number) if from_end else number) <= high:
            back = f", or -{high} to -{low} from the end" if from_end else ""
            raise RuleInvalid(name, f"{item[:20]!r} must be a number from {low} to {high}{back}")
        numbers.add(number)
    return tuple(sorted(numbers))


def _by_days(value: str) -> tuple[ByDay, ...]:
    days = set()
    for item in value.split(","):
        match = _BYDAY.fullmatch(item)
        nth = int(match[1] or 0) if match else 0
        if match is None or (match[1] and not 1 <= abs(nth) <= 53):
            raise RuleInvalid("BYDAY", f"{item[:20]!r} must be a weekday such as MO, 1MO or -1MO")
        days.add(ByDay(weekday=WEEKDAYS.index(match[2]), nth=nth))
    return tuple(sorted(days))


def _week_start(value: str) -> int:
    if value not in WEEKDAYS:
        raise RuleInvalid("WKST", f"must be one of {', '.join(WEEKDAYS)}")
    return WEEKDAYS.index(value)


def _until(value: str) -> datetime:
    reason = "must be a UTC date-time such as 20261224T080000Z, as the start has a zone"
    if not _UTC_TIME.fullmatch(value):
        raise RuleInvalid("UNTIL", reason)
    try:
        return datetime.strptime(value, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError as error:
        raise RuleInvalid("UNTIL", reason) from error


def _check(rule: Rule) -> None:
    """What RFC 5545 3.3.10 says of parts together, and days that never come."""
    freq = rule.freq
    if rule.count is not None and rule.until is not None:
        raise RuleInvalid("COUNT", "can't be used with UNTIL")
    if rule.by_week_no and freq is not Freq.YEARLY:
        raise RuleInvalid("BYWEEKNO", "can only be used with FREQ=YEARLY")
    if rule.by_year_day and freq in (Freq.DAILY, Freq.WEEKLY, Freq.MONTHLY):
        raise RuleInvalid("BYYEARDAY", f"can't be used with FREQ={freq}")
    if rule.by_month_day and freq is Freq.WEEKLY:
        raise RuleInvalid("BYMONTHDAY", "can't be used with FREQ=WEEKLY")
    if rule.by_set_pos and not any(values for _, values in rule._lists()[:-1]):  # noqa: SLF001
        raise RuleInvalid("BYSETPOS", "can only be used with another BY part")
    _check_nth(rule)
    check_days(rule)


def check_days(rule: Rule) -> None:
    """Refuse 30 February: days of the month that none of the rule's months ever has.

    Raises:
        RuleInvalid: For BYMONTHDAY.
    """
    if rule.by_month and rule.by_month_day:
        longest = max(monthrange(2000, month)[1] for month in rule.by_month)
        if all(abs(day) > longest for day in rule.by_month_day):
            raise RuleInvalid("BYMONTHDAY", "names no day that these months ever have")


def _check_nth(rule: Rule) -> None:
    nths = [abs(day.nth) for day in rule.by_day if day.nth]
    if not nths:
        return
    if rule.freq not in (Freq.MONTHLY, Freq.YEARLY):
        raise RuleInvalid("BYDAY", f"can't be numbered with FREQ={rule.freq}")
    if rule.by_week_no:
        raise RuleInvalid("BYDAY", "can't be numbered together with BYWEEKNO")
    if max(nths) > 5 and (rule.freq is Freq.MONTHLY or rule.by_month):
        raise RuleInvalid("BYDAY", "a month has no more than five of a weekday")

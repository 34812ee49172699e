"""RRULE values of RFC 5545 3.3.10, parsed strictly: a part that can't work is refused by name.

Libraries accept INTERVAL=0, BYMONTH=13 or `WEEKLY;BYDAY=1MO` and then give nothing, or something
else; here each of them is a `RuleInvalid`. Stricter than the RFC in two points: UNTIL is a UTC
date-time (as the RFC wants it for a start with a zone; a date or a local time would say another
instant in each zone), and BYSECOND=60 is refused. Looser in one: a word such as `weekly` stands for
FREQ=WEEKLY, with the weekday, the day and the time of the start.

One value is taken, no lines of iCalendar: a series has its start, zone, exceptions and additions
beside the rule (DTSTART, TZID, EXDATE, RDATE). EXRULE, which RFC 5545 gave up, is refused.

Here a rule is a value, and its parts are checked together; `rule_text` reads each by itself.
"""

from calendar import monthrange
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Self

from reminders.recurrence.errors import RuleInvalid
from reminders.recurrence.rule_text import (
    LISTS,
    WEEKDAYS,
    ByDay,
    Freq,
    read_by_days,
    read_freq,
    read_number,
    read_numbers,
    read_until,
    read_week_start,
    split,
)


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
        parts = split(text)
        if "FREQ" not in parts:
            raise RuleInvalid("FREQ", "is required")
        rule = cls(
            freq=read_freq(parts["FREQ"]),
            interval=read_number("INTERVAL", parts.get("INTERVAL", "1")),
            by_day=read_by_days(parts["BYDAY"]) if "BYDAY" in parts else (),
            week_start=read_week_start(parts.get("WKST", "MO")),
            count=read_number("COUNT", parts["COUNT"]) if "COUNT" in parts else None,
            until=read_until(parts["UNTIL"]) if "UNTIL" in parts else None,
            **{
                field: read_numbers(name, parts[name])
                for name, (field, *_) in LISTS.items()
                if name in parts
            },
        )
        _check(rule)
        return rule

    @property
    def elapses(self) -> bool:
        """Advances in elapsed time, as cron with a wildcard hour does."""
        return self.freq.elapses

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

"""Which dates of a period an RRULE names (FREQ=DAILY to YEARLY), missing days included.

RFC 5545 3.3.10 describes BY parts that expand or limit; for dates that comes to this: a date of the
period matches when every given part accepts it, and BYDAY's numbers count within the month if the
rule is MONTHLY or has BYMONTH, else within the year. Periods are numbered, so that the one near any
date is found by arithmetic and INTERVAL keeps its phase.
"""

from calendar import monthrange
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from reminders.recurrence.business import first_business_day, last_business_day
from reminders.recurrence.policies import CalendarPolicies, MissingDay
from reminders.recurrence.rule_text import Freq
from reminders.recurrence.rules import Rule

LAST_DAY = date(9998, 12, 31)
"""Rules end here: beyond it `datetime` has no room for offsets."""
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """A date that a rule names, and where the missing-day policy puts it."""

    nominal: date
    """For a missing day: the month's last day."""
    missing: int = 0
    """Days past the month's end that the rule asked for."""
    planned: date


def place_missing(month_end: date, policies: CalendarPolicies) -> date | None:
    """Where the policy puts a day that the month ending here lacks; None: nowhere."""
    match policies.missing_day:
        case MissingDay.SKIP:
            return None
        case MissingDay.CLAMP:
            return month_end
        case MissingDay.NEXT_BUSINESS_DAY:
            return first_business_day(month_end + _DAY, policies.holiday_calendar)
        case MissingDay.PREVIOUS_BUSINESS_DAY:
            return last_business_day(month_end, policies.holiday_calendar)


def period_of(rule: Rule, day: date) -> int:
    """The number of the period (year, month, week or day) that holds the date."""
    match rule.freq:
        case Freq.YEARLY:
            return day.year
        case Freq.MONTHLY:
            return day.year * 12 + day.month - 1
        case Freq.WEEKLY:
            return (day.toordinal() - 1 - rule.week_start) // 7
        case _:
            return day.toordinal()


def first_day(rule: Rule, period: int) -> date | None:
    """The date on which a period begins; None beyond `LAST_DAY`."""
    match rule.freq:
        case Freq.YEARLY:
            year, month = period, 1
        case Freq.MONTHLY:
            year, month = period // 12, period % 12 + 1
        case Freq.WEEKLY:
            return _from_ordinal(period * 7 + 1 + rule.week_start)
        case _:
            return _from_ordinal(period)
    return date(year, month, 1) if year <= LAST_DAY.year else None


def month_after(day: date, months: Collection[int]) -> date | None:
    """The first of the next month among `months`, after the day's; None past `LAST_DAY`."""
    year, month = day.year, day.month
    for _ in range(12):
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)
        if month in months:
            return date(year, month, 1) if year <= LAST_DAY.year else None
    return None


def past_barren_months(rule: Rule, period: int) -> int:
    """How many periods there are until BYMONTH names a date again; 0: this one may have some.

    For weeks and days, so that a rule for one month costs a step a year outside of it.
    """
    if not rule.by_month or rule.freq not in (Freq.WEEKLY, Freq.DAILY):
        return 0
    first = first_day(rule, period)
    last = first_day(rule, period + 1) or LAST_DAY + _DAY
    if first is None or {first.month, (last - _DAY).month} & set(rule.by_month):
        return 0
    following = month_after(first, rule.by_month)
    return period_of(rule, following or LAST_DAY) - period


def days_of(rule: Rule, period: int, policies: CalendarPolicies) -> tuple[list[Day], int]:
    """The matching days of a period of a completed rule, and how many dates were looked at.

    Ordered by planned date; of several that the policy puts on one date the earliest name first.
    """
    candidates = list(_candidates(rule, period, policies))
    days = [day for day in candidates if day.missing or accepts(rule, day.nominal)]
    return sorted(days, key=lambda day: (day.planned, day.nominal, day.missing)), len(candidates)


def one_a_date(days: list[Day], start: date) -> list[Day]:
    """Of the days on one planned date the first that is not named before the start, if there is."""
    chosen: dict[date, Day] = {}
    for day in days:
        if day.planned not in chosen or chosen[day.planned].nominal < start <= day.nominal:
            chosen[day.planned] = day
    return list(chosen.values())


def _from_ordinal(ordinal: int) -> date | None:
    return date.fromordinal(ordinal) if ordinal <= LAST_DAY.toordinal() else None


def _candidates(rule: Rule, period: int, policies: CalendarPolicies) -> Iterator[Day]:
    first = first_day(rule, period)
    if first is None:
        return
    if rule.freq is Freq.YEARLY:
        for month in rule.by_month or range(1, 13):
            yield from _in_month(rule, first.year, month, policies)
    elif rule.freq is Freq.MONTHLY:
        if not rule.by_month or first.month in rule.by_month:
            yield from _in_month(rule, first.year, first.month, policies)
    else:
        for later in range(7 if rule.freq is Freq.WEEKLY else 1):
            day = first + later * _DAY
            yield Day(nominal=day, planned=day)


def _in_month(rule: Rule, year: int, month: int, policies: CalendarPolicies) -> Iterator[Day]:
    length = monthrange(year, month)[1]
    for number in rule.by_month_day or range(1, length + 1):
        if number > length:
            yield from _missing(rule, date(year, month, length), number - length, policies)
        elif number > 0 or length + number >= 0:
            day = date(year, month, number if number > 0 else length + 1 + number)
            yield Day(nominal=day, planned=day)


def _missing(rule: Rule, month_end: date, days: int, policies: CalendarPolicies) -> Iterator[Day]:
    if rule.by_day or rule.by_week_no or rule.by_year_day:
        return  # what weekday would 30 February be?
    planned = place_missing(month_end, policies)
    if planned is not None:
        yield Day(nominal=month_end, missing=days, planned=planned)


def accepts(rule: Rule, day: date) -> bool:
    """Whether an existing date passes every BY part that concerns dates."""
    if rule.by_month and day.month not in rule.by_month:
        return False
    if rule.by_month_day:
        length = monthrange(day.year, day.month)[1]
        if not {day.day, day.day - length - 1} & set(rule.by_month_day):
            return False
    if rule.by_year_day:
        number, length = day.timetuple().tm_yday, _year_length(day.year)
        if not {number, number - length - 1} & set(rule.by_year_day):
            return False
    if rule.by_week_no and not _week_numbers(day, rule.week_start) & set(rule.by_week_no):
        return False
    return not rule.by_day or _accepts_weekday(rule, day)


def _accepts_weekday(rule: Rule, day: date) -> bool:
    if rule.freq is Freq.MONTHLY or rule.by_month:
        position, length = day.day, monthrange(day.year, day.month)[1]
    else:
        position, length = day.timetuple().tm_yday, _year_length(day.year)
    nths = {0, (position - 1) // 7 + 1, -((length - position) // 7 + 1)}
    return any(wanted.weekday == day.weekday() and wanted.nth in nths for wanted in rule.by_day)


def _week_numbers(day: date, week_start: int) -> set[int]:
    """The number of the date's week, from the start and from the end of the week's year.

    Week 1 is the first with at least four days in the year (RFC 5545 3.3.10, ISO 8601), so a
    week belongs to the year of its fourth day.
    """
    fourth = day - ((day.weekday() - week_start) % 7 - 3) * _DAY
    number, length = fourth.timetuple().tm_yday, _year_length(fourth.year)
    return {(number - 1) // 7 + 1, -((length - number) // 7 + 1)}


def _year_length(year: int) -> int:
    return 337 + monthrange(year, 2)[1]

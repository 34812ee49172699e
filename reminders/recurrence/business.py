"""Business days: Monday to Friday, or a country's own working days from the `holidays` package."""

from collections.abc import Callable
from datetime import date, timedelta
from functools import cache
from importlib.metadata import version

from reminders.recurrence.errors import HolidayCalendarUnknown

_DAY = timedelta(days=1)
_LONGEST_BREAK = 31
"""Days without a business day that we search through; no calendar has nearly as many."""


@cache
def holiday_data_version() -> str:
    """The edition of the `holidays` package that business days are computed from."""
    return version("holidays")


def check_holiday_calendar(name: str | None) -> None:
    """Refuse a calendar that the `holidays` package does not know.

    Raises:
        HolidayCalendarUnknown: No such country or subdivision.
    """
    _is_business_day(name)


def last_business_day(day: date, calendar: str | None) -> date:
    """The latest business day that is not after `day`."""
    return _search(day, -_DAY, calendar)


def first_business_day(day: date, calendar: str | None) -> date:
    """The earliest business day that is not before `day`."""
    return _search(day, _DAY, calendar)


def _search(day: date, step: timedelta, calendar: str | None) -> date:
    open_on = _is_business_day(calendar)
    for _ in range(_LONGEST_BREAK):
        if open_on(day):
            return day
        day += step
    return day


@cache
def _is_business_day(calendar: str | None) -> Callable[[date], bool]:
    if calendar is None:
        return _is_weekday
    import holidays  # noqa: PLC0415  0.1 s of import that only few reminders need

    country, dash, subdivision = calendar.partition("-")
    subdivisions = holidays.list_supported_countries(include_aliases=False).get(country)
    if subdivisions is None or (dash and subdivision not in subdivisions):
        raise HolidayCalendarUnknown(calendar)
    return holidays.country_holidays(country, subdiv=subdivision or None).is_working_day


def _is_weekday(day: date) -> bool:
    return day.weekday() < 5

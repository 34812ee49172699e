"""Five-field cron read slowly: every minute is asked whether the expression names it. No zone.

Days as Debian's cron has them: if one of the two day fields starts with a star both must match,
otherwise either.
"""

from calendar import monthrange
from datetime import date, datetime, timedelta
from functools import cache

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


def occurrences(text: str, start: datetime, until: datetime) -> list[datetime]:
    """All whole minutes from `start` to `until`, inclusive."""
    minute, hour, day_of_month, month, day_of_week = text.upper().split()
    both = "*" in (day_of_month[0], day_of_week[0])
    found = []
    at = start.replace(second=0, microsecond=0)
    while at <= until:
        days = (
            _names_day(day_of_month, at.date()),
            _names_weekday(day_of_week, at.date()),
        )
        if not _names(month, at.month, 1, 12, _MONTHS) or not (all if both else any)(days):
            at = datetime(at.year, at.month, at.day) + timedelta(days=1)
            continue
        if not _names(hour, at.hour, 0, 23):
            at = at.replace(minute=0) + timedelta(hours=1)
            continue
        if _names(minute, at.minute, 0, 59) and at >= start:
            found.append(at)
        at += timedelta(minutes=1)
    return found


def _names_day(field: str, day: date) -> bool:
    last = monthrange(day.year, day.month)[1]
    for item in field.split(","):
        if item == "L" and day.day == last:
            return True
        if item == "LW":
            weekdays = [n for n in range(1, last + 1) if day.replace(day=n).weekday() < 5]
            if day.day == weekdays[-1]:
                return True
        elif item != "L" and _names(item, day.day, 1, 31):
            return True
    return False


def _names_weekday(field: str, day: date) -> bool:
    number = (day.weekday() + 1) % 7
    same = [
        n
        for n in range(1, monthrange(day.year, day.month)[1] + 1)
        if day.replace(day=n).weekday() == day.weekday()
    ]
    for item in field.split(","):
        if item.endswith("L"):
            if int(item[:-1]) % 7 == number and day.day == same[-1]:
                return True
        elif "#" in item:
            weekday, nth = item.split("#")
            wanted = _WEEKDAYS.index(weekday) if weekday in _WEEKDAYS else int(weekday) % 7
            if wanted == number and same.index(day.day) + 1 == int(nth):
                return True
        elif any(
            _names(item, one, 0, 7, _WEEKDAYS) for one in ((0, 7) if not number else (number,))
        ):
            return True
    return False


@cache
def _names(field: str, value: int, low: int, high: int, names: tuple[str, ...] = ()) -> bool:
    """Whether a list of numbers, ranges and steps names a value."""
    return any(_item(item, value, low, high, names) for item in field.split(","))


def _item(item: str, value: int, low: int, high: int, names: tuple[str, ...]) -> bool:
    def number(text: str) -> int:
        return names.index(text) + low if text in names else int(text)

    span, _, step = item.partition("/")
    if span == "*":
        first, last = low, high
    elif "-" in span:
        first, last = (number(one) for one in span.split("-"))
    else:
        first = number(span)
        last = high if step else first
    return value in range(first, last + 1, int(step or 1))

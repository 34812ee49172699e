"""RFC 5545 3.3.10 read literally, slowly, and without arithmetic: for naive times, no zone.

Every period is gone through day by day, and for what is shorter than a day second by second. Sets
are built as the text says: first what the period can hold, then each BY part takes away what it
does not name (expanding and limiting come to the same once every second is a candidate), then
BYSETPOS, then the start, then COUNT and UNTIL. Numbers from the end are counted from the end of a
list, weekdays by listing them, weeks by laying them out.

One reading is ours, where the text is silent: the days of week 1 that lie in December, and those
of the last week that lie in January, are met in the year of their date (as dateutil has it).
"""

from calendar import monthrange
from collections.abc import Collection, Iterator
from datetime import date, datetime, timedelta
from functools import cache

WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_DAY = timedelta(days=1)
_UNITS = {"HOURLY": 3600, "MINUTELY": 60, "SECONDLY": 1}
Parts = dict[str, str]


def occurrences(text: str, start: datetime, until: datetime) -> list[datetime]:
    """All from `start` to `until`, inclusive."""
    parts = dict(piece.split("=") for piece in text.split(";"))
    count = int(parts.get("COUNT", 10**9))
    if "UNTIL" in parts:
        until = min(until, datetime.fromisoformat(parts["UNTIL"][:-1]))
    found: list[datetime] = []
    for period in _sets(_with_start(parts, start), start, until):
        chosen = _positions(parts, period)
        found += [at for at in chosen if start <= at <= until]
        if len(found) >= count:
            break
    return found[:count]


def _with_start(parts: Parts, start: datetime) -> Parts:
    """What the rule leaves open comes from the start."""
    freq = parts["FREQ"]
    given = dict(parts)
    if freq != "SECONDLY":
        given.setdefault("BYSECOND", str(start.second))
    if freq not in ("SECONDLY", "MINUTELY"):
        given.setdefault("BYMINUTE", str(start.minute))
    if freq in _UNITS:
        return given
    given.setdefault("BYHOUR", str(start.hour))
    names_days = {"BYDAY", "BYMONTHDAY", "BYYEARDAY"} & set(parts)
    if names_days or freq == "DAILY":
        return given
    if freq == "WEEKLY" or "BYWEEKNO" in parts:
        given["BYDAY"] = WEEKDAYS[start.weekday()]
        return given
    given["BYMONTHDAY"] = str(start.day)
    if freq == "YEARLY":
        given.setdefault("BYMONTH", str(start.month))
    return given


def _sets(parts: Parts, start: datetime, until: datetime) -> Iterator[list[datetime]]:
    """The set of each period of the rule's interval, before BYSETPOS."""
    interval = int(parts.get("INTERVAL", 1))
    if (unit := _UNITS.get(parts["FREQ"])) is not None:
        second = start.hour * 3600 + start.minute * 60 + start.second
        begins = start - timedelta(seconds=second % unit)
        while begins <= until:
            yield _seconds_of(parts, begins, unit)
            begins += timedelta(seconds=unit * interval)
        return
    times = [
        (hour, minute, second)
        for hour in sorted(_numbers(parts["BYHOUR"]))
        for minute in sorted(_numbers(parts["BYMINUTE"]))
        for second in sorted(_numbers(parts["BYSECOND"]))
    ]
    for number, days in enumerate(_periods(parts, start.date(), until.date())):
        if number % interval == 0:
            yield [
                datetime(day.year, day.month, day.day, *at)
                for day in days
                if _accepts(parts, day)
                for at in times
            ]


def _periods(parts: Parts, first: date, last: date) -> Iterator[list[date]]:
    """Consecutive years, months, weeks or days, each as its dates, from the one with `first` on."""
    freq = parts["FREQ"]
    day = first
    if freq == "YEARLY":
        day = date(first.year, 1, 1)
    elif freq == "MONTHLY":
        day = date(first.year, first.month, 1)
    elif freq == "WEEKLY":
        while WEEKDAYS[day.weekday()] != parts.get("WKST", "MO"):
            day -= _DAY
    period: list[date] = []
    while day <= last or period:
        begins = {
            "YEARLY": (day.month, day.day) == (1, 1),
            "MONTHLY": day.day == 1,
            "WEEKLY": WEEKDAYS[day.weekday()] == parts.get("WKST", "MO"),
            "DAILY": True,
        }[freq]
        if begins and period:
            yield period
            period = []
            if day > last:
                return
        period.append(day)
        day += _DAY


def _seconds_of(parts: Parts, begins: datetime, unit: int) -> list[datetime]:
    """Of an hour, a minute or a second: its seconds that every part names."""
    if not _accepts(parts, begins.date()) or not _names(parts, "BYHOUR", begins.hour):
        return []
    found = []
    for second in range(unit):
        at = begins + timedelta(seconds=second)
        if _names(parts, "BYSECOND", at.second) and _names(parts, "BYMINUTE", at.minute):
            found.append(at)
    return found


def _accepts(parts: Parts, day: date) -> bool:
    """Whether every part that concerns dates names this one."""
    if not _names(parts, "BYMONTH", day.month):
        return False
    if "BYMONTHDAY" in parts and not _is_nth(day, _month(day), _numbers(parts["BYMONTHDAY"])):
        return False
    if "BYYEARDAY" in parts and not _is_nth(day, _year(day.year), _numbers(parts["BYYEARDAY"])):
        return False
    weeks = parts.get("BYWEEKNO")
    if weeks and not _in_weeks(day, parts.get("WKST", "MO"), _numbers(weeks)):
        return False
    weekdays = parts.get("BYDAY")
    return not weekdays or any(_is_weekday(parts, day, one) for one in weekdays.split(","))


def _is_weekday(parts: Parts, day: date, value: str) -> bool:
    number, weekday = value[:-2], value[-2:]
    if WEEKDAYS[day.weekday()] != weekday:
        return False
    if not number:
        return True
    in_month = parts["FREQ"] == "MONTHLY" or "BYMONTH" in parts
    same = tuple(
        one
        for one in (_month(day) if in_month else _year(day.year))
        if one.weekday() == day.weekday()
    )
    return _is_nth(day, same, {int(number)})


def _is_nth(day: date, among: tuple[date, ...], numbers: Collection[int]) -> bool:
    """Counted from one, or back from the end."""
    return any(
        among[number - 1 if number > 0 else number] == day
        for number in numbers
        if abs(number) <= len(among)
    )


def _in_weeks(day: date, week_start: str, numbers: Collection[int]) -> bool:
    """In the week of some year that has one of these numbers; weeks reach over the year's ends."""
    for year in (day.year - 1, day.year, day.year + 1):
        weeks = _weeks(year, week_start)
        if any(day in weeks[n - 1 if n > 0 else n] for n in numbers if abs(n) <= len(weeks)):
            return True
    return False


@cache
def _weeks(year: int, week_start: str) -> tuple[tuple[date, ...], ...]:
    """Seven days each, of which at least four are in the year."""
    weeks = []
    day = date(year - 1, 12, 20)
    while day.year <= year:
        if WEEKDAYS[day.weekday()] == week_start:
            week = tuple(day + number * _DAY for number in range(7))
            if sum(one.year == year for one in week) >= 4:
                weeks.append(week)
        day += _DAY
    return tuple(weeks)


@cache
def _year(year: int) -> tuple[date, ...]:
    return tuple(
        date(year, month, number)
        for month in range(1, 13)
        for number in range(1, monthrange(year, month)[1] + 1)
    )


def _month(day: date) -> tuple[date, ...]:
    return _months(day.year)[day.month - 1]


@cache
def _months(year: int) -> tuple[tuple[date, ...], ...]:
    return tuple(tuple(one for one in _year(year) if one.month == month) for month in range(1, 13))


def _positions(parts: Parts, period: list[datetime]) -> list[datetime]:
    """BYSETPOS."""
    if "BYSETPOS" not in parts:
        return period
    numbers = _numbers(parts["BYSETPOS"])
    return sorted(
        {
            period[number - 1 if number > 0 else number]
            for number in numbers
            if abs(number) <= len(period)
        }
    )


def _names(parts: Parts, name: str, value: int) -> bool:
    return name not in parts or value in _numbers(parts[name])


@cache
def _numbers(values: str) -> frozenset[int]:
    return frozenset(int(value) for value in values.split(","))

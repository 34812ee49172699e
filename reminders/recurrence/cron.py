"""Five-field cron: minute, hour, day of month, month, day of week.

Names (MON, JAN), ranges, steps and lists; `L` and `LW` as day of month, `5L` (last Friday) and
`5#2` (second Friday) as day of week; `?` for a star in either; 0 and 7 are Sunday; `@hourly` to
`@yearly`. Days as in Debian's cron: if one of the two day fields starts with a star (`*/2` does)
both must match, otherwise either: `0 9 13 * 5` is each 13th and each Friday, `0 9 13 * *` each
13th, `0 9 */2 * 5` the Fridays on odd days.

`cronsim` reads the fields and matches dates; the times are ours, so that the stored policies rule
them. A wildcard hour (a star, a star with a step, or all 24) means elapsed time: every real hour,
whatever the clocks do, so nothing is lost in a gap or left out of a repeated hour, and the policies
have no say. A step that leaves one hour (`*/24`) names that hour, and the policies do.
"""

import re
from dataclasses import dataclass, field
from datetime import date, datetime, time
from typing import Self

from cronsim import CronSim, CronSimError

from reminders.recurrence.errors import CronInvalid

_LONGEST_TEXT = 256
"""Characters of an expression."""
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_SHORTHANDS = {
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
    "@MONTHLY": "0 0 1 * *",
    "@WEEKLY": "0 0 * * 0",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@HOURLY": "0 * * * *",
}
_SPAN_OF_ONE = re.compile(r"\b(\w+)-(\w+)/0*[1-9]\d*\b", re.ASCII)
_NAMES = {
    **{name: str(number) for number, name in enumerate(_WEEKDAYS)},
    **{name: str(number) for number, name in enumerate(_MONTHS, 1)},
}
_TAKES = {
    "minute": "0 to 59",
    "hour": "0 to 23",
    "day-of-month": "1 to 31 (one that some month of the rule has), L or LW",
    "month": "1 to 12 or JAN to DEC",
    "day-of-week": "0 to 7 or SUN to SAT, 5L or 5#2",
}
"""Values of each field."""
_FIELDS = tuple(_TAKES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cron:
    """A valid cron expression."""

    text: str
    """Normal form: upper-case, single spaces, shorthands expanded."""
    elapses: bool
    """Has a wildcard hour."""
    times: tuple[time, ...]
    """Local times on each matching date, in order."""
    _sim: CronSim = field(repr=False, compare=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an expression.

        Raises:
            CronInvalid: With the field's name and what is wrong with it.
        """
        fields = _fields(text)
        normal = " ".join(fields)
        try:
            sim = CronSim(normal, datetime(2000, 1, 1))
        except CronSimError as error:
            name = str(error).removeprefix("Bad ")
            raise CronInvalid(name, _not_taken(name, fields)) from error
        return cls(
            text=normal,
            elapses=len(sim.hours) > 1 and (fields[1].startswith("*") or len(sim.hours) == 24),
            times=tuple(time(h, m) for h in sorted(sim.hours) for m in sorted(sim.minutes)),
            _sim=sim,
        )

    @property
    def months(self) -> frozenset[int]:
        """The months that have occurrences."""
        return frozenset(self._sim.months)

    def matches(self, day: date) -> bool:
        """Whether the date has occurrences."""
        return day.month in self._sim.months and self._sim.match_day(day)


def _fields(text: str) -> list[str]:
    if len(text) > _LONGEST_TEXT:
        raise CronInvalid("cron", f"is longer than {_LONGEST_TEXT} characters")
    body = text.strip().upper()
    if body.startswith("@"):
        if body not in _SHORTHANDS:
            known = ", ".join(_SHORTHANDS).lower()
            raise CronInvalid("cron", f"{body.lower()[:20]!r} is not one of {known}")
        body = _SHORTHANDS[body]
    fields = body.split()
    if len(fields) == 6:
        raise CronInvalid("cron", "has six fields; seconds are not taken, use FREQ=SECONDLY")
    if len(fields) != 5:
        raise CronInvalid("cron", f"has {len(fields)} fields, not five ({', '.join(_FIELDS)})")
    for position in (2, 4):
        if fields[position] == "?":
            fields[position] = "*"
    return [_SPAN_OF_ONE.sub(_one, field) for field in fields]


def _not_taken(name: str, fields: list[str]) -> str:
    value = fields[_FIELDS.index(name)][:20]
    return (
        f"{value!r} can't be used here: it takes {_TAKES[name]}; a list (1,5), a range that does "
        "not go back (1-5), a step (*/5)"
    )


def _one(match: re.Match[str]) -> str:
    """`5-5/2` is 5. To `cronsim` it would be `5/2`, which goes on to the end."""
    first, last = (_NAMES.get(value, value.lstrip("0")) for value in match.group(1, 2))
    return match[1] if first == last else match[0]

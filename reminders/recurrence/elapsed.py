"""Occurrences in elapsed time: RRULE with FREQ=HOURLY, MINUTELY or SECONDLY.

Periods are counted in real seconds from the start's instant: "every 8 hours" stays 8 hours when the
clocks change, no hour is lost or rung twice, and there is no gap or overlap for a policy to act on.
BY parts look at what the clocks in the zone show. Those longer than the period limit it. Shorter
ones (BYMINUTE of HOURLY) expand it: then periods begin where the start's local hour or minute
does, last one unit, and hold every instant at which the clocks show a wanted minute and second.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from reminders.recurrence.dates import LAST_DAY, accepts, month_after
from reminders.recurrence.rule_text import Freq
from reminders.recurrence.rules import Rule
from reminders.recurrence.slots import Batch, Candidate
from reminders.recurrence.zones import Localized, wall_clock

UNITS = {Freq.HOURLY: 3600, Freq.MINUTELY: 60, Freq.SECONDLY: 1}
"""Seconds of one period."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_END = (datetime.combine(LAST_DAY, datetime.max.time(), UTC) - _EPOCH) // _SECOND + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Elapsed:
    """A source of candidates in elapsed time. Make it by `elapsed`; integers are POSIX seconds."""

    rule: Rule
    zone: ZoneInfo
    unit: int
    """Seconds of a period."""
    origin: int
    """When the first period begins."""
    expands: bool

    def batches(self, since: datetime) -> Iterator[Batch]:
        """Everything at or after the aware `since`, and perhaps a little more. Ends at LAST_DAY.

        A step is one period looked at. Days, hours and minutes that a BY part excludes are passed
        over in one step each.
        """
        step = self.unit * self.rule.interval
        number = max(0, ((since - _EPOCH) // _SECOND - self.origin) // step)
        while (begins := self.origin + number * step) < _END:
            passed = self._barren(begins)
            found, steps = ((), 1) if passed else self._in_period(begins)
            # Rounded down to the period that may hold the end of what was passed over.
            number = max(number + 1, (begins + passed - self.origin) // step)
            opens = min(_END, self.origin + number * step)
            yield Batch(found=found, opens=_instant(opens), steps=steps)

    def _barren(self, begins: int) -> int:
        """Seconds, at least a period, in which some BY part refuses all; 0 where unsure."""
        rule, (local, _) = self.rule, self._clock(begins)
        minute = 60 - local.second
        hour = minute + (59 - local.minute) * 60
        day = hour + (23 - local.hour) * 3600
        if rule.by_month and local.month not in rule.by_month:
            # Up to its last day only: the clocks may show the next month for a minute and go back.
            following = month_after(local.date(), rule.by_month) or LAST_DAY
            whole_days = (following - local.date()).days - 2
            waits: tuple[int, ...] = (day + whole_days * 86_400, day, hour, minute)
        elif not accepts(rule, local.date()):
            waits = (day, hour, minute)
        elif rule.by_hour and local.hour not in rule.by_hour:
            waits = (hour, minute)
        elif rule.by_minute and local.minute not in rule.by_minute:
            waits = (minute,)
        else:
            return 0
        for wait in waits:
            # Only where the clocks run on evenly does the local day or hour end so late.
            ahead = _instant(begins + wait).astimezone(self.zone)
            if wait >= self.unit and ahead.replace(tzinfo=None) - local == wait * _SECOND:
                return wait
        return 0

    def _in_period(self, begins: int) -> tuple[tuple[Candidate, ...], int]:
        """The candidates of a period, in order, and the steps that it took."""
        instants = self._expanded(begins) if self.expands else [begins]
        found = [one for at in instants if (one := self._candidate(at)) is not None]
        if self.rule.by_set_pos:
            size = len(found)
            places = {n - 1 if n > 0 else size + n for n in self.rule.by_set_pos}
            found = [found[place] for place in sorted(places) if 0 <= place < size]
        return tuple(found), len(instants)

    def _expanded(self, begins: int) -> list[int]:
        """Instants of the period that may show a wanted minute and second.

        A transition inside the period gives some of them another offset: both are tried.
        """
        minutes = self.rule.by_minute if self.unit == 3600 else (0,)
        instants: set[int] = set()
        for edge in (begins, begins + self.unit - 1):
            local, _ = self._clock(edge)
            shown = local.minute * 60 + local.second - (edge - begins)
            instants |= {
                begins + (minute * 60 + second - shown) % self.unit
                for minute in minutes
                for second in self.rule.by_second
            }
        return sorted(instants)

    def _candidate(self, at: int) -> Candidate | None:
        rule, (local, fold) = self.rule, self._clock(at)
        if (
            (rule.by_second and local.second not in rule.by_second)
            or (rule.by_minute and local.minute not in rule.by_minute)
            or (rule.by_hour and local.hour not in rule.by_hour)
            or not accepts(rule, local.date())
        ):
            return None
        return Candidate(
            at=Localized(
                nominal=local,
                local=local,
                fold=fold,
                second_pass=bool(fold),
                instant=_instant(at),
                note=None,
            )
        )

    def _clock(self, at: int) -> tuple[datetime, int]:
        return wall_clock(_instant(at), self.zone)


def elapsed(rule: Rule, start: datetime, zone: ZoneInfo) -> Elapsed:
    """The source for a rule whose first period begins at an aware `start` in whole seconds."""
    local, _ = wall_clock(start, zone)
    origin = (start - _EPOCH) // _SECOND
    expands = False
    if rule.freq is Freq.HOURLY and (rule.by_minute or rule.by_second):
        expands = True
        origin -= local.minute * 60 + local.second
        rule = replace(
            rule,
            by_minute=rule.by_minute or (local.minute,),
            by_second=rule.by_second or (local.second,),
        )
    elif rule.freq is Freq.MINUTELY and rule.by_second:
        expands = True
        origin -= local.second
    return Elapsed(rule=rule, zone=zone, unit=UNITS[rule.freq], origin=origin, expands=expands)


def _instant(seconds: int) -> datetime:
    return _EPOCH + seconds * _SECOND

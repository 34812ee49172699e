"""How close a rule puts its occurrences: what an operator's smallest interval is held against.

The rule alone is judged, as on a day without transitions: not its RDATEs, nor what a gap or an
overlap pushes together once or twice a year.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

from reminders.recurrence.cursor import Cursor
from reminders.recurrence.dated import rule_times
from reminders.recurrence.elapsed import UNITS
from reminders.recurrence.errors import RuleExhausted
from reminders.recurrence.rule_text import Freq
from reminders.recurrence.rules import Rule
from reminders.recurrence.series import MAX_STEPS, Series
from reminders.recurrence.walk import Work

LOOKED_AT = 1000
"""Occurrences whose distances are measured where the parts of the rule don't settle it."""
_AT_ONCE = 10
_BARREN = MAX_STEPS // _AT_ONCE
"""Steps without an occurrence after which the look ahead ends."""
_DAY = timedelta(days=1)


def closer_than(limit: timedelta, series: Series) -> tuple[datetime, datetime] | None:
    """Two neighbouring local times of the rule that are less than `limit` apart; None: none are.

    Settled by the rule's parts where they can't come that close. Otherwise the first `LOOKED_AT`
    occurrences are measured, fewer where that is more than twice `MAX_STEPS` of work: a rule whose
    first two close neighbours come later than that passes.
    """
    if _floor(series) >= limit:
        return None
    bare = _bare(series)
    cursor, work, seen = Cursor(), Work(), 0
    last: list[datetime] = []
    while seen < LOOKED_AT and work.steps < MAX_STEPS:
        try:
            planned = bare.next(cursor, _AT_ONCE, work)
        except RuleExhausted:
            break
        if not planned:
            break
        cursor = planned[-1].cursor
        seen += len(planned)
        found = [*last, *(one.local for one in planned)]
        last = found[-1:]
        for earlier, later in pairwise(found):
            if later - earlier < limit:
                return earlier, later
    return None


def _bare(series: Series) -> Series:
    rule = series.rule
    return replace(
        series,
        rule=replace(rule, count=None, until=None) if isinstance(rule, Rule) else rule,
        zone="UTC",
        exdates=(),
        rdates=(),
        max_occurrences=None,
        until=None,
        max_steps=_BARREN,
    )


def _floor(series: Series) -> timedelta:
    """A distance below which the parts of a rule never put two occurrences."""
    rule, start = series.rule, series.start_local
    if isinstance(rule, Rule) and rule.freq.elapses:
        period = timedelta(seconds=UNITS[rule.freq] * rule.interval)
        return _closest(_into_period(rule, start), period)
    times = rule_times(rule.completed(start)) if isinstance(rule, Rule) else rule.times
    offsets = [timedelta(hours=at.hour, minutes=at.minute, seconds=at.second) for at in times]
    return _closest(offsets, _DAY)


def _into_period(rule: Rule, start: datetime) -> list[timedelta]:
    """Where in its hour, minute or second an elapsing rule may put occurrences, in order."""
    minutes, seconds = rule.by_minute, rule.by_second
    if rule.freq is Freq.HOURLY and (minutes or seconds):
        return [
            timedelta(minutes=minute, seconds=second)
            for minute in minutes or (start.minute,)
            for second in seconds or (start.second,)
        ]
    if rule.freq is Freq.MINUTELY and seconds:
        return [timedelta(seconds=second) for second in seconds]
    return [timedelta(0)]


def _closest(offsets: list[timedelta], period: timedelta) -> timedelta:
    """Between sorted offsets into a period, the last and the next period's first included."""
    around = [*offsets, offsets[0] + period]
    return min(later - earlier for earlier, later in pairwise(around))

"""Occurrences at local times on local dates: RRULE from DAILY to YEARLY, and cron.

Work starts at the period or date near `since`, found by arithmetic, never at the rule's start.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from reminders.recurrence.cron import Cron
from reminders.recurrence.dates import (
    LAST_DAY,
    Day,
    days_of,
    first_day,
    month_after,
    one_a_date,
    past_barren_months,
    period_of,
)
from reminders.recurrence.errors import RuleInvalid
from reminders.recurrence.policies import CalendarPolicies, Gap, MissingDay, Overlap
from reminders.recurrence.rules import Rule
from reminders.recurrence.slots import Batch, Candidate
from reminders.recurrence.zones import LONGEST_TRANSITION, localize

MOST_TIMES_A_DAY = 1440
"""Of a rule with FREQ=DAILY or longer; more is FREQ=SECONDLY's business."""
MOST_TIMES_A_SET = 10_000
"""Local times of one period that BYSETPOS may choose from."""
_AT_ONCE = 8
"""Local times of a date in one batch."""
_LONGEST_MOVE = timedelta(days=32)
"""How far past its nominal date a missing-day policy may put an occurrence."""
_DAY = timedelta(days=1)
_END = datetime.combine(LAST_DAY + _DAY, time())


def rule_times(rule: Rule) -> tuple[time, ...]:
    """The local times of a completed rule on each of its dates, in order.

    Raises:
        RuleInvalid: So many that one period would be work without a useful bound.
    """
    count = len(rule.by_hour) * len(rule.by_minute) * len(rule.by_second)
    if count > MOST_TIMES_A_DAY:
        raise RuleInvalid("BYSECOND", f"more than {MOST_TIMES_A_DAY} times a day; use SECONDLY")
    longest = {"YEARLY": 366, "MONTHLY": 31, "WEEKLY": 7}.get(rule.freq, 1)
    if rule.by_set_pos and longest * count > MOST_TIMES_A_SET:
        raise RuleInvalid("BYSETPOS", f"chooses from more than {MOST_TIMES_A_SET} times a period")
    return tuple(
        time(hour, minute, second)
        for hour in rule.by_hour
        for minute in rule.by_minute
        for second in rule.by_second
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Dated:
    """A source of candidates for dates and times of day."""

    rule: Rule | Cron
    """A rule is completed by its start."""
    start: datetime
    """Naive: the phase of INTERVAL. The series itself leaves out what is before it."""
    zone: ZoneInfo
    policies: CalendarPolicies

    def batches(self, since: datetime) -> Iterator[Batch]:
        """Everything whose planned local time is at or after the naive `since`, and perhaps more.

        Ends at `LAST_DAY`.
        """
        since = max(since, self.start - LONGEST_TRANSITION)
        if isinstance(self.rule, Cron):
            return self._cron(self.rule, since)
        return self._rule(self.rule, since)

    def _cron(self, cron: Cron, since: datetime) -> Iterator[Batch]:
        day = since.date()
        months = cron.months
        while day <= LAST_DAY:
            following = day + _DAY
            if day.month not in months:
                following = month_after(day, months) or LAST_DAY + _DAY
            opens = datetime.combine(following, time())
            if cron.matches(day):
                yield from self._on(Day(nominal=day, planned=day), cron.times, since, opens)
            else:
                yield Batch(opens=opens, steps=1)
            day = following

    def _rule(self, rule: Rule, since: datetime) -> Iterator[Batch]:
        times = rule_times(rule)
        first = period_of(rule, self.start.date())
        moves = self.policies.missing_day is MissingDay.NEXT_BUSINESS_DAY
        near = since.date() - _LONGEST_MOVE if moves else since.date()
        done = max(0, (period_of(rule, near) - first) // rule.interval)
        period = first + done * rule.interval
        while (begins := first_day(rule, period)) is not None:
            barren = past_barren_months(rule, period)
            periods = max(1, -(-barren // rule.interval)) * rule.interval
            following = first_day(rule, period + periods)
            ends = _END if following is None else datetime.combine(following, time())
            days, looked_at = ([], 0) if barren else days_of(rule, period, self.policies)
            yield Batch(opens=datetime.combine(begins, time()), steps=1 + looked_at)
            if rule.by_set_pos and days:
                yield self._chosen(rule, one_a_date(days, self.start.date()), times, ends)
            else:
                yield from self._each(days, times, since, ends)
            period += periods

    def _each(
        self, days: list[Day], times: tuple[time, ...], since: datetime, ends: datetime
    ) -> Iterator[Batch]:
        for day, following in pairwise([*days, None]):
            if day is not None and day.planned >= since.date():
                opens = ends
                if following is not None:
                    opens = min(ends, datetime.combine(following.planned, time()))
                yield from self._on(day, times, since, opens)

    def _on(
        self, day: Day, times: tuple[time, ...], since: datetime, following: datetime
    ) -> Iterator[Batch]:
        """One date, a few times after `since` at once: minutely cron must not compute a day."""
        if day.planned == since.date():
            times = times[bisect_left(times, since.time()) :]
        for first in range(0, len(times), _AT_ONCE):
            after = first + _AT_ONCE
            opens = following
            if after < len(times):
                opens = min(following, datetime.combine(day.planned, times[after]))
            found = (self._at(day, at) for at in times[first:after])
            yield Batch(
                found=tuple(one for several in found for one in several),
                opens=opens,
                steps=len(times[first:after]),
            )

    def _chosen(
        self, rule: Rule, days: list[Day], times: tuple[time, ...], ends: datetime
    ) -> Batch:
        """BYSETPOS (RFC 5545 3.3.10): positions among all local times of the whole period."""
        size = len(days) * len(times)
        places = {n - 1 if n > 0 else size + n for n in rule.by_set_pos if abs(n) <= size}
        found = (
            self._at(days[place // len(times)], times[place % len(times)])
            for place in sorted(places)
        )
        return Batch(
            found=tuple(one for several in found for one in several),
            opens=ends,
            steps=1 + len(places),
        )

    def _at(self, day: Day, at: time) -> tuple[Candidate, ...]:
        """The instants of one local time; elapsing cron takes every real one, and no other."""
        elapses = isinstance(self.rule, Cron) and self.rule.elapses
        nominal = datetime.combine(day.nominal, at)
        localized = localize(
            datetime.combine(day.planned, at),
            self.zone,
            gap=Gap.SKIP if elapses else self.policies.gap,
            overlap=Overlap.BOTH if elapses else self.policies.overlap,
        )
        if elapses:
            return tuple(Candidate(at=replace(one, note=None)) for one in localized)
        if not day.missing:
            return tuple(Candidate(at=one) for one in localized)
        moved = f"missing_day:{self.policies.missing_day}"
        return tuple(
            Candidate(
                at=replace(
                    one,
                    nominal=nominal,
                    note=moved if one.note is None else f"{moved},{one.note}",
                ),
                missing=day.missing,
            )
            for one in localized
        )

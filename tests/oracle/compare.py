"""`localize` and `Series` against the oracle, around one transition."""

from dataclasses import dataclass, field
from datetime import datetime
from itertools import product
from zoneinfo import ZoneInfo

from reminders.recurrence import (
    CalendarPolicies,
    Cron,
    Cursor,
    Gap,
    Overlap,
    Rule,
    Series,
    localize,
    zone,
    zone_names,
)
from tests.oracle.clocks import (
    DAY,
    Rules,
    Transition,
    Window,
    instant_of,
    local_of,
    minute_of,
)
from tests.oracle.expected import GAPS, OVERLAPS, daily, hourly, instants

_DAYS = 1
"""Of a series before and after a transition."""


@dataclass(frozen=True, kw_only=True)
class Scope:
    """How much around each transition."""

    beside: int
    """Local minutes on either side of what a transition skips or repeats."""
    edges: bool
    """Series at the edges too, not only in the middle."""


ALL = Scope(beside=45, edges=True)
QUICK = Scope(beside=3, edges=False)


@dataclass
class Tally:
    """What was compared, and what differed."""

    transitions: int = 0
    local_times: int = 0
    """Local minutes, each under all nine pairs of policies."""
    occurrences: int = 0
    """Of series."""
    differences: list[str] = field(default_factory=list)

    def check(self, found: object, expected: object, *what: object) -> None:
        """Notes a difference."""
        if found != expected:
            asked = " ".join(str(one) for one in what)
            self.differences.append(f"{asked}: {found} is not {expected}")

    def add(self, other: "Tally") -> None:
        """Both together."""
        self.transitions += other.transitions
        self.local_times += other.local_times
        self.occurrences += other.occurrences
        self.differences += other.differences


def compare(rules: Rules, transition: Transition, scope: Scope, tally: Tally) -> None:
    """Every local minute around the transition, and series that cross it, under all policies."""
    served = next((name for name in rules.names if name in zone_names()), None)
    window = Window(rules.clock(), transition.at, days=_DAYS + 2)
    low, high = sorted((transition.at + transition.before, transition.at + transition.after))
    tally.transitions += 1
    clock = window.clock if served is None else zone(served)
    for local in range(low - scope.beside, high + scope.beside):
        tally.local_times += 1
        _localize(window, clock, local, tally)
    if served is None:
        return
    middle = (low + high) // 2
    edges = [low - 1, low, high - 1, high] if scope.edges else []
    for gap, overlap in product(GAPS, OVERLAPS):
        for local in (middle, *edges):
            _daily(window, served, local, gap, overlap, tally, cron=local == middle)
    _hourly(window, served, transition, tally)


def _localize(window: Window, clock: ZoneInfo, local: int, tally: Tally) -> None:
    asked = local_of(local)
    for gap, overlap in product(GAPS, OVERLAPS):
        found = localize(asked, clock, Gap(gap), Overlap(overlap))
        what = (clock.key, asked, gap, overlap)
        expected = [instant_of(at) for at in instants(window, local, gap, overlap)]
        tally.check([one.instant for one in found], expected, *what)
        for one in found:
            shown = (minute_of(one.local), one.fold)
            tally.check(shown, window.reading(minute_of(one.instant)), *what, "on the clock")


def _daily(
    window: Window, name: str, local: int, gap: str, overlap: str, tally: Tally, *, cron: bool
) -> None:
    first = local - _DAYS * DAY
    days = range(first, local + _DAYS * DAY + 1, DAY)
    expected = [instant_of(at) for at in daily(window, days, gap, overlap)]
    start = local_of(first)
    rules: list[Rule | Cron] = [Rule.parse("FREQ=DAILY"), Cron.parse(f"{start:%-M %-H} * * *")]
    for rule in rules if cron else rules[:1]:
        series = Series(
            rule=rule,
            start_local=start,
            zone=name,
            policies=CalendarPolicies(gap=Gap(gap), overlap=Overlap(overlap)),
        )
        found = [one.instant for one in series.next(Cursor(), len(expected))]
        tally.occurrences += len(found)
        tally.check(found, expected, name, rule.text, "from", start, gap, overlap)


def _hourly(window: Window, name: str, transition: Transition, tally: Tally) -> None:
    """A wildcard hour is elapsed time: each real showing of the minute, whatever the policies."""
    minute = (transition.at + transition.after) % 60
    begins, ends = transition.at - DAY, transition.at + DAY
    start = local_of(window.reading(begins)[0])
    series = Series(rule=Cron.parse(f"{minute} * * * *"), start_local=start, zone=name)
    first = series.first_after(instant_of(begins))
    expected = [instant_of(at) for at in hourly(window, minute, begins, ends)]
    found = _all_until(series, first, instant_of(ends))
    tally.occurrences += len(found)
    tally.check(found, expected, name, minute, "* * * * from", start)


def _all_until(series: Series, cursor: Cursor, end: datetime) -> list[datetime]:
    found = [one.instant for one in series.next(cursor, 200)]
    return [at for at in found if at < end]

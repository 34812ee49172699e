"""Next occurrences a second, by FREQ: `reminders.recurrence.Series.next` against bare dateutil.

Each call asks for the one occurrence after a moment, as the expander does: with the series made
anew from its text, and the same with the series kept. Reference: `rrule.after(moment)` of
python-dateutil, on naive times (so it knows no zones and no policies), with a rule that is kept.
For rules that began a week ago and ten years ago: dateutil replays a rule from its start, for
minutes where ten years have millions of occurrences; those are left out.
"""

import time
from collections.abc import Callable
from datetime import datetime, timedelta

from dateutil.rrule import rrulestr

from bench.harness.report import Board, Column
from bench.harness.world import World
from reminders.recurrence import Cursor, Rule, Series

SERVICES = False
ZONE = "Europe/Paris"
NOW = datetime(2026, 11, 30, 12, 30)  # noqa: DTZ001 - wall time, as rules are
LONGEST_S = 0.3
"""Of one measurement; at least one call."""
AGES = {"began a week ago": timedelta(days=7), "ten years ago": timedelta(days=3652)}
RULES = {
    "yearly": "FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=24",
    "monthly": "FREQ=MONTHLY;BYDAY=-1FR",
    "weekly": "FREQ=WEEKLY;BYDAY=MO,WE,FR",
    "daily": "FREQ=DAILY;INTERVAL=2",
    "hourly": "FREQ=HOURLY;INTERVAL=6",
    "minutely": "FREQ=MINUTELY;INTERVAL=15",
    "secondly": "FREQ=SECONDLY;INTERVAL=30",
}
ENDLESS = {("minutely", "ten years ago"), ("secondly", "ten years ago")}

COLUMNS = (
    Column(key="anew", head="from text /s"),
    Column(key="kept", head="series kept /s"),
    Column(key="dateutil", head="dateutil,\nkept /s"),
    Column(key="ratio", head="kept ÷\ndateutil", digits=1),
)


def measure(world: World) -> list[Board]:
    """Every rule, both ages."""
    board = Board(title="Next occurrences", columns=COLUMNS)
    for _ in world.rounds("recurrence"):
        for age, back in AGES.items():
            for name, text in RULES.items():
                _rule(board, name, age, text, NOW - back)
    return [board]


def _rule(board: Board, name: str, age: str, text: str, start: datetime) -> None:
    def made() -> Series:
        return Series(rule=Rule.parse(text), start_local=start, zone=ZONE)

    kept, cursor = made(), Cursor(last_local=NOW, emitted=1)
    figures: dict[str, float | None] = {
        "anew": _rate(lambda: made().next(cursor, 1)),
        "kept": _rate(lambda: kept.next(cursor, 1)),
    }
    if (name, age) not in ENDLESS:
        rule = rrulestr(text, dtstart=start)
        ours, theirs = kept.next(cursor, 1)[0].nominal, rule.after(NOW)
        assert ours == theirs, f"{text}: {ours} is not {theirs}"
        figures["dateutil"] = _rate(lambda: rule.after(NOW))
        figures["ratio"] = (figures["kept"] or 0.0) / (figures["dateutil"] or 1.0)
    board.add(f"{name}, {age}", figures)


def _rate(call: Callable[[], object]) -> float:
    calls, started = 0, time.perf_counter()
    while (passed := time.perf_counter() - started) < LONGEST_S or not calls:
        call()
        calls += 1
    return calls / passed if passed else 0.0

"""The smallest interval of a rule, against measuring its occurrences."""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reminders.recurrence import (
    MAX_STEPS,
    Cron,
    Cursor,
    Rule,
    RuleExhausted,
    RuleInvalid,
    Series,
    closer_than,
    spacing,
)
from tests.unit.recurrence.rule_texts import rules

START = datetime(2026, 1, 31, 9, 0, 30)


def series(text: str, **more: object) -> Series:
    """In Paris; `closer_than` judges the rule as if in UTC."""
    rule = Rule.parse(text) if "FREQ" in text else Cron.parse(text)
    return Series(rule=rule, start_local=START, zone="Europe/Paris", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "smallest_s"),
    [
        ("FREQ=SECONDLY", 1),
        ("FREQ=SECONDLY;INTERVAL=45", 45),
        ("FREQ=SECONDLY;BYSECOND=0", 60),
        ("FREQ=SECONDLY;BYSECOND=0,50", 10),
        ("FREQ=MINUTELY", 60),
        ("FREQ=MINUTELY;BYSECOND=5,50", 15),
        ("FREQ=MINUTELY;INTERVAL=2;BYSECOND=5,50", 45),
        ("FREQ=MINUTELY;BYMINUTE=0,30", 1800),
        ("FREQ=HOURLY", 3600),
        ("FREQ=HOURLY;BYMINUTE=0,59", 60),
        ("FREQ=HOURLY;INTERVAL=3;BYMINUTE=0,59", 59 * 60),
        ("FREQ=HOURLY;BYMINUTE=0,59;BYHOUR=9,11", 59 * 60),
        ("FREQ=HOURLY;BYMINUTE=0,1,2;BYSETPOS=1", 3600),
        ("FREQ=DAILY", 86_400),
        ("FREQ=DAILY;BYHOUR=0,23;BYMINUTE=0,59", 60),
        ("FREQ=DAILY;BYHOUR=9;BYSECOND=0,20", 20),
        # 23:59 and the next day's 00:00: only where days follow each other
        ("FREQ=WEEKLY;BYDAY=MO;BYHOUR=0,23", 23 * 3600),
        ("FREQ=WEEKLY;BYDAY=MO,TU;BYHOUR=0,23", 3600),
        ("FREQ=MONTHLY;BYMONTHDAY=1,-1;BYHOUR=0,23", 3600),
        ("FREQ=MONTHLY;BYDAY=MO;BYHOUR=9,10;BYSETPOS=1,-1", (7 * 24 - 1) * 3600),
        ("FREQ=YEARLY", 365 * 86_400),
        ("*/5 * * * *", 300),
        ("0,59 * * * *", 60),
        ("0,59 9,11 * * *", 59 * 60),
        ("0 0,23 * * 1", 23 * 3600),
        ("0 9 29 2 *", 1461 * 86_400),
    ],
)
def test_the_smallest_interval_of_a_rule_is_found(text: str, smallest_s: int) -> None:
    """A limit of just that passes, one second more does not."""
    asked = series(text)
    smallest = timedelta(seconds=smallest_s)
    assert closer_than(smallest, asked) is None
    close = closer_than(smallest + timedelta(seconds=1), asked)
    assert close is not None
    assert close[1] - close[0] == smallest


def test_what_is_beside_the_rule_does_not_count() -> None:
    """A date that is added, an end, an exception: none of them makes a rule of its own."""
    beside = series(
        "FREQ=DAILY;BYHOUR=9,10;COUNT=1",
        rdates=(START + timedelta(seconds=1),),
        exdates=(START + timedelta(hours=1),),
    )
    assert closer_than(timedelta(hours=1), beside) is None
    assert closer_than(timedelta(hours=2), beside) is not None
    shifted = replace(series("30 2,3 * * *"), start_local=datetime(2026, 3, 28))
    assert closer_than(timedelta(hours=1), shifted) is None


@pytest.mark.parametrize(
    "text",
    [
        "FREQ=SECONDLY;INTERVAL=60;BYSECOND=3",
        "FREQ=DAILY;INTERVAL=7;BYDAY=TU;BYSECOND=0,1",
        "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO;BYHOUR=0;BYMINUTE=0;BYSECOND=0",
        "FREQ=YEARLY;BYDAY=MO;BYHOUR=0,23;BYMINUTE=0,59;BYSETPOS=300,-300",
        "FREQ=SECONDLY;BYHOUR=3;BYSECOND=0",
    ],
)
def test_looking_ahead_is_bounded_work(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for a rule that hardly ever, or never, occurs."""
    spent: list[int] = []
    following = Series.next

    def counted(self: Series, *args: object) -> object:
        work = args[2]
        before = work.steps  # type: ignore[attr-defined]
        try:
            return following(self, *args)  # type: ignore[arg-type]
        finally:
            spent.append(work.steps - before)  # type: ignore[attr-defined]

    monkeypatch.setattr(Series, "next", counted)
    closer_than(timedelta(days=1), series(text))
    assert 0 < sum(spent) <= 2 * MAX_STEPS + 10 * 400


@settings(max_examples=150, deadline=None)
@given(rules(), st.integers(1, 90_000))
def test_a_rule_that_passes_keeps_its_distance(text: str, limit_s: int) -> None:
    """What its parts promise, and what was measured, hold for the first occurrences."""
    limit = timedelta(seconds=limit_s)
    try:
        asked = Series(
            rule=Rule.parse(text), start_local=START, zone="UTC", max_steps=spacing._BARREN
        )
        found = [one.local for one in asked.next(Cursor(), 60)]
    except (RuleInvalid, RuleExhausted):
        assume(False)
        raise
    close = closer_than(limit, asked)
    if close is None:
        assert all(later - earlier >= limit for earlier, later in pairwise(found))
    else:
        assert close[1] - close[0] < limit

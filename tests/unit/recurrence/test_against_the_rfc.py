"""Rules in UTC against a slow reading of RFC 5545 that shares no code (tests/oracle/rrule.py)."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reminders.recurrence import Cursor, Rule, RuleExhausted, RuleInvalid, Series
from tests.oracle.rrule import occurrences
from tests.unit.recurrence.rule_texts import FREQS, rules

PERIODS = {
    "YEARLY": (timedelta(days=366), 8),
    "MONTHLY": (timedelta(days=31), 24),
    "WEEKLY": (timedelta(days=7), 40),
    "DAILY": (timedelta(days=1), 150),
    "HOURLY": (timedelta(hours=1), 60),
    "MINUTELY": (timedelta(minutes=1), 300),
    "SECONDLY": (timedelta(seconds=1), 1500),
}
"""How many periods the slow reading goes through: it looks at every day or second of them."""
MOST = 100
"""Occurrences compared."""
STEPS = 6_000
"""Of work for one occurrence: more than all those periods are."""
starts = st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1)).map(
    lambda at: at.replace(microsecond=0)
)


def end_of(text: str, start: datetime) -> datetime:
    """Where the comparison ends."""
    parts = dict(piece.split("=") for piece in text.split(";"))
    unit, periods = PERIODS[parts["FREQ"]]
    return start + unit * periods * int(parts.get("INTERVAL", "1"))


def ours(series: Series, cursor: Cursor, end: datetime) -> list[datetime]:
    """What the series gives up to `end`."""
    try:
        found = series.next(cursor, MOST)
    except RuleExhausted:  # then nothing lies before `end`, and the slow reading says the same
        return []
    return [one.local for one in found if one.local <= end]


def made(text: str, start: datetime) -> Series:
    """A series in UTC; what it refuses is not compared: such as 30 February."""
    try:
        return Series(rule=Rule.parse(text), start_local=start, zone="UTC", max_steps=STEPS)
    except RuleInvalid:
        assume(False)
        raise


@settings(max_examples=40, deadline=None)
@pytest.mark.parametrize("freq", FREQS)
@given(st.data())
def test_a_rule_gives_what_the_text_says(freq: str, data: st.DataObject) -> None:
    """All parts in all combinations that are allowed, with dateutil's blind spots."""
    text, start = data.draw(rules([freq])), data.draw(starts)
    series = made(text, start)
    end = end_of(text, start)
    assert ours(series, Cursor(), end)[:MOST] == occurrences(text, start, end)[:MOST]


@settings(max_examples=20, deadline=None)
@pytest.mark.parametrize("freq", FREQS)
@given(st.data())
def test_a_rule_entered_late_goes_on_as_the_text_says(freq: str, data: st.DataObject) -> None:
    """Found by arithmetic near the cursor, with the phase of INTERVAL and BYSETPOS intact."""
    text, start = data.draw(rules([freq])), data.draw(starts)
    series = made(text, start)
    end = end_of(text, start)
    after = start + (end - start) * data.draw(st.floats(0, 1))
    after = after.replace(microsecond=0)
    found = ours(series, series.first_after(after.replace(tzinfo=UTC)), end)
    expected = [at for at in occurrences(text, start, end) if at >= after]
    assert found == expected[:MOST]


@settings(max_examples=40, deadline=None)
@given(rules(), starts, st.integers(1, 20), st.booleans())
def test_count_and_until_end_a_rule_as_the_text_says(
    text: str, start: datetime, count: int, counted: bool
) -> None:
    """COUNT counts from the start, UNTIL is inclusive."""
    end = end_of(text, start)
    if counted:
        text = f"{text};COUNT={count}"
    else:
        text = f"{text};UNTIL={start + (end - start) / (count + 1):%Y%m%dT%H%M%SZ}"
    assert ours(made(text, start), Cursor(), end) == occurrences(text, start, end)[:MOST]


def test_the_last_week_of_a_year_goes_on_in_january() -> None:
    """Dateutil gives 2021 a week 53, and so misses 1 January 2022 in week 52."""
    text, begins = "FREQ=YEARLY;BYWEEKNO=52;BYDAY=SA", datetime(2021, 6, 1, 9)
    expected = [datetime(2022, 1, 1, 9), datetime(2022, 12, 31, 9), datetime(2023, 12, 30, 9)]
    assert [one.local for one in made(text, begins).next(Cursor(), 3)] == expected
    assert occurrences(text, begins, expected[-1]) == expected
    assert {one.isocalendar().week for one in expected} == {52}


@pytest.mark.parametrize(
    ("text", "start", "expected"),
    [
        (
            "FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=-1",
            "2026-01-01T09:00",
            ["2026-01-02T09:00", "2026-01-09T09:00"],
        ),
        (
            "FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=-1",
            "2026-01-03T09:00",
            ["2026-01-09T09:00", "2026-01-16T09:00"],
        ),
        (
            "FREQ=WEEKLY;INTERVAL=2;BYDAY=SU,MO,TU;BYSETPOS=1;WKST=SU",
            "2026-01-06T09:00",
            ["2026-01-18T09:00", "2026-02-01T09:00"],
        ),
    ],
)
def test_a_weekly_position_is_counted_in_the_whole_first_week(
    text: str, start: str, expected: list[str]
) -> None:
    """Dateutil counts in what is left of the week of the start."""
    begins = datetime.fromisoformat(start)
    listed = [datetime.fromisoformat(one) for one in expected]
    series = made(text, begins)
    assert [one.local for one in series.next(Cursor(), 2)] == listed
    assert occurrences(text, begins, listed[-1]) == listed

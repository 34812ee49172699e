"""Rules in UTC against bare dateutil, wherever dateutil is right.

It is not right on WEEKLY with BYSETPOS (the partial first week), on BYWEEKNO without BYDAY (it
takes all seven days, not the start's weekday), on plain and numbered weekdays in one BYDAY (it
wants both at once), and where an interval and a BY part exclude each other (it raises). Rules start
in the last decades of the calendar, as it can't be stopped in a barren stretch before year 9999.
"""

from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile

import pytest
from dateutil.rrule import rrulestr
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reminders.recurrence import Cursor, Rule, RuleExhausted, RuleInvalid, Series

WEEKDAYS = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]
starts = st.datetimes(datetime(9965, 1, 1), datetime(9990, 1, 1)).map(
    lambda at: at.replace(microsecond=0)
)


def numbers(low: int, high: int, *, signed: bool = False, most: int = 4) -> st.SearchStrategy[str]:
    """A list of values for a BY part."""
    value = st.integers(low, high)
    if signed:
        value |= st.integers(-high, -low)
    return st.lists(value, min_size=1, max_size=most).map(lambda xs: ",".join(map(str, xs)))


@st.composite
def rules(draw: st.DrawFn) -> str:
    """A valid RRULE that dateutil evaluates rightly."""
    freq = draw(
        st.sampled_from(["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY"])
    )
    parts = {"FREQ": freq, "INTERVAL": str(draw(st.sampled_from([1, 1, 1, 2, 3, 7, 13])))}
    elapses = freq in ("HOURLY", "MINUTELY", "SECONDLY")

    def maybe(name: str, values: st.SearchStrategy[str], chance: int = 4) -> None:
        if draw(st.integers(1, chance)) == 1:
            parts[name] = draw(values)

    maybe("BYMONTH", numbers(1, 12))
    if freq == "YEARLY":
        maybe("BYWEEKNO", numbers(1, 53, signed=True))
    if freq == "YEARLY" or elapses:
        maybe("BYYEARDAY", numbers(1, 366, signed=True, most=8))
    if freq != "WEEKLY":
        maybe("BYMONTHDAY", numbers(1, 31, signed=True, most=8))
    weekdays = st.lists(st.sampled_from(WEEKDAYS), min_size=1, max_size=3).map(",".join)
    if "BYWEEKNO" in parts:
        parts["BYDAY"] = draw(weekdays)
    elif freq in ("MONTHLY", "YEARLY") and draw(st.booleans()):
        most = 5 if freq == "MONTHLY" or "BYMONTH" in parts else 53
        nths = st.builds(
            "{}{}".format,
            st.integers(1, most) | st.integers(-most, -1),
            st.sampled_from(WEEKDAYS),
        )
        maybe("BYDAY", st.lists(nths, min_size=1, max_size=3).map(",".join), 2)
    else:
        maybe("BYDAY", weekdays, 3)
    maybe("BYHOUR", numbers(0, 23))
    maybe("BYMINUTE", numbers(0, 59))
    maybe("BYSECOND", numbers(0, 59))
    if freq != "WEEKLY" and any(name.startswith("BY") for name in parts):
        maybe("BYSETPOS", numbers(1, 12, signed=True))
    maybe("WKST", st.sampled_from(WEEKDAYS))
    return ";".join(f"{name}={value}" for name, value in parts.items())


def theirs(rule: str, start: datetime, count: int) -> list[datetime]:
    """What dateutil gives, up to the end of our calendar."""
    try:
        found = iter(rrulestr(rule, dtstart=start))
        return list(islice(takewhile(lambda at: at.year < 9999, found), count))
    except ValueError:  # its word for a rule that never occurs
        return []


def ours(rule: str, start: datetime, count: int) -> list[datetime]:
    """What a series gives; an example that needs too much work is not compared."""
    try:
        series = Series(rule=Rule.parse(rule), start_local=start, zone="UTC")
    except RuleInvalid:  # such as 30 February, or far too many times for BYSETPOS
        assume(False)
        raise
    cursor = Cursor()
    found: list[datetime] = []
    while len(found) < count:
        try:
            planned = series.next(cursor, count - len(found))
        except RuleExhausted:
            assume(False)
        if not planned:
            break
        found += [one.local for one in planned]
        cursor = planned[-1].cursor
    return found


@settings(max_examples=150, deadline=None)
@given(rules(), starts)
def test_a_rule_gives_what_dateutil_gives(rule: str, start: datetime) -> None:
    """All frequencies and all parts."""
    assert ours(rule, start, 12) == theirs(rule, start, 12)


@settings(max_examples=75, deadline=None)
@given(rules(), starts, st.timedeltas(timedelta(0), timedelta(days=4000)))
def test_a_rule_entered_late_gives_what_dateutil_gives(
    rule: str, start: datetime, age: timedelta
) -> None:
    """Work begins near the cursor: the phase of INTERVAL and of every part must survive that."""
    freq = rule.partition(";")[0]
    if freq in ("FREQ=MINUTELY", "FREQ=SECONDLY"):
        age /= 1000  # dateutil replays from the start
    instant = (start + age).replace(microsecond=0)
    try:
        series = Series(rule=Rule.parse(rule), start_local=start, zone="UTC")
        cursor = series.first_after(instant.replace(tzinfo=UTC))
        found = [one.local for one in series.next(cursor, 5)]
    except (RuleInvalid, RuleExhausted):
        assume(False)
        raise
    try:
        late = (at for at in rrulestr(rule, dtstart=start) if at >= instant)
        expected = list(islice(takewhile(lambda at: at.year < 9999, late), 5))
    except ValueError:
        expected = []
    assert found == expected[: len(found)]
    assert len(found) == len(expected) or len(found) > 0


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("2026-01-01T09:00", ["2026-01-02T09:00", "2026-01-09T09:00"]),
        ("2026-01-03T09:00", ["2026-01-09T09:00", "2026-01-16T09:00"]),
    ],
)
def test_a_weekly_position_is_counted_in_the_whole_first_week(
    start: str, expected: list[str]
) -> None:
    """The last of MO, WE, FR is Friday, also in a week of which only a part is left."""
    series = Series(
        rule=Rule.parse("FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=-1"),
        start_local=datetime.fromisoformat(start),
        zone="UTC",
    )
    assert [one.local.isoformat(timespec="minutes") for one in series.next(Cursor(), 2)] == expected

"""Rules in UTC against bare dateutil, wherever dateutil is right.

Where it is not is said in `rule_texts`; it also raises where an interval and a BY part exclude each
other. Rules start in the last years of the calendar, as it can't be stopped in a barren stretch
before year 9999.
"""

from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile

from dateutil.rrule import rrulestr
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reminders.recurrence import Cursor, Rule, RuleExhausted, RuleInvalid, Series
from tests.unit.recurrence.rule_texts import rules

starts = st.datetimes(datetime(9988, 1, 1), datetime(9996, 1, 1)).map(
    lambda at: at.replace(microsecond=0)
)


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


@settings(max_examples=80, deadline=None)
@given(rules(for_dateutil=True), starts)
def test_a_rule_gives_what_dateutil_gives(rule: str, start: datetime) -> None:
    """All frequencies and all parts."""
    assert ours(rule, start, 12) == theirs(rule, start, 12)


@settings(max_examples=40, deadline=None)
@given(rules(for_dateutil=True), starts, st.timedeltas(timedelta(0), timedelta(days=1000)))
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

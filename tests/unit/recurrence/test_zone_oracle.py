"""Local times against a scan of the clocks that shares no code: each kind of transition once.

`make oracle` takes every transition of every zone, and more around each.
"""

from datetime import UTC, datetime

import pytest

from reminders.recurrence import (
    CalendarPolicies,
    Cursor,
    Gap,
    Overlap,
    Rule,
    Series,
    localize,
    zone,
)
from tests.oracle.clocks import DAY, Rules, Transition, Window, all_rules, transitions
from tests.oracle.compare import QUICK, Tally, compare
from tests.oracle.expected import instants

FORTNIGHT = 14 * DAY


def each_pattern() -> list[tuple[Rules, Transition]]:
    """One transition for each pair of offsets and local time of day, from 1990 to 2050."""
    found: dict[tuple[int, int, int], tuple[Rules, Transition]] = {}
    for rules in all_rules():
        for transition in transitions(rules.clock(), step=FORTNIGHT):
            found.setdefault(transition.pattern, (rules, transition))
    return list(found.values())


def test_every_kind_of_transition_agrees_with_a_scan_of_the_clock() -> None:
    """All pairs of policies, `localize` and series that cross it."""
    tally = Tally()
    for rules, transition in each_pattern():
        compare(rules, transition, QUICK, tally)
    assert tally.differences == []
    assert tally.transitions > 150
    assert tally.local_times > 10_000
    assert tally.occurrences > 5_000


def test_the_oracle_notices_a_wrong_policy() -> None:
    """It can fail: what one policy gives is not what the others give."""
    (paris,) = [rules for rules in all_rules() if "Europe/Paris" in rules.names]
    spring, autumn = (
        next(one for one in transitions(paris.clock(), step=DAY) if (one.after > one.before) is up)
        for up in (True, False)
    )
    gap = Window(paris.clock(), spring.at, days=1)
    missing = spring.at + spring.before + 30
    assert len({tuple(instants(gap, missing, one, "both")) for one in Gap}) == 3
    overlap = Window(paris.clock(), autumn.at, days=1)
    repeated = autumn.at + autumn.after + 30
    assert len({tuple(instants(overlap, repeated, "skip", one)) for one in Overlap}) == 3


# --- the famous ones, by name: local time → instants under NEXT_VALID, SHIFT_FORWARD, SKIP, or
# --- under EARLIER, LATER ----------------------------------------------------------------------

GAPS = [
    # Samoa moved across the date line: it went from Thursday to Saturday.
    ("Pacific/Apia", "2011-12-30T09:00", "2011-12-30T10:00Z", "2011-12-30T19:00Z"),
    ("Pacific/Apia", "2011-12-30T00:00", "2011-12-30T10:00Z", "2011-12-30T10:00Z"),
    # Kwajalein went over to the other side, too.
    ("Pacific/Kwajalein", "1993-08-21T12:00", "1993-08-21T12:00Z", "1993-08-22T00:00Z"),
    ("Australia/Lord_Howe", "2026-10-04T02:15", "2026-10-03T15:30Z", "2026-10-03T15:45Z"),
    ("Antarctica/Troll", "2026-03-29T01:30", "2026-03-29T01:00Z", "2026-03-29T01:30Z"),
    ("Antarctica/Troll", "2026-03-29T02:59", "2026-03-29T01:00Z", "2026-03-29T02:59Z"),
    # Dublin's summer time is its standard time, and DST is negative.
    ("Europe/Dublin", "2026-03-29T01:30", "2026-03-29T01:00Z", "2026-03-29T01:30Z"),
    # Casablanca goes back an hour for Ramadan, and forward after it.
    ("Africa/Casablanca", "2026-03-22T02:30", "2026-03-22T02:00Z", "2026-03-22T02:30Z"),
    # Liberia gave up an offset of 44 min 30 s.
    ("Africa/Monrovia", "1972-01-07T00:20", "1972-01-07T00:44:30Z", "1972-01-07T01:04:30Z"),
    # Far ahead: the rule goes on.
    ("Europe/Paris", "2199-03-31T02:30", "2199-03-31T01:00Z", "2199-03-31T01:30Z"),
]
OVERLAPS = [
    ("Pacific/Kwajalein", "1969-09-30T12:00", "1969-09-30T01:00Z", "1969-10-01T00:00Z"),
    ("America/Juneau", "1867-10-19T12:00", "1867-10-18T20:57:41Z", "1867-10-19T20:57:41Z"),
    ("Australia/Lord_Howe", "2026-04-05T01:45", "2026-04-04T14:45Z", "2026-04-04T15:15Z"),
    ("Antarctica/Troll", "2026-10-25T01:30", "2026-10-24T23:30Z", "2026-10-25T01:30Z"),
    ("Europe/Dublin", "2026-10-25T01:30", "2026-10-25T00:30Z", "2026-10-25T01:30Z"),
    ("Africa/Casablanca", "2026-02-15T02:30", "2026-02-15T01:30Z", "2026-02-15T02:30Z"),
    ("Europe/Paris", "2199-10-27T02:30", "2199-10-27T00:30Z", "2199-10-27T01:30Z"),
]


@pytest.mark.parametrize(("name", "local", "valid", "shifted"), GAPS)
def test_a_time_that_the_clocks_leave_out(name: str, local: str, valid: str, shifted: str) -> None:
    """Whole days, half-hours, two hours, negative DST, Ramadan, odd seconds, and the year 2199."""
    expected = {Gap.NEXT_VALID: [valid], Gap.SHIFT_FORWARD: [shifted], Gap.SKIP: []}
    for gap, texts in expected.items():
        found = localize(datetime.fromisoformat(local), zone(name), gap)
        assert [one.instant for one in found] == [datetime.fromisoformat(text) for text in texts]


@pytest.mark.parametrize(("name", "local", "earlier", "later"), OVERLAPS)
def test_a_time_that_the_clocks_repeat(name: str, local: str, earlier: str, later: str) -> None:
    """The same places in autumn, and days that came twice."""
    expected = {
        Overlap.EARLIER: [earlier],
        Overlap.LATER: [later],
        Overlap.BOTH: [earlier, later],
    }
    for overlap, texts in expected.items():
        found = localize(datetime.fromisoformat(local), zone(name), overlap=overlap)
        assert [one.instant for one in found] == [datetime.fromisoformat(text) for text in texts]


@pytest.mark.parametrize(
    ("name", "local", "instant"),
    [
        ("Europe/Paris", "1900-01-01T00:00", "1899-12-31T23:50:39Z"),  # Paris mean time
        ("Asia/Kolkata", "1900-01-01T12:00", "1900-01-01T06:38:50Z"),
        ("America/New_York", "1900-07-04T12:00", "1900-07-04T17:00Z"),
        ("America/New_York", "2199-07-04T12:00", "2199-07-04T16:00Z"),
        ("Europe/London", "2199-01-01T12:00", "2199-01-01T12:00Z"),
        ("Asia/Tokyo", "2199-12-31T23:59", "2199-12-31T14:59Z"),
    ],
)
def test_the_far_past_and_the_far_future_have_instants(name: str, local: str, instant: str) -> None:
    """Mean times with seconds before zones existed, and the last rules of tzdata without end."""
    for policies in ((gap, overlap) for gap in Gap for overlap in Overlap):
        (one,) = localize(datetime.fromisoformat(local), zone(name), *policies)
        assert one.instant == datetime.fromisoformat(instant)
        assert one.note is None


def test_a_weekly_rule_crosses_ramadan_at_its_local_time() -> None:
    """Casablanca leaves UTC+1 for five weeks: nine o'clock stays nine o'clock."""
    series = Series(
        rule=Rule.parse("FREQ=WEEKLY"),
        start_local=datetime(2026, 2, 10, 9),
        zone="Africa/Casablanca",
        policies=CalendarPolicies(),
    )
    hours = [one.instant.hour for one in series.next(Cursor(), 8)]
    assert hours == [8, 9, 9, 9, 9, 9, 8, 8]


@pytest.mark.parametrize("name", ["Pacific/Apia", "Pacific/Kwajalein", "Pacific/Kiritimati"])
def test_a_skipped_day_is_one_gap_like_any_other(name: str) -> None:
    """Found by the scan: a jump of a whole day, on which every minute of a series is compared."""
    (rules,) = [one for one in all_rules() if name in one.names]
    found = [one for one in transitions(rules.clock(), step=DAY) if one.after - one.before > 1000]
    assert [one.after - one.before for one in found] == [1440]
    day = datetime.fromtimestamp(found[0].at * 60, UTC).year
    assert (
        day == {"Pacific/Apia": 2011, "Pacific/Kwajalein": 1993, "Pacific/Kiritimati": 1994}[name]
    )
    tally = Tally()
    compare(rules, found[0], QUICK, tally)
    assert tally.differences == []
    assert tally.local_times > 1440

"""Days that a month lacks: where each policy puts them, and what they are called."""

from datetime import date, datetime, timedelta

import holidays
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reminders.recurrence import Cursor, HolidayCalendarUnknown, MissingDay, RuleInvalid
from tests.unit.recurrence.support import series


@pytest.mark.parametrize(
    ("policy", "february", "april"),
    [
        (MissingDay.SKIP, None, None),
        (MissingDay.CLAMP, "2026-02-28", "2026-04-30"),
        (MissingDay.NEXT_BUSINESS_DAY, "2026-03-02", "2026-05-04"),
        (MissingDay.PREVIOUS_BUSINESS_DAY, "2026-02-27", "2026-04-30"),
    ],
)
def test_a_day_that_the_month_lacks_follows_its_policy(
    policy: MissingDay, february: str | None, april: str | None
) -> None:
    """The 31st in France, where 1 May 2026 is a Friday and a holiday."""
    rule = series("FREQ=MONTHLY", "2026-01-31T09:00", missing_day=policy, holiday_calendar="FR")
    dates = ["2026-01-31", february, "2026-03-31", april, "2026-05-31"]
    found = rule.next(Cursor(), 3)
    assert [f"{one.local:%Y-%m-%d}" for one in found] == [day for day in dates if day][:3]
    notes = {one.key: one.note for one in found if one.note}
    assert set(notes.values()) <= {f"missing_day:{policy}"}
    assert (notes != {}) is (policy is not MissingDay.SKIP)


def test_two_missing_days_on_one_date_are_one_occurrence_with_the_earliest_name() -> None:
    """30 and 31 in February; and what the policy moves onto a day that the rule names itself."""
    clamped = series(
        "FREQ=MONTHLY;BYMONTHDAY=30,31", "2026-02-01T09:00", missing_day=MissingDay.CLAMP
    )
    assert [one.key for one in clamped.next(Cursor(), 2)] == ["20260230T090000", "20260330T090000"]
    moved = series(
        "FREQ=MONTHLY;BYMONTHDAY=2,3,31",
        "2026-02-03T09:00",
        missing_day=MissingDay.NEXT_BUSINESS_DAY,
    )
    found = moved.next(Cursor(), 4)
    assert [one.key for one in found] == [
        "20260203T090000",
        "20260231T090000",  # on 2 March, where the rule has a time as well
        "20260303T090000",
        "20260331T090000",
    ]
    assert moved.next(found[1].cursor, 2) == found[2:]


def test_the_29th_of_february_in_a_yearly_rule() -> None:
    """Skipped or clamped in common years."""
    skipped = series("FREQ=YEARLY", "2024-02-29T09:00").next(Cursor(), 2)
    assert [one.key for one in skipped] == ["20240229T090000", "20280229T090000"]
    clamped = series("FREQ=YEARLY", "2024-02-29T09:00", missing_day=MissingDay.CLAMP)
    assert [one.key for one in clamped.next(Cursor(), 5)] == [
        "20240229T090000",
        "20250229T090000",
        "20260229T090000",
        "20270229T090000",
        "20280229T090000",
    ]


def test_a_moved_day_and_a_gap_name_both_policies() -> None:
    """The day first, then the time: 31 April is the 30th, and Cairo then has no midnight."""
    rule = series("FREQ=MONTHLY", "2027-03-31T00:30", "Africa/Cairo", missing_day=MissingDay.CLAMP)
    _, april = rule.next(Cursor(), 2)
    assert april.key == "20270431T003000"
    assert april.local == datetime(2027, 4, 30, 1)
    assert april.note == "missing_day:clamp,gap:next_valid"


@pytest.mark.parametrize("name", ["XX", "US-ZZ", "us-ca-x", "", "__class__", "../FR"])
def test_an_unknown_holiday_calendar_is_refused(name: str) -> None:
    """At creation, not at the first missing day."""
    with pytest.raises(HolidayCalendarUnknown):
        series("FREQ=DAILY", "2026-01-01T09:00", holiday_calendar=name)


DAY = timedelta(days=1)
CALENDARS = {None: None, "FR": holidays.country_holidays("FR"), "US-CA": None}
CALENDARS["US-CA"] = holidays.country_holidays("US", subdiv="CA")


def is_open(day: date, calendar: str | None) -> bool:
    """Monday to Friday, and no holiday."""
    known = CALENDARS[calendar]
    return day.weekday() < 5 and (known is None or day not in known)


def placed(
    year: int, month: int, number: int, policy: MissingDay, calendar: str | None
) -> date | None:
    """Where a day of the month goes, day by day."""
    first = date(year, month, 1)
    last = first
    while (last + DAY).month == month:
        last += DAY
    if number <= last.day:
        return date(year, month, number)
    if policy is MissingDay.SKIP:
        return None
    day = last + DAY if policy is MissingDay.NEXT_BUSINESS_DAY else last
    step = DAY if policy is MissingDay.NEXT_BUSINESS_DAY else -DAY
    while policy is not MissingDay.CLAMP and not is_open(day, calendar):
        day += step
    return day


@settings(max_examples=120, deadline=None)
@given(
    st.sets(st.integers(1, 31), min_size=1, max_size=5),
    st.dates(date(2020, 1, 1), date(2030, 1, 1)),
    st.integers(1, 5),
    st.sampled_from(list(MissingDay)),
    st.sampled_from([None, "FR", "US-CA"]),
)
def test_every_day_of_the_month_goes_where_the_policy_says(
    days: set[int], start: date, interval: int, policy: MissingDay, calendar: str | None
) -> None:
    """Against going through the months; several on one date are one, with the earliest name."""
    named: dict[date, str] = {}
    year, month = start.year, start.month
    for _ in range(24):
        for number in sorted(days):
            day = placed(year, month, number, policy, calendar)
            name = f"{year:04}{month:02}{number:02}"
            # Neither named before the start nor, where it moves back over it, promised before it.
            if day is not None and day >= start and name >= f"{start:%Y%m%d}":
                named.setdefault(day, f"{name}T090000")
        month += interval
        year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    text = f"FREQ=MONTHLY;INTERVAL={interval};BYMONTHDAY={','.join(map(str, days))}"
    begins = f"{start:%Y-%m-%d}T09:00"
    expected = [(day, named[day]) for day in sorted(named)][:15]
    rule = series(text, begins, missing_day=policy, holiday_calendar=calendar)
    found = rule.next(Cursor(), len(expected))
    assert [(one.local.date(), one.key) for one in found] == expected
    for place, one in enumerate(found[:-1], 1):
        assert rule.next(one.cursor, 1) == found[place : place + 1]


@settings(max_examples=200, deadline=None)
@given(
    st.sets(st.sampled_from([1, 2, 3, 28, 29, 30, 31, -1]), min_size=1),
    # the first days after a short month, where its missing days go
    st.builds(date, st.integers(2020, 2030), st.sampled_from([3, 5, 7, 10, 12]), st.integers(1, 4)),
    st.sampled_from(list(MissingDay)),
    st.sampled_from([None, "FR", "US-CA"]),
)
def test_a_rule_by_year_names_what_the_same_rule_by_month_does(
    days: set[int], start: date, policy: MissingDay, calendar: str | None
) -> None:
    """Also where a day of the months before the start moves onto one that the rule names itself."""
    found = [
        series(
            f"FREQ={freq};BYMONTHDAY={','.join(map(str, days))}",
            f"{start:%Y-%m-%d}T09:00",
            missing_day=policy,
            holiday_calendar=calendar,
        ).next(Cursor(), 30)
        for freq in ("YEARLY", "MONTHLY")
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize("position", ["", ";BYSETPOS=1,2,3,4,5,6,7,8,9"])
def test_a_day_named_before_the_start_does_not_hide_the_start_itself(position: str) -> None:
    """29 February 2026 moves to Monday, 2 March: the rule's own 2 March, on which it starts."""
    rule = series(
        f"FREQ=YEARLY;BYMONTHDAY=2,29{position}",
        "2026-03-02T09:00",
        missing_day=MissingDay.NEXT_BUSINESS_DAY,
    )
    assert [one.key for one in rule.next(Cursor(), 2)] == ["20260302T090000", "20260329T090000"]


@pytest.mark.parametrize(
    ("policy", "calendar", "expected"),
    [
        # after 30 April 2026 comes the first of May: a Friday, and a holiday in France
        (MissingDay.NEXT_BUSINESS_DAY, "FR", "2026-05-04"),
        (MissingDay.NEXT_BUSINESS_DAY, "US", "2026-05-01"),
        (MissingDay.NEXT_BUSINESS_DAY, None, "2026-05-01"),
        (MissingDay.PREVIOUS_BUSINESS_DAY, "FR", "2026-04-30"),
        (MissingDay.CLAMP, "FR", "2026-04-30"),
    ],
)
def test_a_business_day_is_one_in_the_named_country(
    policy: MissingDay, calendar: str | None, expected: str
) -> None:
    """The 31st of April."""
    rule = series(
        "FREQ=MONTHLY;BYMONTHDAY=31",
        "2026-04-01T09:00",
        missing_day=policy,
        holiday_calendar=calendar,
    )
    (one,) = rule.next(Cursor(), 1)
    assert (one.key, f"{one.local:%Y-%m-%d}") == ("20260431T090000", expected)


@pytest.mark.parametrize("policy", list(MissingDay))
def test_a_day_that_no_month_of_the_rule_has_is_refused_under_every_policy(
    policy: MissingDay,
) -> None:
    """30 February written out is a mistake; taken from the start it is a missing day."""
    with pytest.raises(RuleInvalid) as caught:
        series("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "2026-01-01T09:00", missing_day=policy)
    assert caught.value.part == "BYMONTHDAY"

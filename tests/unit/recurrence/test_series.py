"""A series: policies, ends and exceptions. The cursor and the cost have files of their own."""

from datetime import UTC, datetime, timedelta

import pytest

from reminders.recurrence import (
    Cursor,
    Gap,
    HolidayCalendarUnknown,
    MissingDay,
    Overlap,
    RecurrenceError,
    RuleInvalid,
    SeriesInvalid,
    ZoneUnknown,
    zone,
)
from tests.unit.recurrence.support import series, shown

# --- transitions ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gap", "middle"),
    [
        (Gap.NEXT_VALID, ["03-29 03:00 01:00Z gap:next_valid"]),
        (Gap.SHIFT_FORWARD, ["03-29 03:30 01:30Z gap:shift_forward"]),
        (Gap.SKIP, []),
    ],
)
def test_a_daily_rule_crosses_a_gap_and_is_not_shifted_after_it(
    gap: Gap, middle: list[str]
) -> None:
    """Each time is computed from the local anchor (db-scheduler stayed shifted)."""
    found = series("FREQ=DAILY", "2026-03-28T02:30", gap=gap).next(Cursor(), 3)
    expected = ["03-28 02:30 01:30Z", *middle, "03-30 02:30 00:30Z", "03-31 02:30 00:30Z"]
    assert shown(found) == expected[:3]


@pytest.mark.parametrize(
    ("overlap", "middle"),
    [
        (Overlap.EARLIER, ["10-25 02:30 00:30Z overlap:earlier"]),
        (Overlap.LATER, ["10-25 02:30 01:30Z overlap:later"]),
        (Overlap.BOTH, ["10-25 02:30 00:30Z overlap:both", "10-25 02:30 01:30Z overlap:both"]),
    ],
)
def test_a_daily_rule_rings_once_in_a_repeated_hour_unless_told_otherwise(
    overlap: Overlap, middle: list[str]
) -> None:
    """Celery fired twice, or went silent."""
    found = series("FREQ=DAILY", "2026-10-24T02:30", overlap=overlap).next(Cursor(), 4)
    expected = ["10-24 02:30 00:30Z", *middle, "10-26 02:30 01:30Z", "10-27 02:30 01:30Z"]
    assert shown(found) == expected[:4]


@pytest.mark.parametrize("text", ["30 2 * * *", "FREQ=DAILY"])
def test_fixed_time_cron_follows_the_same_policies_as_a_rule(text: str) -> None:
    """Cron libraries disagree; the stored policy decides."""
    spring = series(text, "2026-03-29T02:30", gap=Gap.SHIFT_FORWARD).next(Cursor(), 1)
    autumn = series(text, "2026-10-25T02:30", overlap=Overlap.LATER).next(Cursor(), 1)
    assert shown(spring + autumn) == [
        "03-29 03:30 01:30Z gap:shift_forward",
        "10-25 02:30 01:30Z overlap:later",
    ]


def test_local_times_that_a_gap_puts_on_one_instant_are_one_occurrence() -> None:
    """02:00, 02:30 and 03:00 in the spring night: one ringing, named after the first."""
    found = series("FREQ=DAILY;BYHOUR=2,3;BYMINUTE=0,30", "2026-03-29T00:00").next(Cursor(), 2)
    assert [one.key for one in found] == ["20260329T020000", "20260329T033000"]


def test_times_shifted_out_of_a_gap_keep_the_order_of_instants() -> None:
    """02:30 becomes 03:30 and comes after 03:00; from any cursor."""
    daily = series("30 2,3 * * *", "2026-03-29T00:00", gap=Gap.SHIFT_FORWARD)
    assert shown(daily.next(Cursor(), 2)) == [
        "03-29 03:30 01:30Z gap:shift_forward",
        "03-30 02:30 00:30Z",
    ]
    rule = series("FREQ=DAILY;BYHOUR=2,3;BYMINUTE=0,30", "2026-03-29T02:30", gap=Gap.SHIFT_FORWARD)
    first, second, third = rule.next(Cursor(), 3)
    assert [first.key, second.key] == ["20260329T030000", "20260329T023000"]
    assert rule.next(first.cursor, 2) == [second, third]


def test_both_passes_of_a_repeated_hour_come_in_the_order_of_instants() -> None:
    """02:00, 02:30, 02:00 again, 02:30 again."""
    rule = series("FREQ=DAILY;BYHOUR=2;BYMINUTE=0,30", "2026-10-25T00:00", overlap=Overlap.BOTH)
    assert [one.key for one in rule.next(Cursor(), 4)] == [
        "20261025T020000",
        "20261025T023000",
        "20261025T020000~1",
        "20261025T023000~1",
    ]


def test_a_skipped_day_is_not_lost() -> None:
    """Apia had no 30 December 2011: its 9 o'clock is midnight of the 31st."""
    found = series("FREQ=DAILY", "2011-12-29T09:00", "Pacific/Apia").next(Cursor(), 3)
    assert [one.key for one in found] == ["20111229T090000", "20111230T090000", "20111231T090000"]
    assert found[1].local == datetime(2011, 12, 31)


def test_times_shifted_into_the_next_day_keep_the_order_of_instants() -> None:
    """Apia's missing Friday: its 9 o'clock comes after Saturday's 8."""
    rule = series(
        "FREQ=WEEKLY;BYDAY=FR,SA;BYHOUR=8,9;BYMINUTE=0",
        "2011-12-30T08:30",
        "Pacific/Apia",
        gap=Gap.SHIFT_FORWARD,
    )
    found = [one.key for one in rule.next(Cursor(), 3)]
    assert found == ["20111231T080000", "20111230T090000", "20120106T080000"]


# --- missing days --------------------------------------------------------------------------


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


# --- ends and exceptions -------------------------------------------------------------------


def test_count_counts_what_rings_after_the_policies() -> None:
    """A skipped gap does not use it up, nor do two local times on one instant use up two."""
    skipping = series("FREQ=DAILY;COUNT=2", "2026-03-28T02:30", gap=Gap.SKIP)
    assert shown(skipping.next(Cursor(), 9)) == ["03-28 02:30 01:30Z", "03-30 02:30 00:30Z"]
    merging = series("FREQ=DAILY;BYHOUR=2;BYMINUTE=0,30;COUNT=2", "2026-03-29T00:00")
    assert [one.key for one in merging.next(Cursor(), 9)] == ["20260329T020000", "20260330T020000"]


def test_until_is_inclusive_and_compared_with_the_planned_instant() -> None:
    """02:30 is still within an end at 03:00, because that is where it was put."""
    end = datetime(2026, 3, 29, 1, 0, tzinfo=UTC)
    for ended in (
        series("FREQ=DAILY", "2026-03-28T02:30", until=end),
        series("FREQ=DAILY;UNTIL=20260329T010000Z", "2026-03-28T02:30"),
    ):
        assert len(ended.next(Cursor(), 9)) == 2
    before = series("FREQ=DAILY", "2026-03-28T02:30", until=end - timedelta(seconds=1))
    assert len(before.next(Cursor(), 9)) == 1


def test_an_excluded_occurrence_is_counted_and_an_added_one_is_not() -> None:
    """RFC 5545: COUNT bounds the rule; EXDATE and RDATE change its result."""
    rule = series(
        "FREQ=DAILY;COUNT=3",
        "2026-06-01T09:00",
        exdates=(datetime(2026, 6, 2, 9),),
        rdates=(datetime(2026, 6, 2, 12), datetime(2026, 6, 9, 12)),
    )
    found = rule.next(Cursor(), 9)
    assert [(one.key, one.cursor.emitted) for one in found] == [
        ("20260601T090000", 1),
        ("20260602T120000", 2),
        ("20260603T090000", 3),
        ("20260609T120000", 3),
    ]


def test_an_exclusion_may_name_the_planned_time_or_an_instant() -> None:
    """The planned one is what people see; 31 February can't be written as a date."""
    for exdate in (
        datetime(2026, 2, 28, 9),
        datetime(2026, 2, 28, 8, tzinfo=UTC),
    ):
        rule = series(
            "FREQ=MONTHLY",
            "2026-01-31T09:00",
            missing_day=MissingDay.CLAMP,
            exdates=(exdate,),
        )
        assert [one.key for one in rule.next(Cursor(), 2)] == ["20260131T090000", "20260331T090000"]


def test_an_added_date_that_the_rule_has_too_is_one_occurrence() -> None:
    """Also if it is given as an instant of another zone."""
    tokyo = datetime(2026, 6, 1, 16, tzinfo=zone("Asia/Tokyo"))
    rule = series("FREQ=DAILY;COUNT=1", "2026-06-01T09:00", rdates=(datetime(2026, 6, 1, 9), tokyo))
    assert [one.key for one in rule.next(Cursor(), 9)] == ["20260601T090000"]


@pytest.mark.parametrize(
    ("part", "error", "build"),
    [
        ("time_zone", ZoneUnknown, lambda: series("FREQ=DAILY", "2026-01-01T09:00", "Paris")),
        ("start", SeriesInvalid, lambda: series("FREQ=DAILY", "2026-01-01T09:00+01:00")),
        ("start", SeriesInvalid, lambda: series("FREQ=DAILY", "2026-01-01T09:00:00.5")),
        ("start", SeriesInvalid, lambda: series("FREQ=DAILY", "0001-01-01T09:00")),
        (
            "max_occurrences",
            SeriesInvalid,
            lambda: series("FREQ=DAILY", "2026-01-01T09:00", max_occurrences=0),
        ),
        (
            "until",
            SeriesInvalid,
            lambda: series("FREQ=DAILY", "2026-01-01T09:00", until=datetime(2026, 2, 1)),
        ),
        (
            "exdates",
            SeriesInvalid,
            lambda: series(
                "FREQ=DAILY", "2026-01-01T09:00", exdates=(datetime(2026, 1, 1),) * 1001
            ),
        ),
        (
            "rdates",
            SeriesInvalid,
            lambda: series(
                "FREQ=DAILY", "2026-01-01T09:00", rdates=(datetime(2026, 1, 1, 0, 0, 0, 1),)
            ),
        ),
        (
            "COUNT",
            RuleInvalid,
            lambda: series("FREQ=DAILY;COUNT=2", "2026-01-01T09:00", max_occurrences=3),
        ),
        (
            "BYMONTHDAY",
            RuleInvalid,
            lambda: series("FREQ=MONTHLY;BYMONTH=2", "2026-01-31T09:00"),
        ),
        (
            "BYSECOND",
            RuleInvalid,
            lambda: series(
                "FREQ=DAILY;BYMINUTE={0};BYSECOND={0}".format(",".join(map(str, range(60)))),
                "2026-01-31T09:00",
            ),
        ),
    ],
)
def test_what_does_not_fit_together_is_refused_by_name(
    part: str, error: type[RecurrenceError], build: object
) -> None:
    """With the part that the caller can correct."""
    assert callable(build)
    with pytest.raises(error) as caught:
        build()
    assert caught.value.part == part

"""A series: policies, ends and exceptions. The cursor and the cost have files of their own."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reminders.recurrence import (
    Cron,
    Cursor,
    Gap,
    MissingDay,
    Overlap,
    RecurrenceError,
    Rule,
    RuleInvalid,
    Series,
    SeriesInvalid,
    ZoneUnknown,
    localize,
    zone,
)
from tests.unit.recurrence.support import many_series, series, shown

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


# --- ends and exceptions -------------------------------------------------------------------


def test_count_counts_what_rings_after_the_policies() -> None:
    """A skipped gap does not use it up, nor do two local times on one instant use up two."""
    skipping = series("FREQ=DAILY;COUNT=2", "2026-03-28T02:30", gap=Gap.SKIP)
    assert shown(skipping.next(Cursor(), 9)) == ["03-28 02:30 01:30Z", "03-30 02:30 00:30Z"]
    merging = series("FREQ=DAILY;BYHOUR=2;BYMINUTE=0,30;COUNT=2", "2026-03-29T00:00")
    assert [one.key for one in merging.next(Cursor(), 9)] == ["20260329T020000", "20260330T020000"]


@settings(max_examples=80, deadline=None)
@given(many_series, st.integers(1, 60), st.data())
def test_a_count_and_an_until_end_what_the_policies_have_made(
    rule: Series, count: int, data: st.DataObject
) -> None:
    """They cut off a list that is already made; the RDATEs go on."""
    assert isinstance(rule.rule, Rule | Cron)
    endless = rule.rule if isinstance(rule.rule, Cron) else replace(rule.rule, count=None)
    bare = replace(rule, rule=endless, exdates=(), rdates=())
    whole = bare.next(Cursor(), 61)
    counted = replace(bare, max_occurrences=count)
    assert [one.key for one in counted.next(Cursor(), 99)] == [one.key for one in whole[:count]]
    end = data.draw(st.sampled_from(whole)).instant + data.draw(
        st.sampled_from([timedelta(0), timedelta(milliseconds=-1), timedelta(minutes=7)])
    )
    ended = replace(bare, until=end)
    expected = [one.key for one in whole if one.instant <= end]
    assert [one.key for one in ended.next(Cursor(), len(expected) + 1)][:60] == expected[:60]


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
    """It counts, as the rule's own."""
    rule = series("FREQ=DAILY;COUNT=1", "2026-06-01T09:00", rdates=(datetime(2026, 6, 1, 9),))
    (one,) = rule.next(Cursor(), 9)
    assert (one.key, one.cursor.emitted) == ("20260601T090000", 1)


@pytest.mark.parametrize(
    "text", ["FREQ=HOURLY;INTERVAL=2", "FREQ=MINUTELY;INTERVAL=50", "*/30 */2 * * *", "FREQ=DAILY"]
)
@pytest.mark.parametrize("start", ["2026-10-24T23:30", "2026-10-25T00:30"])
@pytest.mark.parametrize("overlap", list(Overlap))
def test_an_added_time_of_the_repeated_hour_is_the_pass_that_it_rings_in(
    text: str, start: str, overlap: Overlap
) -> None:
    """An elapsing rule names each pass by itself: one name, one instant, from any cursor."""
    added = tuple(datetime(2026, 10, 25, 1) + timedelta(minutes=10 * n) for n in range(15))
    rule = series(text, start, overlap=overlap, rdates=added)
    whole = rule.next(Cursor(), 40)
    assert len({one.key for one in whole}) == len(whole)
    for place, one in enumerate(whole[:-3], 1):
        assert rule.next(one.cursor, 3) == whole[place : place + 3]


@settings(max_examples=100, deadline=None)
@given(many_series, st.sets(st.integers(0, 19), min_size=1))
def test_adding_what_the_rule_names_anyway_changes_nothing(rule: Series, places: set[int]) -> None:
    """Neither the occurrences nor the count, wherever a period of the rule begins."""
    whole = replace(rule, rdates=()).next(Cursor(), 25)
    instants = {one.instant for one in whole}
    asked = {whole[place % len(whole)].local for place in places}
    gap, overlap = rule.policies.gap, rule.policies.overlap
    added = [
        local  # whose every instant the rule has: of what elapses that may be the other pass
        for local in asked
        if {one.instant for one in localize(local, zone(rule.zone), gap, overlap)} <= instants
    ]
    assume(added)
    assert replace(rule, rdates=tuple(added)).next(Cursor(), 20) == whole[:20]


@pytest.mark.parametrize("text", ["FREQ=DAILY;COUNT=3", "FREQ=MINUTELY;COUNT=3", "0 0 * * *"])
@pytest.mark.parametrize("start", ["2026-06-01T00:00", "2026-05-31T23:59"])
def test_an_added_midnight_does_not_take_the_place_of_the_rules_own(text: str, start: str) -> None:
    """Periods and days begin there: it could be taken before the rule has come to it."""
    plain = series(text, start)
    added = series(text, start, rdates=(datetime(2026, 6, 1), datetime(2026, 6, 2)))
    found, count = plain.next(Cursor(), 3), 0
    for one in added.next(Cursor(), 3):
        count += one in found
        assert one.cursor.emitted == count


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
                "FREQ=DAILY", "2026-01-01T09:00", rdates=(datetime(2026, 1, 2, tzinfo=UTC),)
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

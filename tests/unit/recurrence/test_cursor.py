"""The cursor: a series goes on from it as if it had never stopped, also under newer data."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from unittest.mock import patch
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import reminders.recurrence.series
from reminders.recurrence import (
    Cron,
    Cursor,
    Gap,
    MissingDay,
    Overlap,
    Planned,
    Rule,
    Series,
    business,
    zone,
)
from tests.unit.recurrence.rule_texts import rules
from tests.unit.recurrence.support import PARIS, many_series, moved, series


@settings(max_examples=150, deadline=None)
@given(many_series, st.integers(1, 7))
def test_a_series_split_at_any_cursor_is_the_same_series(rule: Series, size: int) -> None:
    """And its instants strictly increase, its keys never repeat."""
    whole = rule.next(Cursor(), 60)
    assert all(one.instant < other.instant for one, other in pairwise(whole))
    assert len({one.key for one in whole}) == len(whole)
    pieces: list[Planned] = []
    cursor = Cursor()
    while len(pieces) < len(whole):
        piece = rule.next(cursor, size)
        pieces += piece
        cursor = piece[-1].cursor
    assert pieces[: len(whole)] == whole
    for one in whole:
        assert rule.position(one.cursor) == one.instant
        stored = Cursor.after(one.key, emitted=one.cursor.emitted, fold=one.fold, planned=one.local)
        assert stored == one.cursor
        bare = Cursor.after(one.key, emitted=one.cursor.emitted, fold=one.fold)
        assert rule.next(bare, 3) == rule.next(stored, 3)
    assert rule.furthest(one.cursor for one in reversed(whole)) == whole[-1].cursor


@settings(max_examples=150, deadline=None)
@given(many_series, st.integers(0, 40), st.sampled_from([-1, 0, 1]))
def test_a_series_created_late_goes_on_at_or_after_that_instant(
    rule: Series, place: int, offset_ms: int
) -> None:
    """What is past is neither emitted nor counted; what is left is the same."""
    assume(isinstance(rule.rule, Cron) or rule.rule.count is None)
    whole = rule.next(Cursor(), 50)
    at = whole[place].instant + timedelta(milliseconds=offset_ms)
    cursor = rule.first_after(at)
    assert cursor.emitted == 0
    late = rule.next(cursor, 5)
    expected = [one for one in whole if one.instant >= at]
    assert [one.key for one in late][: len(expected)] == [one.key for one in expected][: len(late)]


def test_what_is_past_at_creation_does_not_use_up_the_count() -> None:
    """COUNT counts what Tocsin emits."""
    rule = series("FREQ=DAILY;COUNT=2", "2020-01-01T09:00")
    cursor = rule.first_after(datetime(2026, 6, 1, 7, tzinfo=UTC))
    assert [(one.key, one.cursor.emitted) for one in rule.next(cursor, 9)] == [
        ("20260601T090000", 1),
        ("20260602T090000", 2),
    ]


def test_no_policy_but_both_gives_two_instants_for_one_local_time() -> None:
    """Over a year of half-hours."""
    for overlap in Overlap:
        rule = series("*/30 0-22 * * *", "2026-01-01T00:00", overlap=overlap)
        found = rule.next(Cursor(), 17_000)
        nominals = {one.nominal for one in found}
        assert (len(nominals) == len(found)) is (overlap is not Overlap.BOTH)


def test_the_same_intent_is_not_emitted_again_when_zone_data_move_it() -> None:
    """A cursor written when 02:30 was not ambiguous; under LATER it now lies an hour further."""
    rule = series("FREQ=DAILY", "2026-10-20T02:30", overlap=Overlap.LATER)
    stored = Cursor(last_local=datetime(2026, 10, 25, 2, 30), emitted=6, last_fold=0)
    assert [one.key for one in rule.next(stored, 1)] == ["20261026T023000"]


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(
        [
            "FREQ=DAILY;BYHOUR=0,1,2,3,23;BYMINUTE=0,15,30",
            "FREQ=HOURLY;INTERVAL=5;BYMINUTE=0,40",
            "*/20 1-3 * * *",
            "FREQ=MONTHLY;BYMONTHDAY=29,30,31;BYHOUR=2",
        ]
    ),
    st.sampled_from([PARIS, "Australia/Lord_Howe", "Pacific/Apia", "America/St_Johns"]),
    st.sampled_from(["2005-04-01", "2005-10-28", "2011-12-28", "2026-03-27", "2026-10-23"]),
    st.sampled_from(list(Gap)),
    st.sampled_from(list(Overlap)),
    st.sampled_from(list(MissingDay)),
)
def test_a_local_time_has_one_instant_unless_both_are_asked_for(
    text: str, name: str, day: str, gap: Gap, overlap: Overlap, missing: MissingDay
) -> None:
    """And under BOTH no more than two. What elapses has as many as the clocks show."""
    rule = series(text, f"{day}T00:00", name, gap=gap, overlap=overlap, missing_day=missing)
    found = rule.next(Cursor(), 80)
    assert all(one.instant < other.instant for one, other in pairwise(found))
    names = [(one.nominal, one.cursor.last_missing) for one in found]
    most = 2 if overlap is Overlap.BOTH or "HOURLY" in text else 1
    assert all(names.count(name) <= most for name in names)


@settings(max_examples=80, deadline=None)
@given(
    rules(),
    st.datetimes(datetime(2020, 1, 1), datetime(2026, 1, 1)),
    st.integers(1, 40),
    st.sampled_from([PARIS, "America/New_York", "UTC"]),
)
def test_a_start_moved_by_whole_periods_changes_nothing_ahead(
    text: str, start: datetime, periods: int, name: str
) -> None:
    """All that a rule takes from its start but the phase of INTERVAL being written out."""
    start = start.replace(microsecond=0, day=min(start.day, 28))
    text = Rule.parse(text).completed(start).text
    earlier = moved(text, start, periods, name)
    now = start.replace(tzinfo=UTC) + timedelta(days=3)
    keys = []
    for begins in (start, earlier):
        if zone(name).utcoffset(begins) != zone(name).utcoffset(begins.replace(fold=1)):
            assume(False)  # a start that is no instant, or two
        rule = series(text, begins.isoformat(), name, max_steps=8_000)
        try:
            keys.append([one.key for one in rule.next(rule.first_after(now), 6)])
        except reminders.recurrence.RuleExhausted:
            keys.append([])
    assert keys[0] == keys[1]


# --- newer data ----------------------------------------------------------------------------

EDITIONS = [PARIS, "Africa/Tunis", "Europe/London", "Europe/Athens", "Africa/Lagos"]
"""Zones whose rules stand in for editions of one zone's: no DST, other offsets, other hours."""


@contextmanager
def zone_data(rules_of: str) -> Iterator[None]:
    """All zones are as this one."""
    data: ZoneInfo = zone(rules_of)
    with patch.object(reminders.recurrence.series, "zone", lambda _: data):
        yield


def made(edition: str, text: str, day: str, **policies: Gap | Overlap) -> Series:
    """A series in Paris under an edition of its rules."""
    with zone_data(edition):
        return series(text, day, PARIS, **policies)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(
        [
            "FREQ=DAILY",
            "FREQ=DAILY;BYHOUR=0,1,2,3,4;BYMINUTE=0,15,30",
            "FREQ=WEEKLY;BYDAY=SA,SU;BYHOUR=2;BYMINUTE=0,59",
            "30 1,2,3 * * *",
            "*/10 2 * * *",
        ]
    ),
    st.sampled_from(["2026-03-27T02:30", "2026-10-23T02:30"]),
    st.tuples(st.sampled_from(EDITIONS), st.sampled_from(EDITIONS)),
    st.sampled_from([Gap.NEXT_VALID, Gap.SKIP]),
    st.sampled_from([Overlap.EARLIER, Overlap.LATER]),
    st.integers(1, 50),
)
def test_newer_zone_data_move_occurrences_and_neither_double_nor_lose_one(
    text: str, day: str, editions: tuple[str, str], gap: Gap, overlap: Overlap, count: int
) -> None:
    """What follows is what the new data name after the last intent, and nothing else.

    Those that had become one with it (02:10 and 02:00, both put at 03:00) rang with it.
    """
    old, new = editions
    before = made(old, text, day, gap=gap, overlap=overlap).next(Cursor(), count)
    updated = made(new, text, day, gap=gap, overlap=overlap)
    last = before[-1]
    found = [one.key for one in updated.next(last.cursor, 8)]
    at_that_instant = updated.position(last.cursor)
    whole = [
        one.key
        for one in updated.next(Cursor(), count + 60)
        if one.key > last.key
        and one.instant != at_that_instant
        and (last.fold or one.local != one.nominal or one.nominal > last.local)
    ]
    assert found == whole[:8]
    assert not {one.key for one in before} & set(found)


@pytest.mark.parametrize("text", ["FREQ=DAILY", "FREQ=WEEKLY;BYDAY=SU", "30 2 * * *"])
@pytest.mark.parametrize("gap", list(Gap))
@pytest.mark.parametrize("overlap", list(Overlap))
def test_a_time_a_day_is_never_doubled_by_newer_zone_data(
    text: str, gap: Gap, overlap: Overlap
) -> None:
    """Under all policies; what BOTH adds is another identity, not a repeat."""
    for day in ("2026-03-27T02:30", "2026-10-23T02:30"):
        for old in EDITIONS:
            for new in EDITIONS:
                before = made(old, text, day, gap=gap, overlap=overlap).next(Cursor(), 6)
                updated = made(new, text, day, gap=gap, overlap=overlap)
                for place, last in enumerate(before, 1):
                    found = {one.key for one in updated.next(last.cursor, 4)}
                    assert not found & {one.key for one in before[:place]}


@pytest.mark.parametrize(
    ("key", "planned", "expected"),
    [
        # 02:30 was put at 03:30, after 03:00; now there is no gap, and 03:00 lies behind 02:30
        ("20260329T023000", datetime(2026, 3, 29, 3, 30), ["20260330T020000", "20260330T023000"]),
        ("20260329T030000", datetime(2026, 3, 29, 3), ["20260329T033000", "20260330T020000"]),
    ],
)
def test_what_came_before_a_shifted_time_does_not_come_again_when_the_gap_is_gone(
    key: str, planned: datetime, expected: list[str]
) -> None:
    """The promised local time says how far the series had come."""
    rule = made(
        "Africa/Lagos",
        "FREQ=DAILY;BYHOUR=2,3;BYMINUTE=0,30",
        "2026-03-28T00:00",
        gap=Gap.SHIFT_FORWARD,
    )
    found = rule.next(Cursor.after(key, emitted=5, fold=0, planned=planned), 2)
    assert [one.key for one in found] == expected


@contextmanager
def holiday_data(*days: date) -> Iterator[None]:
    """The holidays of France are these."""

    def is_open(calendar: str | None) -> object:
        return lambda day: day.weekday() < 5 and (calendar is None or day not in days)

    with patch.object(business, "_is_business_day", is_open):
        yield


@pytest.mark.parametrize("policy", [MissingDay.NEXT_BUSINESS_DAY, MissingDay.PREVIOUS_BUSINESS_DAY])
@pytest.mark.parametrize("text", ["FREQ=MONTHLY", "FREQ=MONTHLY;BYMONTHDAY=30,31"])
def test_newer_holiday_data_move_a_missing_day_and_never_double_it(
    policy: MissingDay, text: str
) -> None:
    """30 and 31 February stay those, on whatever date a new edition puts them."""
    editions = [
        (),
        (date(2026, 2, 27), date(2026, 3, 2)),
        (date(2026, 2, 26), date(2026, 2, 27), date(2026, 3, 2), date(2026, 3, 3)),
    ]
    rule = series(text, "2026-01-31T09:00", missing_day=policy, holiday_calendar="FR")
    for old in editions:
        with holiday_data(*old):
            before = rule.next(Cursor(), 4)
        for new in editions:
            with holiday_data(*new):
                whole = rule.next(Cursor(), 8)
                for place, last in enumerate(before, 1):
                    found = [one.key for one in rule.next(last.cursor, 3)]
                    assert not set(found) & {one.key for one in before[:place]}
                    assert found == [one.key for one in whole[place : place + 3]]
                assert [one.key for one in before] == [one.key for one in whole[:4]]


@pytest.mark.parametrize("text", ["FREQ=DAILY", "30 2 * * *"])
def test_the_second_pass_is_ahead_of_who_creates_in_the_very_moment_of_the_first(text: str) -> None:
    """Under LATER one occurrence has the name that clocks showed just then; it is not past."""
    rule = series(text, "2026-10-20T02:30", overlap=Overlap.LATER)
    first_pass = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    for at in (first_pass, first_pass + timedelta(milliseconds=1)):
        (one,) = rule.next(rule.first_after(at), 1)
        assert (one.key, one.fold) == ("20261025T023000", 1)
        assert one.instant == first_pass + timedelta(hours=1)

"""What users of other schedulers ran into with calendars (FACTS.md): each behaviour a test."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from reminders.recurrence import (
    Cursor,
    Gap,
    Overlap,
    Planned,
    Series,
    Work,
    jitter,
    wall_clock,
    zone,
    zone_names,
)
from tests.unit.recurrence.support import PARIS, series

HOUR = timedelta(hours=1)
SPRING, AUTUMN = "2026-03-29T02:30", "2026-10-25T02:30"
SOME_ZONES = sorted(zone_names())[::9]


def a_year(rule: Series, begins: str) -> list[datetime]:
    """The instants of a year that the series starts with."""
    end = datetime.fromisoformat(begins).replace(tzinfo=UTC) + timedelta(days=365)
    found: list[Planned] = []
    cursor = Cursor()
    while not found or found[-1].instant < end:
        found += rule.next(cursor, 500)
        cursor = found[-1].cursor
    return [one.instant for one in found if one.instant < end]


def test_gap_and_overlap_policies_are_two_fields_of_each_reminder() -> None:
    """Temporal #8205: any pair can be stored, and neither decides about the other."""
    spring = {
        (gap, overlap): series("FREQ=DAILY", SPRING, gap=gap, overlap=overlap).next(Cursor(), 1)[0]
        for gap in Gap
        for overlap in Overlap
    }
    autumn = {
        (gap, overlap): series("FREQ=DAILY", AUTUMN, gap=gap, overlap=overlap).next(Cursor(), 2)
        for gap in Gap
        for overlap in Overlap
    }
    for gap in Gap:
        assert len({spring[gap, overlap].instant for overlap in Overlap}) == 1
    assert len({one.instant for one in spring.values()}) == 3
    for overlap in Overlap:
        assert len({tuple(one.instant for one in autumn[gap, overlap]) for gap in Gap}) == 1
    assert len({tuple(one.instant for one in found) for found in autumn.values()}) == 3


@pytest.mark.parametrize("gap", list(Gap))
@pytest.mark.parametrize("text", ["FREQ=DAILY", "30 2 * * *", "FREQ=WEEKLY", "FREQ=MONTHLY"])
def test_a_time_moved_by_a_gap_is_back_in_its_place_the_next_time(gap: Gap, text: str) -> None:
    """db-scheduler #662: each is computed from the local anchor, not from the one before."""
    found = series(text, SPRING, gap=gap).next(Cursor(), 3)
    moved = [one for one in found if f"{one.local:%Y-%m-%dT%H:%M}" == SPRING]
    assert moved == []
    assert all(f"{one.local:%H:%M}" == "02:30" for one in found[1:])
    later = series(text, SPRING, gap=gap).next(found[0].cursor, 2)
    assert later == found[1:]


@pytest.mark.parametrize("name", SOME_ZONES)
def test_a_daily_time_neither_rings_twice_nor_falls_silent_at_a_transition(name: str) -> None:
    """Celery #1604, #6438: 365 times a year, wherever and whenever the clocks change."""
    for text in ("FREQ=DAILY", "30 2 * * *"):
        rule = series(text, "2026-01-01T02:30", name)
        instants = [one.instant for one in rule.next(Cursor(), 365)]
        days = [wall_clock(at, zone(name))[0].date() for at in instants]
        assert all(later - one == timedelta(days=1) for one, later in pairwise(days))
        assert all(
            timedelta(hours=22) <= later - one <= timedelta(hours=26)
            for one, later in pairwise(instants)
        )


@pytest.mark.parametrize("name", [PARIS, "Australia/Lord_Howe", "Antarctica/Troll"])
@pytest.mark.parametrize("text", ["FREQ=HOURLY", "0 * * * *"])
def test_an_hourly_rule_rings_once_in_each_hour_that_passes(name: str, text: str) -> None:
    """Dateutil loses the repeated hour; croniter fired a fixed time twice."""
    instants = a_year(series(text, "2026-01-01T00:00", name), "2026-01-01T00:00")
    assert len(instants) == len(set(instants))
    steps = [later - one for one, later in pairwise(instants)]
    # The clocks of Lord Howe jump half an hour: from one full hour to the next it is 90 minutes.
    half_an_hour = name == "Australia/Lord_Howe" and "*" in text
    assert (min(steps), max(steps)) == (HOUR, HOUR * (1.5 if half_an_hour else 1))


def test_a_fixed_time_of_a_cron_expression_rings_once_in_the_repeated_hour() -> None:
    """Croniter fired it twice on fall-back."""
    found = series("30 2 * * *", "2026-10-24T12:00").next(Cursor(), 2)
    assert [one.key for one in found] == ["20261025T023000", "20261026T023000"]


def test_two_weeks_of_a_rule_every_second_are_passed_over_in_a_few_steps() -> None:
    """River #1035, kubernetes #42649: nothing is replayed, and no number of misses is too large."""
    rule = series("FREQ=SECONDLY;COUNT=999999999", "2026-06-01T00:00")
    work = Work()
    back = datetime(2026, 6, 15, tzinfo=UTC)
    (one,) = rule.next(rule.first_after(back), 1, work)
    assert one.instant == back
    assert work.steps < 5
    stale = Cursor(last_local=datetime(2026, 6, 1, 0, 0, 5), emitted=6)
    (following,) = rule.next(stale, 1, work)
    assert following.local == datetime(2026, 6, 1, 0, 0, 6)
    assert work.steps < 10


@pytest.mark.parametrize("text", ["FREQ=DAILY;BYHOUR=2,3;BYMINUTE=0,30", "0 * * * *"])
def test_a_new_leader_goes_on_from_the_durable_cursor_without_a_miss(text: str) -> None:
    """Dkron #1210, #998: after any occurrence, in the middle of any transition."""
    for start in ("2026-03-28T00:00", "2026-10-24T00:00"):
        for gap in Gap:
            for overlap in Overlap:
                rule = series(text, start, gap=gap, overlap=overlap)
                whole = rule.next(Cursor(), 20)
                for place, one in enumerate(whole[:-3], 1):
                    durable = Cursor.after(one.key, emitted=one.cursor.emitted, fold=one.fold)
                    assert rule.next(durable, 3) == whole[place : place + 3]


def test_jitter_is_seeded_by_the_reminder_and_the_occurrence() -> None:
    """Temporal #3059: it was the same for every schedule."""
    at = datetime(2026, 6, 1, tzinfo=UTC)
    window = timedelta(seconds=30)
    drawn = {jitter(f"r{n}", "20260601T000000", window, instant=at) for n in range(200)}
    assert len(drawn) > 190
    again = {jitter("r1", "20260601T000000", window, instant=at) for _ in range(20)}
    assert len(again) == 1


def test_jitter_never_reaches_the_next_occurrence() -> None:
    """Temporal #4685: days of it, on a rule of minutes."""
    found = series("FREQ=MINUTELY", "2026-06-01T09:00").next(Cursor(), 50)
    rings = [found[0].instant]
    for before, one, after in zip(found, found[1:], found[2:], strict=False):
        shift = jitter(
            "r1",
            one.key,
            timedelta(days=3),
            instant=one.instant,
            previous=before.instant,
            following=after.instant,
        )
        assert before.instant < one.instant + shift < after.instant
        rings.append(one.instant + shift)
    assert rings == sorted(set(rings))

"""What policies did, in words, and the transition that the words speak of."""

from datetime import UTC, datetime, timedelta

import pytest

from reminders.recurrence import (
    CalendarPolicies,
    Cursor,
    Gap,
    MissingDay,
    Overlap,
    Planned,
    Rule,
    Series,
    zone,
)
from reminders.recurrence.wording import in_words, offset_text, policy_word, transition_at

MINUTE = timedelta(minutes=1)
# Zone and day of a transition: an hour, half an hour, two hours, a day, negative winter time,
# Ramadan, at midnight, and from one day into another.
TRANSITIONS = [
    ("Europe/Paris", "2026-03-29"),
    ("Europe/Paris", "2026-10-25"),
    ("Australia/Lord_Howe", "2026-10-04"),
    ("Australia/Lord_Howe", "2026-04-05"),
    ("Antarctica/Troll", "2026-03-29"),
    ("Antarctica/Troll", "2026-10-25"),
    ("Pacific/Apia", "2011-12-30"),
    ("Pacific/Kwajalein", "1993-08-21"),
    ("Europe/Dublin", "2026-10-25"),
    ("Africa/Casablanca", "2026-02-15"),
    ("America/Sao_Paulo", "2018-11-04"),
    ("America/St_Johns", "2005-10-30"),
]


@pytest.mark.parametrize(("name", "day"), TRANSITIONS)
def test_the_transition_is_the_one_that_a_scan_of_the_clock_finds(name: str, day: str) -> None:
    """Asked with every ninth local minute that it skips or repeats, it is the same one."""
    at = datetime.fromisoformat(day).replace(tzinfo=UTC) - timedelta(days=1)
    jumps = []
    for _ in range(3 * 1440):
        following = at + MINUTE
        due = at.astimezone(zone(name)).replace(tzinfo=None, fold=0) + MINUTE
        shown = following.astimezone(zone(name)).replace(tzinfo=None, fold=0)
        if shown != due:
            jumps.append((due, shown))
        at = following
    ((before, after),) = jumps
    local, end = min(before, after), max(before, after)
    while local < end:
        found = transition_at(local, zone(name))
        assert (found.before, found.after) == (before, after), local
        local += 9 * MINUTE


def planned(
    rule: str, start: str, place: str = "Europe/Paris", number: int = 0, **policies: object
) -> tuple[Planned, CalendarPolicies]:
    """One of the first occurrences, with the policies that planned it."""
    chosen = CalendarPolicies(**policies)  # type: ignore[arg-type]
    series = Series(
        rule=Rule.parse(rule),
        start_local=datetime.fromisoformat(start),
        zone=place,
        policies=chosen,
    )
    return series.next(Cursor(), number + 1)[number], chosen


SPRING = "02:30 does not exist on 2026-03-29 in Europe/Paris (clocks go from 02:00 to 03:00)"
AUTUMN = "02:30 comes twice on 2026-10-25 in Europe/Paris (clocks go back from 03:00 to 02:00)"
APIA = "2011-12-30 does not exist in Pacific/Apia (the calendar goes from 2011-12-29 to 2011-12-31)"


@pytest.mark.parametrize(
    ("start", "place", "number", "policies", "policy", "sentence"),
    [
        (
            *("2026-03-29T02:30", "Europe/Paris", 0, {}),
            *("gap_next_valid", f"{SPRING}; it rings at 03:00, the next valid time."),
        ),
        (
            *("2026-03-29T02:30", "Europe/Paris", 0, {"gap": Gap.SHIFT_FORWARD}),
            "gap_shift_forward",
            f"{SPRING}; it rings at 03:30, 1 hour later: as far as the clocks jump.",
        ),
        (
            *("2026-10-25T02:30", "Europe/Paris", 0, {}),
            *("overlap_earlier", f"{AUTUMN}; it rings the first time (UTC+02:00)."),
        ),
        (
            *("2026-10-25T02:30", "Europe/Paris", 0, {"overlap": Overlap.LATER}),
            *("overlap_later", f"{AUTUMN}; it rings the second time (UTC+01:00)."),
        ),
        (
            *("2026-10-25T02:30", "Europe/Paris", 0, {"overlap": Overlap.BOTH}),
            "overlap_both",
            f"{AUTUMN}; it rings both times, and this is the first (UTC+02:00).",
        ),
        (
            *("2026-10-25T02:30", "Europe/Paris", 1, {"overlap": Overlap.BOTH}),
            "overlap_both",
            f"{AUTUMN}; it rings both times, and this is the second (UTC+01:00).",
        ),
        (
            *("2011-12-30T09:00", "Pacific/Apia", 0, {}),
            *("gap_next_valid", f"{APIA}; it rings at 00:00 on 2011-12-31, the next valid time."),
        ),
        (
            *("2011-12-30T09:00", "Pacific/Apia", 0, {"gap": Gap.SHIFT_FORWARD}),
            "gap_shift_forward",
            f"{APIA}; it rings at 09:00 on 2011-12-31, 24 hours later: as far as the clocks jump.",
        ),
        (
            *("2026-10-04T02:15:30", "Australia/Lord_Howe", 0, {"gap": Gap.SHIFT_FORWARD}),
            "gap_shift_forward",
            (
                "02:15:30 does not exist on 2026-10-04 in Australia/Lord_Howe (clocks go from "
                "02:00 to 02:30); it rings at 02:45:30, 30 minutes later: as far as the clocks "
                "jump."
            ),
        ),
        (
            *("2005-10-29T23:30", "America/St_Johns", 0, {}),
            "overlap_earlier",
            (
                "23:30 comes twice on 2005-10-29 in America/St_Johns (clocks go back from 00:01 on "
                "2005-10-30 to 23:01); it rings the first time (UTC-02:30)."
            ),
        ),
        (
            *("2018-11-04T00:00", "America/Sao_Paulo", 0, {}),
            "gap_next_valid",
            (
                "00:00 does not exist on 2018-11-04 in America/Sao_Paulo (clocks go from 00:00 to "
                "01:00); it rings at 01:00, the next valid time."
            ),
        ),
        (*("2026-03-28T02:30", "Europe/Paris", 0, {}), "", ""),
    ],
)
def test_a_gap_or_an_overlap_is_told_with_what_the_clocks_do(
    start: str,
    place: str,
    number: int,
    policies: dict[str, object],
    policy: str,
    sentence: str,
) -> None:
    """Local time, day, zone, both ends of the jump, and where it rings."""
    one, chosen = planned("FREQ=DAILY", start, place, number, **policies)
    assert (policy_word(one.note), in_words(one, chosen)) == (policy, sentence)


@pytest.mark.parametrize(
    ("policy", "holidays", "place"),
    [
        (MissingDay.CLAMP, None, "2026-02-28, the last day of the month"),
        (MissingDay.CLAMP, "FR", "2026-02-28, the last day of the month"),
        (
            *(MissingDay.PREVIOUS_BUSINESS_DAY, None),
            "Friday 2026-02-27, the last business day of the month",
        ),
        (
            *(MissingDay.NEXT_BUSINESS_DAY, "FR"),
            "Monday 2026-03-02, the first business day after the month (holidays: FR)",
        ),
        # 1 March, a Sunday and a holiday in Korea, is made up for on the Monday.
        (
            *(MissingDay.NEXT_BUSINESS_DAY, "KR"),
            "Tuesday 2026-03-03, the first business day after the month (holidays: KR)",
        ),
    ],
)
def test_a_missing_day_is_told_by_its_name(
    policy: MissingDay, holidays: str | None, place: str
) -> None:
    """The day that the rule named, not the one that stands in for it."""
    one, chosen = planned(
        "FREQ=MONTHLY;BYMONTHDAY=30",
        "2026-01-30T09:00",
        number=1,
        missing_day=policy,
        holiday_calendar=holidays,
    )
    assert policy_word(one.note) == f"missing_day_{policy}"
    assert in_words(one, chosen) == f"February 2026 has no 30th; it moves to {place}."


def test_two_policies_are_two_sentences() -> None:
    """The day first, then the time on the day that it was moved to."""
    one, chosen = planned(
        "FREQ=MONTHLY;BYMONTH=3,4;BYMONTHDAY=31",
        "2028-04-01T00:30",
        "Africa/Cairo",
        missing_day=MissingDay.PREVIOUS_BUSINESS_DAY,
    )
    assert policy_word(one.note) == "missing_day_previous_business_day,gap_next_valid"
    assert in_words(one, chosen) == (
        "April 2028 has no 31st; it moves to Friday 2028-04-28, the last business day of the "
        "month. 00:30 does not exist on 2028-04-28 in Africa/Cairo (clocks go from 00:00 to "
        "01:00); it rings at 01:00, the next valid time."
    )


@pytest.mark.parametrize(
    ("offset", "text"),
    [
        (timedelta(hours=2), "+02:00"),
        (timedelta(0), "+00:00"),
        (timedelta(hours=-3, minutes=-30), "-03:30"),
        (timedelta(minutes=9, seconds=21), "+00:09:21"),
        (timedelta(hours=-1, seconds=-5), "-01:00:05"),
    ],
)
def test_an_offset_is_written_as_iso_8601_has_it(offset: timedelta, text: str) -> None:
    """Seconds only where there are any: Paris before 1911."""
    assert offset_text(offset) == text

"""Five-field cron: what is refused, and dates and times against cronsim's own iteration in UTC."""

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from cronsim import CronSim
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reminders.recurrence import (
    CalendarPolicies,
    Cron,
    CronInvalid,
    Cursor,
    Overlap,
    RuleExhausted,
    Series,
)
from tests.oracle.cron import occurrences


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("cron", "0 0 9 * * *"),
        ("cron", "0 9 * *"),
        ("cron", ""),
        ("cron", "@reboot"),
        ("cron", "@fortnightly"),
        ("cron", "0 9 * * *" + " " * 300 + "1"),
        ("minute", "60 9 * * *"),
        ("minute", "*/0 9 * * *"),
        ("minute", "5-5/0 9 * * *"),
        ("minute", "-1 9 * * *"),
        ("hour", "0 24 * * *"),
        ("hour", "0 22-2 * * *"),
        ("day-of-month", "0 9 0 * *"),
        ("day-of-month", "0 9 32 * *"),
        ("day-of-month", "0 9 30 2 *"),
        ("month", "0 9 1 13 *"),
        ("month", "0 9 1 JANUARY *"),
        ("day-of-week", "0 9 * * 8"),
        ("day-of-week", "0 9 * * MON#6"),
        ("day-of-week", "0 9 * * L"),
        ("minute", "? 9 * * *"),
        ("hour", "0 ? * * *"),
        ("day-of-month", "0 9 ?/2 * *"),
        ("day-of-week", "0 9 * * ?,1"),
        ("day-of-week", "0 9 * * FRI-MON"),
    ],
)
def test_an_expression_that_cannot_work_is_refused_with_the_field(part: str, text: str) -> None:
    """Six fields too: libraries disagree on where the seconds stand."""
    with pytest.raises(CronInvalid) as caught:
        Cron.parse(text)
    assert caught.value.part == part
    of_the_whole = ("not one of", "use FREQ", "not five", "longer than")
    remedies = of_the_whole if part == "cron" else ("it takes",)
    assert any(words in caught.value.reason for words in remedies)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        (" 0  9 * * mon-fri ", "0 9 * * MON-FRI"),
        ("@daily", "0 0 * * *"),
        ("@Midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("0 9 ? * mon", "0 9 * * MON"),
        ("0 9 13 * ?", "0 9 13 * *"),
        ("10-10/5 9 * * *", "10 9 * * *"),  # cronsim reads 10/5: to the end
        ("0 9,05-5/3 * jan-1/2,3-4/2 mon-1/1", "0 9,05 * JAN,3-4/2 MON"),
    ],
)
def test_the_normal_form_reads_back(text: str, normal: str) -> None:
    """Content hashes are made of it."""
    assert Cron.parse(text).text == normal
    assert Cron.parse(normal) == Cron.parse(text)


@pytest.mark.parametrize(
    ("text", "elapses"),
    [
        ("0 * * * *", True),
        ("*/5 */2 * * *", True),
        ("0 0-23 * * *", True),
        ("* 9 * * *", False),
        ("0 */24 * * *", False),
        ("0 */12 * * *", True),
    ],
)
def test_a_wildcard_hour_means_elapsed_time(text: str, elapses: bool) -> None:
    """Spelled as a star, with or without a step, or as all 24; not where one hour is left."""
    assert Cron.parse(text).elapses is elapses


def test_a_step_that_leaves_midnight_alone_does_not_lose_a_day() -> None:
    """Cairo has no midnight on the spring day: `*/24` is a fixed time, under the policies."""
    series = Series(
        rule=Cron.parse("0 */24 * * *"), start_local=datetime(2026, 4, 23), zone="Africa/Cairo"
    )
    assert [one.local for one in series.next(Cursor(), 3)] == [
        datetime(2026, 4, 23),
        datetime(2026, 4, 24, 1),
        datetime(2026, 4, 25),
    ]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("0 9 13 * 5", [2, 9, 13, 16, 23, 30]),  # each 13th and each Friday
        ("0 9 13 * *", [13]),
        ("0 9 * * 5", [2, 9, 16, 23, 30]),
        ("0 9 ? * 5", [2, 9, 16, 23, 30]),
        ("0 9 */2 * 5", [9, 23]),  # a star with a step is a star: both
        ("0 9 1-7 * */5", [2, 4]),  # Sundays and Fridays of the first week
        ("0 9 L * 1", [5, 12, 19, 26, 31]),
        ("0 9 L * *", [31]),
        ("0 9 LW * *", [30]),
        ("0 9 * * 5L", [30]),
        ("0 9 * * FRI#2", [9]),
        ("0 9 * * 0,7", [4, 11, 18, 25]),
        ("0 9 * * SUN-TUE", [4, 5, 6, 11, 12, 13, 18, 19, 20, 25, 26, 27]),
    ],
)
def test_two_day_fields_are_both_wanted_only_where_one_starts_with_a_star(
    text: str, days: list[int]
) -> None:
    """As in Debian's cron; in January 2026, whose first day is a Thursday."""
    start, end = datetime(2026, 1, 1), datetime(2026, 2, 1)
    series = Series(rule=Cron.parse(text), start_local=start, zone="UTC")
    found = [one.local for one in series.next(Cursor(), 31) if one.local < end]
    assert [at.day for at in found] == days
    assert occurrences(text.replace("?", "*"), start, end) == found


def field(low: int, high: int, *extra: str) -> st.SearchStrategy[str]:
    """One cron field."""
    value = st.integers(low, high)
    span = st.tuples(value, value).map(lambda pair: "{}-{}".format(*sorted(pair)))
    step = st.integers(1, 9).map(lambda n: f"*/{n}")
    stepped = st.tuples(span, st.integers(1, 5)).map(lambda pair: "{}/{}".format(*pair))
    some = st.lists(value.map(str) | span | stepped, min_size=1, max_size=3).map(",".join)
    return st.sampled_from(["*", "*", *extra]) | some | step


expressions = st.tuples(
    field(0, 59),
    field(0, 23),
    field(1, 31, "L", "LW", "31", "1,L", "15,LW"),
    field(1, 12, "JAN,DEC", "MAR-MAY"),
    field(0, 7, "MON-FRI", "5L", "1#2", "SAT,SUN", "TUE#5", "0L,3"),
).map(" ".join)
starts = st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1))


def parsed(text: str) -> Cron:
    """What is refused, such as 31 February, is not compared."""
    try:
        return Cron.parse(text)
    except CronInvalid:
        assume(False)
        raise


@settings(max_examples=100, deadline=None)
@given(expressions, starts)
def test_an_expression_gives_what_cronsim_gives_in_utc(text: str, start: datetime) -> None:
    """Cronsim starts strictly after its datetime, a series at its start.

    The text is in its normal form: cronsim misreads a stepped range of one, such as 1-1/2.
    """
    cron = parsed(text)
    expected = list(islice(CronSim(cron.text, start - timedelta(microseconds=1)), 10))
    start = start if start.microsecond == 0 else start.replace(microsecond=0) + timedelta(seconds=1)
    series = Series(rule=cron, start_local=start, zone="UTC")
    if not expected:  # the last weekday of the month on a Sunday: cronsim gives up after 50 years
        with pytest.raises(RuleExhausted):
            series.next(Cursor(), 10)
        return
    assert [one.local for one in series.next(Cursor(), 10)] == expected


@settings(max_examples=60, deadline=None)
@given(expressions, starts, st.integers(0, 400))
def test_an_expression_gives_what_a_scan_of_its_minutes_gives(
    text: str, start: datetime, days: int
) -> None:
    """`cronsim` reads the fields for us as well: this reads them again. From any cursor."""
    series = Series(rule=parsed(text), start_local=start, zone="UTC", max_steps=2_000)
    begins = start + timedelta(days=days)
    end = begins + timedelta(days=40)
    try:
        found = series.next(series.first_after(begins.replace(tzinfo=UTC)), 40)
    except RuleExhausted:
        found = []
    expected = occurrences(text, begins, end)
    assert [one.local for one in found if one.local <= end] == expected[:40]


def test_a_wildcard_hour_started_in_a_repeated_hour_takes_its_second_pass() -> None:
    """From the first 02:30 on, 02:00 is still ahead: once."""
    series = Series(
        rule=Cron.parse("0 * * * *"), start_local=datetime(2026, 10, 25, 2, 30), zone="Europe/Paris"
    )
    assert [one.key for one in series.next(Cursor(), 2)] == ["20261025T020000~1", "20261025T030000"]
    early = series.first_after(datetime(1999, 1, 1, tzinfo=UTC))
    assert series.next(early, 2) == series.next(Cursor(), 2)


@pytest.mark.parametrize("zone", ["Europe/Paris", "Australia/Lord_Howe", "America/St_Johns"])
@pytest.mark.parametrize("text", ["0 * * * *", "*/20 * * * *", "15,45 */2 * * *"])
def test_a_wildcard_hour_takes_every_real_hour(zone: str, text: str) -> None:
    """A year of instants, against asking the clock at every minute; the policies have no say."""
    cron = Cron.parse(text)
    series = Series(
        rule=cron,
        start_local=datetime(2026, 3, 1),
        zone=zone,
        policies=CalendarPolicies(overlap=Overlap.LATER),
    )
    found = series.next(Cursor(), 12_000)
    at, expected = found[0].instant, []
    wanted = {(time.hour, time.minute) for time in cron.times}
    from_zone = series._zone
    while at <= found[-1].instant:
        shown = at.astimezone(from_zone)
        if (shown.hour, shown.minute) in wanted:
            expected.append(at)
        at += timedelta(minutes=5)
    assert [one.instant for one in found] == expected
    assert len({one.key for one in found}) == len(found)
    assert all(one.instant.tzinfo is UTC and one.note is None for one in found)

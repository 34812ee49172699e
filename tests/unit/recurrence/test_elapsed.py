"""HOURLY, MINUTELY and SECONDLY around transitions, against asking the clock second by second."""

from datetime import UTC, datetime, timedelta

import pytest

from reminders.recurrence import Cursor, Rule, Series, Work, zone

PARIS = "Europe/Paris"
LORD_HOWE = "Australia/Lord_Howe"


def scanned(rule: Rule, start: datetime, name: str, count: int) -> list[datetime]:
    """Every unit of real time from the start on, limited and expanded by asking the clock."""
    unit = {"HOURLY": 3600, "MINUTELY": 60, "SECONDLY": 1}[rule.freq]
    tz = zone(name)
    minutes, seconds = rule.by_minute, rule.by_second
    expands = (unit == 3600 and (minutes or seconds)) or (unit == 60 and bool(seconds))
    began, shown = start, start.astimezone(tz)
    if expands:
        into = shown.second if unit == 60 else shown.minute * 60 + shown.second
        began -= timedelta(seconds=into)
    found: list[datetime] = []
    while len(found) < count:
        for second in range(unit) if expands else (0,):
            at = began + timedelta(seconds=second)
            clock = at.astimezone(tz)
            wanted = at >= start and (not rule.by_hour or clock.hour in rule.by_hour)
            if expands:
                wanted &= clock.second in (seconds or (shown.second,))
                if unit == 3600:
                    wanted &= clock.minute in (minutes or (shown.minute,))
            wanted &= not minutes or clock.minute in minutes
            wanted &= not seconds or clock.second in seconds
            wanted &= not rule.by_day or any(day.weekday == clock.weekday() for day in rule.by_day)
            if wanted:
                found.append(at)
        began += timedelta(seconds=unit * rule.interval)
    return found[:count]


@pytest.mark.parametrize(
    ("name", "start"),
    [
        (PARIS, "2026-03-28T20:30:00"),
        (PARIS, "2026-10-24T20:30:00"),
        (LORD_HOWE, "2026-10-03T20:10:00"),
        (LORD_HOWE, "2026-04-04T20:10:00"),
        ("America/St_Johns", "2005-10-29T20:00:00"),
        ("America/St_Johns", "2005-04-02T20:00:00"),
        ("Antarctica/Troll", "2026-03-28T20:00:00"),
        ("Pacific/Apia", "2011-12-29T12:00:00"),
    ],
)
@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("FREQ=HOURLY", 30),
        ("FREQ=HOURLY;INTERVAL=3", 20),
        ("FREQ=HOURLY;BYMINUTE=0,20,50", 60),
        ("FREQ=HOURLY;INTERVAL=2;BYMINUTE=15;BYSECOND=30", 20),
        ("FREQ=HOURLY;BYHOUR=0,1,2,3;BYMINUTE=0,45", 20),
        ("FREQ=HOURLY;BYDAY=SU,SA", 30),
        ("FREQ=MINUTELY;INTERVAL=90", 20),
        ("FREQ=MINUTELY;INTERVAL=7;BYHOUR=1,2,23", 60),
        ("FREQ=MINUTELY;INTERVAL=11;BYSECOND=0,30", 100),
        ("FREQ=MINUTELY;BYHOUR=1,2,3;BYMINUTE=0,30", 20),
        ("FREQ=SECONDLY;INTERVAL=900", 40),
        ("FREQ=SECONDLY;BYMINUTE=29,30;BYSECOND=59", 30),
    ],
)
def test_an_elapsing_rule_follows_real_time(name: str, start: str, text: str, count: int) -> None:
    """No hour is lost or doubled, whatever the size of the transition."""
    rule = Rule.parse(text)
    series = Series(rule=rule, start_local=datetime.fromisoformat(start), zone=name)
    found = series.next(Cursor(), count)
    begins = datetime.fromisoformat(start).replace(tzinfo=zone(name)).astimezone(UTC)
    assert [one.instant for one in found] == scanned(rule, begins, name, count)
    assert len({one.key for one in found}) == count


def test_a_transition_inside_a_period_loses_no_minute() -> None:
    """Lord Howe's first half-hour moves the periods to :30, so the second falls inside one."""
    series = Series(
        rule=Rule.parse("FREQ=HOURLY;BYMINUTE=0,10,45"),
        start_local=datetime(2026, 3, 1, 0, 10),
        zone=LORD_HOWE,
    )
    at = datetime(2026, 10, 3, 12, tzinfo=UTC)
    found = series.next(series.first_after(at), 20)
    expected: list[datetime] = []
    while len(expected) < 20:
        if at.astimezone(zone(LORD_HOWE)).minute in (0, 10, 45):
            expected.append(at)
        at += timedelta(minutes=1)
    assert [one.instant for one in found] == expected


def test_the_repeated_hour_rings_twice_under_two_identities() -> None:
    """Elapsed time: 02:30 comes by two times in the autumn night."""
    series = Series(
        rule=Rule.parse("FREQ=HOURLY"), start_local=datetime(2026, 10, 25, 1, 30), zone=PARIS
    )
    assert [one.key for one in series.next(Cursor(), 4)] == [
        "20261025T013000",
        "20261025T023000",
        "20261025T023000~1",
        "20261025T033000",
    ]


def test_a_position_is_counted_in_the_elapsed_hour() -> None:
    """BYSETPOS of HOURLY chooses from what BYMINUTE expands."""
    series = Series(
        rule=Rule.parse("FREQ=HOURLY;BYMINUTE=5,10,55;BYSETPOS=1,-1"),
        start_local=datetime(2026, 6, 1, 9, 10),
        zone=PARIS,
    )
    found = [one.local.strftime("%H:%M") for one in series.next(Cursor(), 4)]
    assert found == ["09:55", "10:05", "10:55", "11:05"]


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("FREQ=MINUTELY;BYMONTH=11", "2009-02-10T12:00"),
        ("FREQ=MINUTELY;BYMONTH=11", "2009-10-31T12:00"),
        ("FREQ=SECONDLY;INTERVAL=20;BYMONTH=11;BYHOUR=0", "2009-02-10T12:00"),
        ("FREQ=HOURLY;BYMINUTE=0;BYMONTH=11", "2009-02-10T12:00"),
    ],
)
def test_a_month_that_begins_twice_is_met_at_its_first_beginning(text: str, begins: str) -> None:
    """St John's showed the first minute of November 2009, and then an hour of October again."""
    rule = Rule.parse(text)
    name = "America/St_Johns"
    series = Series(rule=rule, start_local=datetime.fromisoformat(begins), zone=name)
    found = series.next(Cursor(), 3)
    assert found[0].local == datetime(2009, 11, 1)
    assert found[0].instant == datetime(2009, 11, 1, 2, 30, tzinfo=UTC)
    at = found[0].instant
    expected: list[datetime] = []
    while len(expected) < 3:
        shown = at.astimezone(zone(name))
        on_period = rule.freq != "HOURLY" or shown.minute == 0
        if shown.month == 11 and on_period and (not rule.by_hour or shown.hour == 0):
            expected.append(at)
        at += timedelta(seconds=20 if rule.freq == "SECONDLY" else 60)
    assert [one.instant for one in found] == expected


def test_days_that_a_part_excludes_are_passed_over_in_one_step() -> None:
    """Every second of January, asked in February: a step for months, or a day at transitions."""
    series = Series(
        rule=Rule.parse("FREQ=SECONDLY;BYMONTH=1"), start_local=datetime(2026, 2, 1), zone=PARIS
    )
    work = Work()
    (one,) = series.next(Cursor(), 1, work)
    assert one.local == datetime(2027, 1, 1)
    assert work.steps < 150

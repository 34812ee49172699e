"""RRULE texts: what is refused, and the normal form."""

from datetime import UTC, datetime

import pytest

from reminders.recurrence import Cursor, Rule, RuleInvalid, Series

REFUSED = [
    ("INTERVAL", "FREQ=DAILY;INTERVAL=0"),
    ("INTERVAL", "FREQ=DAILY;INTERVAL=-1"),
    ("INTERVAL", "FREQ=DAILY;INTERVAL=1.5"),
    ("INTERVAL", "FREQ=DAILY;INTERVAL=10000000000"),
    ("BYMONTH", "FREQ=YEARLY;BYMONTH=13"),
    ("BYMONTH", "FREQ=YEARLY;BYMONTH=0"),
    ("BYMONTH", "FREQ=YEARLY;BYMONTH=-1"),
    ("BYMONTH", "FREQ=YEARLY;BYMONTH=1,,2"),
    ("BYMONTHDAY", "FREQ=MONTHLY;BYMONTHDAY=32"),
    ("BYMONTHDAY", "FREQ=MONTHLY;BYMONTHDAY=0"),
    ("BYMONTHDAY", "FREQ=MONTHLY;BYMONTHDAY=-32"),
    ("BYMONTHDAY", "FREQ=WEEKLY;BYMONTHDAY=1"),
    ("BYMONTHDAY", "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"),
    ("BYMONTHDAY", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30,31"),
    ("BYMONTHDAY", "FREQ=YEARLY;BYMONTH=4,6,9,11;BYMONTHDAY=31"),
    ("BYYEARDAY", "FREQ=YEARLY;BYYEARDAY=367"),
    ("BYYEARDAY", "FREQ=MONTHLY;BYYEARDAY=1"),
    ("BYYEARDAY", "FREQ=DAILY;BYYEARDAY=1"),
    ("BYWEEKNO", "FREQ=YEARLY;BYWEEKNO=54"),
    ("BYWEEKNO", "FREQ=DAILY;BYWEEKNO=20"),
    ("BYHOUR", "FREQ=DAILY;BYHOUR=24"),
    ("BYMINUTE", "FREQ=DAILY;BYMINUTE=60"),
    ("BYSECOND", "FREQ=DAILY;BYSECOND=60"),
    ("BYSETPOS", "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=0"),
    ("BYSETPOS", "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=367"),
    ("BYSETPOS", "FREQ=MONTHLY;BYSETPOS=1"),
    ("BYDAY", "FREQ=WEEKLY;BYDAY=1MO"),
    ("BYDAY", "FREQ=DAILY;BYDAY=-1FR"),
    ("BYDAY", "FREQ=MONTHLY;BYDAY=6MO"),
    ("BYDAY", "FREQ=MONTHLY;BYDAY=0MO"),
    ("BYDAY", "FREQ=YEARLY;BYDAY=54MO"),
    ("BYDAY", "FREQ=YEARLY;BYMONTH=1;BYDAY=6MO"),
    ("BYDAY", "FREQ=YEARLY;BYWEEKNO=20;BYDAY=1MO"),
    ("BYDAY", "FREQ=WEEKLY;BYDAY=MON"),
    ("WKST", "FREQ=WEEKLY;WKST=1"),
    ("COUNT", "FREQ=DAILY;COUNT=-1"),
    ("COUNT", "FREQ=DAILY;COUNT=0"),
    ("COUNT", "FREQ=DAILY;COUNT=2;UNTIL=20261224T080000Z"),
    ("UNTIL", "FREQ=DAILY;UNTIL=20261224"),
    ("UNTIL", "FREQ=DAILY;UNTIL=20261224T080000"),
    ("UNTIL", "FREQ=DAILY;UNTIL=20261324T080000Z"),
    ("FREQ", "INTERVAL=2"),
    ("FREQ", "FREQ=FORTNIGHTLY"),
    ("FREQ", "FREQ=DAILY;FREQ=DAILY"),
    ("BYMONTH", "FREQ=YEARLY;BYMONTH=1;BYMONTH=2"),
    ("BYEASTER", "FREQ=YEARLY;BYEASTER=0"),
    ("X-NAME", "FREQ=DAILY;X-NAME=1"),
    ("EXRULE", "EXRULE:FREQ=DAILY"),
    ("RRULE", "FREQ=DAILY;"),
    ("RRULE", ""),
    ("EXRULE", "RRULE:FREQ=DAILY\r\nEXRULE:FREQ=WEEKLY"),
    ("DTSTART", "DTSTART:20260101T090000\nRRULE:FREQ=DAILY"),
    ("DTSTART", "DTSTART;TZID=Europe/Paris:20260101T090000\nRRULE:FREQ=DAILY"),
    ("RDATE", "RRULE:FREQ=DAILY\nRDATE;TZID=Europe/Paris:20260101T090000"),
    ("EXDATE", "RRULE:FREQ=DAILY\nEXDATE;VALUE=DATE:20260101"),
    ("RRULE", "FREQ=DAILY FREQ=DAILY"),
    ("RRULE", "FREQ=DAILY\nFREQ=WEEKLY"),
    ("MINUTELY", "MINUTELY"),
    ("FORTNIGHTLY", "fortnightly"),
    ("DAILY", "DAILY;COUNT=3"),
    ("BYDAY", "FREQ=WEEKLY;BYDAY="),
    ("RRULE", "FREQ=YEARLY;BYYEARDAY=" + ",".join(["1"] * 1000)),
    ("BYHOUR", "FREQ=DAILY;BYHOUR=\N{SUPERSCRIPT TWO}"),
]


@pytest.mark.parametrize(("part", "text"), REFUSED)
def test_a_rule_that_cannot_work_is_refused_with_the_part_and_the_reason(
    part: str, text: str
) -> None:
    """Libraries take most of these, and then give nothing or burn seconds."""
    with pytest.raises(RuleInvalid) as caught:
        Rule.parse(text)
    assert caught.value.part == part
    assert caught.value.reason


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("rrule:freq=daily;interval=1", "FREQ=DAILY"),
        ("daily", "FREQ=DAILY"),
        (" Weekly ", "FREQ=WEEKLY"),
        ("MONTHLY", "FREQ=MONTHLY"),
        ("yearly", "FREQ=YEARLY"),
        ("Hourly", "FREQ=HOURLY"),
        ("RRULE:DAILY", "FREQ=DAILY"),
        ("BYDAY=WE,+1MO,MO;FREQ=MONTHLY", "FREQ=MONTHLY;BYDAY=MO,1MO,WE"),
        ("FREQ=WEEKLY;WKST=MO;BYDAY=SU,MO", "FREQ=WEEKLY;BYDAY=MO,SU"),
        ("COUNT=010;FREQ=YEARLY;BYMONTH=02,1,1", "FREQ=YEARLY;BYMONTH=1,2;COUNT=10"),
        (
            "UNTIL=20261224T080000Z;WKST=SU;BYSETPOS=-1;BYDAY=FR;FREQ=MONTHLY;INTERVAL=2",
            "FREQ=MONTHLY;INTERVAL=2;BYDAY=FR;BYSETPOS=-1;WKST=SU;UNTIL=20261224T080000Z",
        ),
        ("FREQ=MONTHLY;BYMONTHDAY=+15,-1", "FREQ=MONTHLY;BYMONTHDAY=-1,15"),
    ],
)
def test_equal_rules_have_one_normal_form(text: str, normal: str) -> None:
    """Content hashes are made of it, so it also reads back to an equal rule."""
    rule = Rule.parse(text)
    assert rule.text == normal
    assert Rule.parse(normal) == rule


def test_count_and_until_stand_beside_the_rule() -> None:
    """A series applies them after the policies."""
    assert Rule.parse("FREQ=DAILY;COUNT=3").count == 3
    until = Rule.parse("FREQ=DAILY;UNTIL=20261224T080000Z").until
    assert until == datetime(2026, 12, 24, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "completed"),
    [
        ("FREQ=DAILY", "FREQ=DAILY;BYHOUR=9;BYMINUTE=30;BYSECOND=0"),
        ("FREQ=WEEKLY;BYHOUR=7", "FREQ=WEEKLY;BYDAY=SA;BYHOUR=7;BYMINUTE=30;BYSECOND=0"),
        ("FREQ=MONTHLY", "FREQ=MONTHLY;BYMONTHDAY=31;BYHOUR=9;BYMINUTE=30;BYSECOND=0"),
        ("FREQ=YEARLY", "FREQ=YEARLY;BYMONTH=1;BYMONTHDAY=31;BYHOUR=9;BYMINUTE=30;BYSECOND=0"),
        (
            "FREQ=YEARLY;BYWEEKNO=20",
            "FREQ=YEARLY;BYWEEKNO=20;BYDAY=SA;BYHOUR=9;BYMINUTE=30;BYSECOND=0",
        ),
        ("FREQ=HOURLY", "FREQ=HOURLY"),
    ],
)
def test_what_a_rule_leaves_open_comes_from_its_start(text: str, completed: str) -> None:
    """RFC 5545 3.3.10: information missing from the rule is taken from DTSTART."""
    assert Rule.parse(text).completed(datetime(2026, 1, 31, 9, 30)).text == completed


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("daily", ["2026-01-30", "2026-01-31", "2026-02-01"]),
        ("weekly", ["2026-01-30", "2026-02-06", "2026-02-13"]),
        ("monthly", ["2026-01-30", "2026-03-30", "2026-04-30"]),
        ("yearly", ["2026-01-30", "2027-01-30", "2028-01-30"]),
    ],
)
def test_a_word_is_a_rule_that_takes_the_rest_from_its_start(text: str, days: list[str]) -> None:
    """Time, weekday, day and month; a day that the month lacks is up to the policy."""
    series = Series(
        rule=Rule.parse(text), start_local=datetime(2026, 1, 30, 9, 15), zone="Europe/Paris"
    )
    found = [f"{one.local:%Y-%m-%dT%H:%M}" for one in series.next(Cursor(), 3)]
    assert found == [f"{day}T09:15" for day in days]

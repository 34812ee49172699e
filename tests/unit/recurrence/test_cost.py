"""What the next occurrence costs, counted in steps, and where the search for it ends."""

from datetime import UTC, datetime, timedelta

import pytest

from reminders.recurrence import MAX_STEPS, Cursor, Rule, RuleExhausted, RuleInvalid, Work
from tests.unit.recurrence.support import PARIS, TEXTS, moved, series

NOW = datetime(2026, 5, 20, 12, tzinfo=UTC)
START = datetime(2026, 5, 18, 1)
FIFTY_YEARS = timedelta(days=18_262)

# Rule, and the steps that its next occurrence after NOW may take.
AWKWARD = [
    ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO", 60),
    ("FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8", 60),
    ("FREQ=YEARLY;BYWEEKNO=53;BYDAY=SU", 2_600),
    ("FREQ=YEARLY;BYYEARDAY=366", 1_200),
    ("FREQ=YEARLY;BYMONTHDAY=1;BYDAY=MO;BYSETPOS=-1", 800),
    ("FREQ=MONTHLY;BYMONTHDAY=31;BYDAY=SU;BYMONTH=10", 80),
    ("FREQ=MONTHLY;INTERVAL=11;BYMONTHDAY=29;BYMONTH=2", 80),
    ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9,17;BYSETPOS=-2", 70),
    ("FREQ=WEEKLY;INTERVAL=26;BYDAY=TU", 30),
    ("FREQ=WEEKLY;BYDAY=MO,FR;BYMONTH=2;BYSETPOS=2", 100),
    ("FREQ=DAILY;INTERVAL=1000", 10),
    ("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO", 1_200),
    ("FREQ=DAILY;BYMONTHDAY=13;BYDAY=FR", 1_000),
    ("FREQ=DAILY;BYHOUR=9,17;BYMINUTE=0,30;BYSETPOS=-1", 20),
    ("FREQ=HOURLY;INTERVAL=777", 5),
    ("FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO;BYHOUR=0", 1_500),
    ("FREQ=HOURLY;BYMINUTE=0,59;BYSECOND=30;BYSETPOS=-1;BYHOUR=3", 30),
    ("FREQ=MINUTELY;INTERVAL=1441", 5),
    ("FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO;BYHOUR=0;BYMINUTE=0", 1_500),
    ("FREQ=SECONDLY", 5),
    ("FREQ=SECONDLY;INTERVAL=86399", 5),
    ("FREQ=SECONDLY;BYSECOND=59", 90),
    ("FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO;BYHOUR=0;BYMINUTE=0;BYSECOND=0", 1_500),
    ("0 0 29 2 1", 400),
    ("0 0 29 2 */7", 400),
    ("0 0 L 2 */7", 100),
    ("0 0 * * 1#5", 60),
    ("59 23 31 12 *", 40),
    ("* * * * *", 20),
    ("* * 29 2 *", 100),
]


@pytest.mark.parametrize("text", [text for text in TEXTS if "COUNT" not in text])
def test_the_next_occurrence_costs_the_same_for_an_old_rule(text: str) -> None:
    """A day old or 106 years: counted in steps, not in time."""
    steps = []
    for start in ("2026-05-19T01:00", "1920-05-19T01:00"):
        rule = series(text, start)
        work = Work()
        rule.next(rule.first_after(NOW), 1, work)
        steps.append(work.steps)
    allowed = 400 if "YEARLY" in text else 120
    assert max(steps) <= allowed, steps


@pytest.mark.parametrize(("text", "most"), AWKWARD)
def test_an_awkward_rule_of_fifty_years_costs_to_the_step_what_a_new_one_does(
    text: str, most: int
) -> None:
    """And names the same occurrences: in its phase, a start further back changes nothing ahead."""
    new = series(text, START.isoformat())
    periods = {"YEARLY": 52, "MONTHLY": 600, "WEEKLY": 2_600, "HOURLY": 440_000}
    freq = text.partition(";")[0].removeprefix("FREQ=")
    interval = Rule.parse(text).interval if "FREQ" in text else 1
    seconds = {"MINUTELY": 60, "SECONDLY": 1}.get(freq, 86_400)
    count = periods.get(freq, int(FIFTY_YEARS.total_seconds()) // seconds) // interval
    old = series(text, moved(text, START, count, PARIS).isoformat())
    assert START - old.start_local > timedelta(days=17_000)
    found = []
    for rule in (new, old):
        work = Work()
        planned = rule.next(rule.first_after(NOW), 1, work)
        found.append(([one.key for one in planned], work.steps))
    assert found[0] == found[1]
    assert len(found[0][0]) == 1
    assert found[0][1] <= most


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("BYMONTHDAY", "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"),
        ("BYMONTHDAY", "FREQ=HOURLY;BYMONTH=2,4;BYMONTHDAY=31"),
        ("BYMONTHDAY", "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=-30"),
        ("INTERVAL", "FREQ=SECONDLY;INTERVAL=0"),
        ("BYMONTH", "FREQ=SECONDLY;BYMONTH=13"),
        ("BYSETPOS", "FREQ=SECONDLY;BYSETPOS=1"),
        ("BYWEEKNO", "FREQ=SECONDLY;BYWEEKNO=1"),
    ],
)
def test_a_rule_that_is_seen_to_be_barren_is_refused_by_its_part(part: str, text: str) -> None:
    """Without a step of work."""
    with pytest.raises(RuleInvalid) as caught:
        Rule.parse(text)
    assert caught.value.part == part


@pytest.mark.parametrize(
    "text",
    [
        "FREQ=YEARLY;BYMONTH=1;BYYEARDAY=200",
        "FREQ=YEARLY;BYWEEKNO=30;BYMONTH=1;BYDAY=MO",
        "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=300",
        "FREQ=WEEKLY;BYDAY=MO;BYSETPOS=2",
        "FREQ=DAILY;INTERVAL=7;BYDAY=TU",
        "FREQ=DAILY;INTERVAL=7;BYDAY=TU;BYMONTH=1",
        "FREQ=HOURLY;INTERVAL=24;BYHOUR=5",
        "FREQ=SECONDLY;INTERVAL=60;BYSECOND=3",
        "FREQ=SECONDLY;INTERVAL=86400;BYHOUR=3",
        "FREQ=MINUTELY;INTERVAL=1440;BYMINUTE=7",
        "0 0 */31 * 1#2",
    ],
)
def test_a_barren_rule_stops_at_the_bound_of_work(text: str) -> None:
    """Parts that contradict each other in ways that can't be seen in advance."""
    for bound in (5_000, MAX_STEPS):
        work = Work()
        with pytest.raises(RuleExhausted) as caught:
            series(text, "2026-06-01T09:00:00", max_steps=bound).next(Cursor(), 1, work)
        assert caught.value.steps == bound
        assert caught.value.part == ("RRULE" if "FREQ" in text else "cron")
        assert work.steps <= bound + 400


def test_what_was_found_before_the_bound_is_not_lost() -> None:
    """Only a call that finds nothing at all raises."""
    rule = series(
        "FREQ=DAILY;INTERVAL=7;BYDAY=TU",
        "2026-06-01T09:00",
        rdates=(datetime(2026, 5, 1, 9),),
        max_steps=1_000,
    )
    (one,) = rule.next(Cursor(), 3)
    with pytest.raises(RuleExhausted):
        rule.next(one.cursor, 1)


def test_a_rule_ends_with_the_calendar() -> None:
    """Beyond the year 9998 nothing can be computed: the series ends and does not fail."""
    rule = series("FREQ=DAILY", "9998-12-30T09:00")
    assert len(rule.next(Cursor(), 9)) == 2
    far = series("FREQ=YEARLY;INTERVAL=999999999", "2026-01-01T09:00")
    assert len(far.next(Cursor(), 9)) == 1
    never = series("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=1;BYDAY=5MO", "2026-01-01T09:00")
    assert never.next(Cursor(), 9) == []
    hours = series("FREQ=HOURLY;INTERVAL=999999999", "2026-01-01T09:00")
    assert len(hours.next(Cursor(), 9)) == 1

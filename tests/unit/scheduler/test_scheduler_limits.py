"""What an operator tightens: how often a rule may ring, and how far ahead anything may lie."""

from datetime import datetime, timedelta

import pytest
from tocsin.v1 import reminder_service_pb2 as pb

from reminders.errors import InvalidRequest
from reminders.lifecycle.request_limits import RequestLimits
from scheduler.validation import Validator

NOW = datetime.fromisoformat("2026-11-20T12:00:00+00:00")
CALM = RequestLimits(min_interval=timedelta(minutes=1), horizon=timedelta(days=30))


def create(limits: RequestLimits, **recurrence: str) -> list[tuple[str, str, str]]:
    """Field, reason and description of what is wrong with a create of this rule."""
    request = pb.CreateReminderRequest()
    request.reminder.user_id = "u1"
    request.reminder.channels.add().webhook.url = "https://hooks.example.com/x"
    asked = request.reminder.schedule.recurrence
    for name, value in ({"time_zone": "Europe/Paris"} | recurrence).items():
        setattr(asked, name, value)
    return violations(limits, request)


def violations(
    limits: RequestLimits, request: pb.CreateReminderRequest
) -> list[tuple[str, str, str]]:
    """Empty if it is taken."""
    try:
        Validator(allow_loopback_http=False, limits=limits).create(request, NOW)
    except InvalidRequest as error:
        return [(one.field, one.reason, one.description) for one in error.violations]
    return []


START = "2026-11-30T09:00"
RRULE = "reminder.schedule.recurrence.rrule"


@pytest.mark.parametrize(
    ("rrule", "named"),
    [
        ("FREQ=SECONDLY", "2026-11-30T09:00:00 and 2026-11-30T09:00:01"),
        ("FREQ=SECONDLY;INTERVAL=59", "2026-11-30T09:00:00 and 2026-11-30T09:00:59"),
        ("FREQ=DAILY;BYSECOND=0,30", "2026-11-30T09:00:00 and 2026-11-30T09:00:30"),
        ("FREQ=MONTHLY;BYMONTHDAY=31;BYSECOND=0,30", "2026-12-31T09:00:00"),
        ("FREQ=MONTHLY;BYMONTH=2;BYSECOND=0,30", "2027-02-28T09:00:00 and"),
        ("FREQ=MINUTELY;BYSECOND=0,59;COUNT=1", "2026-11-30T09:00:00 and 2026-11-30T09:00:59"),
    ],
)
def test_a_rule_that_rings_too_often_is_refused_with_two_of_its_times(
    rrule: str, named: str
) -> None:
    """With the field, the limit and the remedy; and taken where nothing is tightened."""
    ((field, reason, description),) = create(CALM, rrule=rrule, start=START)
    assert (field, reason) == (RRULE, "RULE_TOO_FREQUENT")
    assert named in description
    assert "at least 60 s must lie between two occurrences here; space them out" in description
    assert create(RequestLimits(), rrule=rrule, start=START) == []


@pytest.mark.parametrize(
    "rrule",
    [
        "FREQ=MINUTELY",
        "FREQ=SECONDLY;INTERVAL=60",
        "FREQ=SECONDLY;BYSECOND=0",
        "FREQ=MINUTELY;BYSECOND=30",
        "hourly",
        "FREQ=WEEKLY;BYDAY=MO;BYHOUR=0,23;BYMINUTE=0,59",
    ],
)
def test_a_rule_at_the_limit_is_taken(rrule: str) -> None:
    """Also one that only its parts together slow down."""
    assert create(CALM, rrule=rrule, start=START) == []


def test_cron_is_held_to_the_same_interval() -> None:
    """With or without a start."""
    hourly = RequestLimits(min_interval=timedelta(hours=1))
    for start in (START, ""):
        ((field, reason, _),) = create(hourly, cron="0,30 9 * * *", start=start)
        assert (field, reason) == ("reminder.schedule.recurrence.cron", "RULE_TOO_FREQUENT")
        assert create(hourly, cron="0 * * * *", start=start) == []


def test_a_horizon_holds_for_every_kind_of_schedule() -> None:
    """The description names the limit that is in force."""
    request = pb.CreateReminderRequest()
    request.reminder.user_id = "u1"
    request.reminder.channels.add().webhook.url = "https://hooks.example.com/x"
    schedule = request.reminder.schedule
    found = create(CALM, rrule="daily", start="2026-12-21T09:00")
    schedule.at.FromDatetime(NOW + timedelta(days=31))
    found += violations(CALM, request)
    schedule.after.FromTimedelta(timedelta(days=31))
    found += violations(CALM, request)
    schedule.local.date, schedule.local.time = "2026-12-21", "12:00"
    schedule.local.time_zone = "Europe/Paris"
    found += violations(CALM, request)
    where = "reminder.schedule."
    assert [(field.removeprefix(where), reason) for field, reason, _ in found] == [
        ("recurrence.start", "TIME_TOO_FAR"),
        ("at", "TIME_TOO_FAR"),
        ("after", "TIME_TOO_FAR"),
        ("local.date", "TIME_TOO_FAR"),
    ]
    assert all("30 days" in text and "create it later" in text for _, _, text in found)
    assert violations(RequestLimits(horizon=timedelta(days=32)), request) == []

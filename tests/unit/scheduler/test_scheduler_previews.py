"""PreviewOccurrences: what is asked, what is refused, and that other calls go on."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from tocsin.v1 import reminder_pb2
from tocsin.v1 import reminder_service_pb2 as pb

from reminders.clock import ManualClock
from reminders.errors import InvalidRequest
from reminders.lifecycle.previewing import DEFAULT_COUNT
from reminders.model.definition import Policies, Recurring
from reminders.recurrence import Gap, MissingDay
from scheduler.admission import Overloaded
from scheduler.previews import Previews
from scheduler.validation import Validator

RequestOf = Callable[..., pb.CreateReminderRequest]


def asks(**recurrence: Any) -> pb.PreviewOccurrencesRequest:
    """A daily rule in Paris, with changes; None leaves a field out."""
    given = {"rrule": "FREQ=DAILY", "start": "2026-12-07T09:00", "time_zone": "Europe/Paris"}
    fields = {name: value for name, value in (given | recurrence).items() if value is not None}
    return pb.PreviewOccurrencesRequest(
        schedule=reminder_pb2.Schedule(recurrence=reminder_pb2.Recurrence(**fields))
    )


def test_the_normal_form_is_that_of_a_create(
    validator: Validator, request_of: RequestOf, now: datetime
) -> None:
    """The same schedule and policies, read once for a create and once for a preview."""
    request = asks(rrule="rrule:byday=tu,mo;freq=weekly;count=3", exdates=["2026-12-08T09:00"])
    request.policies.gap = reminder_pb2.GAP_POLICY_SKIP
    request.policies.missing_day = reminder_pb2.MISSING_DAY_POLICY_CLAMP
    create = request_of()
    create.reminder.schedule.CopyFrom(request.schedule)
    create.reminder.policies.CopyFrom(request.policies)
    asked, created = validator.preview(request, now), validator.create(create, now).definition
    assert (asked.schedule, asked.policies) == (created.schedule, created.policies)
    assert isinstance(asked.schedule, Recurring)
    assert asked.policies == Policies(gap=Gap.SKIP, missing_day=MissingDay.CLAMP)
    assert (asked.after, asked.count) == (None, DEFAULT_COUNT)


def test_every_violation_is_told_under_the_names_of_this_request(
    validator: Validator, now: datetime
) -> None:
    """No `reminder.` before them, and none hides another."""
    request = asks(
        rrule="FREQ=DAILY;BYMONTH=13",
        start="tomorrow",
        time_zone="Europe/Pari",
        exdates=["2026-12-08T09:00", "never"],
        max_occurrences=-1,
    )
    request.schedule.recurrence.until.seconds = 10**12
    request.policies.holiday_calendar = "XX"
    request.after.nanos = -1
    request.count = 1_001
    with pytest.raises(InvalidRequest) as caught:
        validator.preview(request, now)
    assert [(one.field, one.reason) for one in caught.value.violations] == [
        ("policies.holiday_calendar", "HOLIDAY_CALENDAR_UNKNOWN"),
        ("schedule.recurrence.rrule", "RULE_INVALID"),
        ("schedule.recurrence.start", "VALUE_INVALID"),
        ("schedule.recurrence.time_zone", "ZONE_UNKNOWN"),
        ("schedule.recurrence.exdates[1]", "VALUE_INVALID"),
        ("schedule.recurrence.max_occurrences", "VALUE_INVALID"),
        ("schedule.recurrence.until", "VALUE_INVALID"),
        ("after", "VALUE_INVALID"),
        ("count", "VALUE_INVALID"),
    ]


def test_an_empty_request_says_what_belongs_there(validator: Validator, now: datetime) -> None:
    """A schedule, by its kinds."""
    with pytest.raises(InvalidRequest) as caught:
        validator.preview(pb.PreviewOccurrencesRequest(), now)
    (violation,) = caught.value.violations
    assert (violation.field, violation.reason) == ("schedule", "FIELD_REQUIRED")


@pytest.mark.parametrize("count", [-1, 1_001])
def test_a_count_has_bounds(validator: Validator, now: datetime, count: int) -> None:
    """1 to 1,000."""
    request = asks()
    request.count = count
    with pytest.raises(InvalidRequest, match="count: must be from 1 to 1000"):
        validator.preview(request, now)


def test_a_time_is_in_the_past_as_seen_from_after(validator: Validator, now: datetime) -> None:
    """`after` stands for the create: what is past now may have been ahead then."""
    request = pb.PreviewOccurrencesRequest()
    request.schedule.at.FromDatetime(now - timedelta(days=2))
    with pytest.raises(InvalidRequest, match="was 2 days"):
        validator.preview(request, now)
    request.after.FromDatetime(now - timedelta(days=3))
    assert validator.preview(request, now).after == now - timedelta(days=3)


def test_a_rule_may_be_looked_at_from_long_before_its_start(
    validator: Validator, now: datetime
) -> None:
    """Ten years ahead are counted from now or from `after`, whichever is later."""
    request = asks()
    request.after.FromDatetime(datetime(2000, 1, 1))  # noqa: DTZ001  protobuf means UTC
    assert validator.preview(request, now).count == DEFAULT_COUNT
    far = asks(start="2040-01-01T09:00")
    with pytest.raises(InvalidRequest, match="more than ten years"):
        validator.preview(far, now)
    far.after.FromDatetime(datetime(2039, 1, 1))  # noqa: DTZ001  protobuf means UTC
    assert validator.preview(far, now).after == datetime.fromisoformat("2039-01-01T00:00Z")


async def test_other_calls_go_on_while_a_costly_rule_is_computed(
    validator: Validator, now: datetime
) -> None:
    """A thousand occurrences leave the loop free all along."""
    previews = Previews(ManualClock(now), validator)
    request = asks(rrule="FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29")
    request.count = 1_000
    call = asyncio.create_task(previews.answer(request), name="preview")
    turns = 0
    while not call.done():
        await asyncio.sleep(0)
        turns += 1
    response = await call
    assert len(response.occurrences) == len(response.left_out) == 1_000
    assert turns > 50


async def test_one_preview_is_computed_at_a_time(validator: Validator, now: datetime) -> None:
    """Several costly ones take turns, and each is answered."""
    previews = Previews(ManualClock(now), validator)
    answers = await asyncio.gather(*(previews.answer(asks()) for _ in range(5)))
    assert [len(each.occurrences) for each in answers] == [DEFAULT_COUNT] * 5


async def test_whose_turn_does_not_come_in_time_is_told_to_come_back(
    validator: Validator, now: datetime
) -> None:
    """Without patience: whoever comes while another one is computed. It is not refused for good."""
    previews = Previews(ManualClock(now), validator, patience=timedelta(0))
    answers = await asyncio.gather(
        *(previews.answer(asks()) for _ in range(3)), return_exceptions=True
    )
    assert [type(each) for each in answers] == [
        pb.PreviewOccurrencesResponse,
        Overloaded,
        Overloaded,
    ]
    assert "preview" in str(answers[1])
    assert len((await previews.answer(asks())).occurrences) == DEFAULT_COUNT

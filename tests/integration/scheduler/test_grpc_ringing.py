"""TriggerReminder and BackfillReminder over gRPC, on the real use cases in memory."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import grpc
from tocsin.v1 import reminder_pb2
from tocsin.v1 import reminder_service_pb2 as pb

from reminders.clock import ManualClock

if TYPE_CHECKING:
    from tocsin.v1.reminder_service_pb2_grpc import ReminderServiceAsyncStub as Stub

RequestOf = Callable[..., pb.CreateReminderRequest]
Failing = Callable[[Awaitable[object]], Awaitable[Any]]


async def rule(whole: "Stub", request_of: RequestOf) -> str:
    """Every hour from the first hour after noon of 20 November on."""
    request = request_of()
    recurrence = request.reminder.schedule.recurrence
    recurrence.rrule, recurrence.time_zone = "FREQ=HOURLY", "UTC"
    recurrence.start = "2026-11-20T13:00"
    return (await whole.CreateReminder(request)).reminder.reminder_id


def past(reminder_id: str, start: datetime, end: datetime | None = None, **fields: Any) -> Any:
    """A request."""
    request = pb.BackfillReminderRequest(reminder_id=reminder_id, **fields)
    request.start_time.FromDatetime(start)
    if end is not None:
        request.end_time.FromDatetime(end)
    return request


async def test_a_trigger_answers_the_occurrence_and_a_repeat_the_same(
    whole: "Stub", request_of: RequestOf
) -> None:
    """Its id ends in Z; what is planned stays as it is."""
    name = await rule(whole, request_of)
    request = pb.TriggerReminderRequest(reminder_id=name, request_id="q")
    first = (await whole.TriggerReminder(request)).occurrence
    assert first.occurrence_id == "20261120T120000Z"
    assert first.origin == reminder_pb2.OCCURRENCE_ORIGIN_TRIGGER
    assert first.status == reminder_pb2.OCCURRENCE_STATUS_PLANNED
    assert first.fire_time.ToJsonString() == "2026-11-20T12:00:00Z"
    assert (await whole.TriggerReminder(request)).occurrence == first
    got = await whole.GetReminder(pb.GetReminderRequest(reminder_id=name))
    assert [o.occurrence_id for o in got.next_occurrences] == [
        "20261120T130000",
        "20261120T140000",
    ]
    cancelled = await whole.CancelReminder(pb.CancelReminderRequest(reminder_id=name))
    assert "20261120T120000Z" in {fate.occurrence_id for fate in cancelled.occurrences}


async def test_a_cancelled_one_is_not_triggered(
    whole: "Stub", request_of: RequestOf, failing: Failing
) -> None:
    """FAILED_PRECONDITION, with its status."""
    name = await rule(whole, request_of)
    await whole.CancelReminder(pb.CancelReminderRequest(reminder_id=name))
    failure = await failing(whole.TriggerReminder(pb.TriggerReminderRequest(reminder_id=name)))
    assert failure.code is grpc.StatusCode.FAILED_PRECONDITION
    assert (failure.info.reason, failure.info.metadata["status"]) == ("ALREADY_ENDED", "cancelled")


async def test_a_backfill_answers_what_the_range_holds(
    whole: "Stub", request_of: RequestOf, clock: ManualClock
) -> None:
    """A dry run and the real one alike; the repeat of a request is the same."""
    name = await rule(whole, request_of)
    begun = clock.now()
    clock.advance(timedelta(hours=3))
    dry = await whole.BackfillReminder(past(name, begun, validate_only=True))
    assert (dry.occurrence_count, dry.occurrence_count_capped) == (2, False)
    assert [o.occurrence_id for o in dry.occurrences] == ["20261120T130000", "20261120T140000"]
    assert dry.occurrences[0].origin == reminder_pb2.OCCURRENCE_ORIGIN_BACKFILL
    assert await whole.BackfillReminder(past(name, begun, request_id="q")) == dry
    clock.advance(timedelta(minutes=1))
    assert await whole.BackfillReminder(past(name, begun, request_id="q")) == dry


async def test_a_range_that_makes_no_sense_is_refused_by_field(
    whole: "Stub", request_of: RequestOf, clock: ManualClock, failing: Failing
) -> None:
    """Missing, ahead, empty, too long."""
    name = await rule(whole, request_of)
    now, hour, year = clock.now(), timedelta(hours=1), timedelta(days=366)
    missing = pb.BackfillReminderRequest(reminder_id=name)
    asked = {
        "start_time FIELD_REQUIRED": missing,
        "end_time TIME_AHEAD": past(name, now - hour, now + hour),
        "start_time RANGE_INVALID": past(name, now - hour, now - hour),
    }
    for expected, request in asked.items():
        failure = await failing(whole.BackfillReminder(request))
        (violation,) = failure.bad_request.field_violations
        assert f"{violation.field} {violation.reason}" == expected
    failure = await failing(whole.BackfillReminder(past(name, now - year - hour)))
    assert failure.info.reason == "RANGE_INVALID"
    assert (await whole.BackfillReminder(past(name, now - year))).occurrence_count == 0


async def test_reminders_that_have_no_past_range_are_refused(
    whole: "Stub", request_of: RequestOf, clock: ManualClock, failing: Failing
) -> None:
    """A one-shot, a paused one, another range for the same request."""
    since = clock.now()
    once = (await whole.CreateReminder(request_of())).reminder.reminder_id
    clock.advance(timedelta(hours=2))
    failure = await failing(whole.BackfillReminder(past(once, since)))
    assert failure.code is grpc.StatusCode.FAILED_PRECONDITION
    assert failure.info.reason == "NOT_RECURRING"
    name = await rule(whole, request_of)
    clock.advance(timedelta(hours=2))
    await whole.BackfillReminder(past(name, since, request_id="q"))
    other = past(name, since + timedelta(minutes=1), request_id="q")
    failure = await failing(whole.BackfillReminder(other))
    assert (failure.code, failure.info.reason) == (
        grpc.StatusCode.ALREADY_EXISTS,
        "REQUEST_ID_CONFLICT",
    )
    await whole.PauseReminder(pb.PauseReminderRequest(reminder_id=name))
    failure = await failing(whole.BackfillReminder(past(name, since)))
    assert failure.info.reason == "REMINDER_PAUSED"

"""Update, pause and resume over gRPC: what they answer, and what Get, List and the ledger show."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import grpc
from tocsin.v1 import reminder_pb2
from tocsin.v1 import reminder_service_pb2 as pb

from reminders.clock import ManualClock

if TYPE_CHECKING:
    from tocsin.v1.reminder_service_pb2_grpc import ReminderServiceAsyncStub as Stub

RequestOf = Callable[..., pb.CreateReminderRequest]
Failing = Callable[[Awaitable[object]], Awaitable[Any]]


async def a_rule(stub: "Stub", request_of: RequestOf, rule: str = "FREQ=HOURLY") -> Any:
    """A rule of u1 that begins an hour from now."""
    request = request_of()
    recurrence = request.reminder.schedule.recurrence
    recurrence.rrule, recurrence.start = rule, "2026-11-20T13:00"
    recurrence.time_zone = "UTC"
    return (await stub.CreateReminder(request)).reminder


def update(reminder_id: str, *paths: str) -> pb.UpdateReminderRequest:
    """Nothing set but its name."""
    request = pb.UpdateReminderRequest()
    request.reminder.reminder_id = reminder_id
    request.update_mask.paths.extend(paths)
    return request


async def test_an_update_answers_the_whole_reminder(whole: "Stub", request_of: RequestOf) -> None:
    """A new version and etag, the rest as it was, its occurrences too."""
    created = await a_rule(whole, request_of)
    request = update(created.reminder_id, "params", "policies.catch_up")
    request.reminder.params.update({"a": 1})
    request.reminder.policies.catch_up = reminder_pb2.CATCH_UP_POLICY_ALL
    answer = await whole.UpdateReminder(request)
    assert not answer.was_fired
    assert [fate.was_fired for fate in answer.occurrences] == [False, False]
    updated = answer.reminder
    assert (updated.version, updated.params["a"]) == (2, 1)
    assert updated.policies.catch_up == reminder_pb2.CATCH_UP_POLICY_ALL
    assert updated.policies.jitter == created.policies.jitter
    assert [one.occurrence_id for one in updated.next_occurrences] == [
        one.occurrence_id for one in created.next_occurrences
    ]
    get = pb.GetReminderRequest(reminder_id=created.reminder_id)
    assert await whole.GetReminder(get) == updated


async def test_an_update_that_can_not_be_names_the_field(
    whole: "Stub", request_of: RequestOf, failing: Failing
) -> None:
    """In the mask, or in what would come of it; nothing has changed."""
    created = await a_rule(whole, request_of)
    failure = await failing(whole.UpdateReminder(update(created.reminder_id, "group_id")))
    assert failure.code is grpc.StatusCode.INVALID_ARGUMENT
    (violation,) = failure.bad_request.field_violations
    assert violation.field == "update_mask"
    assert "group_id" in violation.description
    failure = await failing(whole.UpdateReminder(update(created.reminder_id, "channels")))
    assert [each.field for each in failure.bad_request.field_violations] == ["reminder.channels"]
    get = pb.GetReminderRequest(reminder_id=created.reminder_id)
    assert await whole.GetReminder(get) == created


async def test_an_update_of_what_has_fired_or_of_another_version_is_refused(
    whole: "Stub", request_of: RequestOf, failing: Failing, clock: ManualClock
) -> None:
    """As every change is."""
    created = await a_rule(whole, request_of)
    request = update(created.reminder_id, "labels")
    request.etag = created.etag
    await whole.UpdateReminder(request)
    failure = await failing(whole.UpdateReminder(request))
    assert failure.code is grpc.StatusCode.ABORTED
    del clock


async def test_a_paused_rule_is_shown_as_such_and_listed_no_more(
    whole: "Stub", request_of: RequestOf
) -> None:
    """With its reason; resumed, it rings as before."""
    created = await a_rule(whole, request_of)
    pause = pb.PauseReminderRequest(reminder_id=created.reminder_id, reason="on holiday")
    answer = await whole.PauseReminder(pause)
    assert not answer.was_fired
    assert len(answer.occurrences) == 2
    paused = answer.reminder
    assert (paused.status, paused.pause_reason) == (
        reminder_pb2.REMINDER_STATUS_PAUSED,
        "on holiday",
    )
    assert not paused.next_occurrences
    get = pb.GetReminderRequest(reminder_id=created.reminder_id)
    assert await whole.GetReminder(get) == paused
    page = await whole.ListReminders(pb.ListRemindersRequest(user_id="u1"))
    assert (list(page.reminders), page.total_size) == ([], 0)
    resume = pb.ResumeReminderRequest(reminder_id=created.reminder_id)
    resumed = (await whole.ResumeReminder(resume)).reminder
    assert (resumed.status, resumed.pause_reason) == (reminder_pb2.REMINDER_STATUS_SCHEDULED, "")
    assert [one.planned_time for one in resumed.next_occurrences] == [
        one.planned_time for one in created.next_occurrences
    ]
    page = await whole.ListReminders(pb.ListRemindersRequest(user_id="u1"))
    assert list(page.reminders) == [resumed]


async def test_what_fell_into_a_pause_is_in_the_ledger_as_one_run(
    whole: "Stub", request_of: RequestOf, clock: ManualClock
) -> None:
    """Behind what is planned now."""
    created = await a_rule(whole, request_of)
    await whole.PauseReminder(pb.PauseReminderRequest(reminder_id=created.reminder_id))
    clock.advance(timedelta(hours=5, minutes=1))
    await whole.ResumeReminder(pb.ResumeReminderRequest(reminder_id=created.reminder_id))
    ledger = await whole.ListOccurrences(pb.ListOccurrencesRequest(reminder_id=created.reminder_id))
    assert [one.occurrence_id for one in ledger.occurrences] == [
        "20261120T190000",
        "20261120T180000",
        "20261120T130000",
    ]
    run = ledger.occurrences[-1]
    assert (run.status, run.reason) == (reminder_pb2.OCCURRENCE_STATUS_SKIPPED, "paused")


async def test_a_cancelled_reminder_is_neither_paused_nor_resumed(
    whole: "Stub", request_of: RequestOf, failing: Failing
) -> None:
    """It has ended."""
    created = await a_rule(whole, request_of)
    await whole.CancelReminder(pb.CancelReminderRequest(reminder_id=created.reminder_id))
    for call in (
        whole.PauseReminder(pb.PauseReminderRequest(reminder_id=created.reminder_id)),
        whole.ResumeReminder(pb.ResumeReminderRequest(reminder_id=created.reminder_id)),
        whole.UpdateReminder(update(created.reminder_id, "labels")),
    ):
        failure = await failing(call)
        assert failure.code is grpc.StatusCode.FAILED_PRECONDITION
        assert failure.info.reason == "ALREADY_ENDED"

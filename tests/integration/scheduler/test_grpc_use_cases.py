"""The whole service in memory: gRPC, validation and the real use cases, from the caller's side."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import grpc
from tocsin.v1 import reminder_pb2
from tocsin.v1 import reminder_service_pb2 as pb

if TYPE_CHECKING:
    from tocsin.v1.reminder_service_pb2_grpc import ReminderServiceAsyncStub as Stub

RequestOf = Callable[..., pb.CreateReminderRequest]
Failing = Callable[[Awaitable[object]], Awaitable[Any]]


async def test_a_reminder_is_stored_as_answered(whole: "Stub", request_of: RequestOf) -> None:
    """Create, Get and List agree; what is shown, sent again, is the same by its dedup_key."""
    request = request_of()
    request.reminder.dedup_key = "k"
    local = request.reminder.schedule.local
    local.date, local.time, local.time_zone = "2026-12-24", "09:00:00", "Europe/Paris"
    request.reminder.policies.jitter.seconds = 2
    created = await whole.CreateReminder(request)
    name = pb.GetReminderRequest(reminder_id=created.reminder.reminder_id)
    assert await whole.GetReminder(name) == created.reminder
    page = await whole.ListReminders(pb.ListRemindersRequest(user_id="u1"))
    assert list(page.reminders) == [created.reminder]
    (planned,) = created.reminder.next_occurrences
    assert planned.planned_local == "2026-12-24T09:00:00"
    again = await whole.CreateReminder(pb.CreateReminderRequest(reminder=created.reminder))
    assert again.deduplicated
    assert again.reminder == created.reminder


async def test_a_key_stands_for_one_content(
    whole: "Stub", request_of: RequestOf, failing: Failing
) -> None:
    """The params' order and spelling are no other content; another text is."""
    request = request_of(request_id="q")
    request.reminder.params.update({"b": 1, "a": 2.0})
    first = await whole.CreateReminder(request)
    request.reminder.params.Clear()
    request.reminder.params.update({"a": 2, "text": "tea", "b": 1.0})
    second = await whole.CreateReminder(request)
    assert second.deduplicated
    assert second.reminder.reminder_id == first.reminder.reminder_id
    request.reminder.params.update({"text": "coffee"})
    failure = await failing(whole.CreateReminder(request))
    assert failure.code is grpc.StatusCode.ALREADY_EXISTS
    assert failure.info.reason == "REQUEST_ID_CONFLICT"
    assert failure.info.metadata["reminder_id"] == first.reminder.reminder_id


async def test_changes_go_by_etag(whole: "Stub", request_of: RequestOf, failing: Failing) -> None:
    """A reschedule makes a new version; the old etag is ABORTED; a cancel ends it for good."""
    created = (await whole.CreateReminder(request_of())).reminder
    move = pb.RescheduleReminderRequest(reminder_id=created.reminder_id, etag=created.etag)
    move.schedule.after.seconds = 7_200
    moved = (await whole.RescheduleReminder(move)).reminder
    assert (moved.version, len(moved.next_occurrences)) == (2, 1)
    assert moved.etag != created.etag
    cancel = pb.CancelReminderRequest(reminder_id=created.reminder_id, etag=created.etag)
    failure = await failing(whole.CancelReminder(cancel))
    assert failure.code is grpc.StatusCode.ABORTED
    assert failure.info.metadata["actual_version"] == "2"
    cancel.etag = moved.etag
    cancelled = await whole.CancelReminder(cancel)
    assert not cancelled.was_fired
    assert cancelled.reminder.status == reminder_pb2.REMINDER_STATUS_CANCELLED
    move.etag = ""
    failure = await failing(whole.RescheduleReminder(move))
    assert failure.code is grpc.StatusCode.FAILED_PRECONDITION
    assert failure.info.reason == "ALREADY_ENDED"


async def test_nothing_ahead_is_the_callers_error(
    whole: "Stub", request_of: RequestOf, failing: Failing
) -> None:
    """A rule that has ended, by create and by reschedule, each with its own path."""
    request = request_of()
    recurrence = request.reminder.schedule.recurrence
    recurrence.rrule = "FREQ=DAILY;UNTIL=20200103T000000Z"
    recurrence.start, recurrence.time_zone = "2020-01-01T09:00", "Europe/Paris"
    failure = await failing(whole.CreateReminder(request))
    assert failure.code is grpc.StatusCode.INVALID_ARGUMENT
    assert failure.bad_request.field_violations[0].field.startswith("reminder.schedule")
    created = (await whole.CreateReminder(request_of())).reminder
    move = pb.RescheduleReminderRequest(reminder_id=created.reminder_id)
    move.schedule.recurrence.CopyFrom(recurrence)
    failure = await failing(whole.RescheduleReminder(move))
    assert failure.code is grpc.StatusCode.INVALID_ARGUMENT
    assert failure.bad_request.field_violations[0].field.startswith("schedule")


async def test_validate_only_changes_nothing(whole: "Stub", request_of: RequestOf) -> None:
    """It answers as if, without an id."""
    created = await whole.CreateReminder(request_of(validate_only=True))
    assert created.reminder.reminder_id == ""
    assert created.reminder.etag == ""
    assert len(created.reminder.next_occurrences) == 1
    page = await whole.ListReminders(pb.ListRemindersRequest(user_id="u1"))
    assert (len(page.reminders), page.total_size) == (0, 0)


async def test_a_stream_fills_a_list_that_pages_through(
    whole: "Stub", request_of: RequestOf
) -> None:
    """Every acknowledged one is listed once, soonest first."""
    stream = whole.StreamCreateReminders()
    for number in range(1, 4):
        batch = pb.BatchCreateRemindersRequest(batch_number=number)
        for position in range(10):
            request = request_of()
            request.reminder.schedule.after.seconds = 60 * (position * 3 + number)
            batch.requests.append(request)
        await stream.write(batch)
    await stream.done_writing()
    made = [
        result.created.reminder.reminder_id async for answer in stream for result in answer.results
    ]
    assert len(set(made)) == 30
    listed: list[reminder_pb2.Reminder] = []
    token = ""
    while not listed or token:
        asked = pb.ListRemindersRequest(user_id="u1", page_size=7, page_token=token)
        page = await whole.ListReminders(asked)
        assert page.total_size == 30
        listed.extend(page.reminders)
        token = page.next_page_token
    assert {one.reminder_id for one in listed} == set(made)
    seconds = [one.next_occurrences[0].fire_time.seconds for one in listed]
    assert seconds == sorted(seconds)


async def test_ledger_shows_what_is_planned(whole: "Stub", request_of: RequestOf) -> None:
    """Before the fire there is a planned occurrence and no delivery."""
    created = (await whole.CreateReminder(request_of())).reminder
    reminder_id = created.reminder_id
    occurrences = await whole.ListOccurrences(pb.ListOccurrencesRequest(reminder_id=reminder_id))
    (planned,) = occurrences.occurrences
    assert planned.status == reminder_pb2.OCCURRENCE_STATUS_PLANNED
    assert planned.occurrence_id == created.next_occurrences[0].occurrence_id
    deliveries = await whole.ListDeliveries(pb.ListDeliveriesRequest(reminder_id=reminder_id))
    assert not deliveries.deliveries
    assert not deliveries.next_page_token


async def test_explain_answers_before_anything_fired(whole: "Stub", request_of: RequestOf) -> None:
    """The promise, the policy that made the instant, and who owns what comes next."""
    request = request_of()
    local = request.reminder.schedule.local
    local.date, local.time, local.time_zone = "2027-03-28", "02:30", "Europe/Paris"
    created = await whole.CreateReminder(request)
    name = created.reminder.reminder_id
    answer = await whole.ExplainReminder(pb.ExplainReminderRequest(reminder_id=name))
    assert answer.reminder == created.reminder
    (one,) = answer.occurrences
    assert one.occurrence.planned_local == "2027-03-28T03:00:00"
    assert one.policy == "gap_next_valid"
    assert one.next_action.owner == answer.next_action.owner == "scanner"
    assert one.next_action.time == one.occurrence.fire_time


async def test_explain_and_replay_are_checked_field_by_field(
    whole: "Stub", request_of: RequestOf, failing: Failing
) -> None:
    """Limits, ids, and what was never attempted."""
    created = await whole.CreateReminder(request_of())
    name = created.reminder.reminder_id
    occurrence_id = created.reminder.next_occurrences[0].occurrence_id
    calls: list[tuple[Awaitable[object], str]] = [
        (whole.ExplainReminder(pb.ExplainReminderRequest()), "reminder_id"),
        (
            whole.ExplainReminder(
                pb.ExplainReminderRequest(reminder_id=name, occurrence_limit=101)
            ),
            "occurrence_limit",
        ),
        (
            whole.ReplayOccurrence(
                pb.ReplayOccurrenceRequest(reminder_id=name, occurrence_id="today")
            ),
            "occurrence_id",
        ),
        (
            whole.ReplayOccurrence(
                pb.ReplayOccurrenceRequest(reminder_id=name, occurrence_id=occurrence_id)
            ),
            "occurrence_id",
        ),
    ]
    for call, field in calls:
        failure = await failing(call)
        assert failure.code is grpc.StatusCode.INVALID_ARGUMENT
        assert failure.bad_request.field_violations[0].field == field

"""Every call through a real server and the generated client."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import grpc
from structlog.testing import capture_logs
from tocsin.v1 import reminder_pb2
from tocsin.v1 import reminder_service_pb2 as pb

from reminders.errors import KeyConflict, StoreUnavailable
from reminders.model.definition import After
from scheduler.settings import SchedulerSettings

if TYPE_CHECKING:
    from tocsin.v1.reminder_service_pb2_grpc import ReminderServiceAsyncStub as Stub

RequestOf = Callable[..., pb.CreateReminderRequest]
Failing = Callable[[Awaitable[object]], Awaitable[Any]]


async def test_create_answers_the_stored_reminder(
    stub: "Stub", held: Any, request_of: RequestOf
) -> None:
    """Complete, with its occurrence; request_id and validate_only reach the use case."""
    request = request_of(request_id="q", validate_only=True)
    created = await stub.CreateReminder(request)
    assert created.reminder.reminder_id == "r1"
    assert created.reminder.namespace == "default"
    assert created.reminder.schedule.after.seconds == 3_600
    assert created.reminder.params == request.reminder.params
    assert len(created.reminder.next_occurrences) == 1
    assert not created.deduplicated
    assert (held.asked[0].request_id, held.asked[0].validate_only) == ("q", True)


async def test_bad_input_carries_every_violation(stub: "Stub", held: Any, failing: Failing) -> None:
    """INVALID_ARGUMENT, BadRequest, ErrorInfo; the use case is not asked."""
    request = pb.CreateReminderRequest()
    request.reminder.schedule.local.time_zone = "Europe/Pariss"
    failure = await failing(stub.CreateReminder(request))
    assert failure.code is grpc.StatusCode.INVALID_ARGUMENT
    assert {one.field: one.reason for one in failure.bad_request.field_violations} == {
        "reminder.user_id": "FIELD_REQUIRED",
        "reminder.schedule.local.time": "FIELD_REQUIRED",
        "reminder.schedule.local.time_zone": "ZONE_UNKNOWN",
        "reminder.channels": "FIELD_REQUIRED",
    }
    assert (failure.info.domain, failure.info.reason) == ("tocsin", "FIELD_REQUIRED")
    assert held.creates_begun == 0


async def test_calls_that_come_together_have_each_its_own_answer(
    stub: "Stub", held: Any, request_of: RequestOf
) -> None:
    """They are worked on together; what is wrong with one is its own affair."""

    async def create(number: int) -> pb.CreateReminderResponse:
        request = request_of()
        request.reminder.user_id = "" if number == 7 else f"u{number}"
        response: pb.CreateReminderResponse = await stub.CreateReminder(request)
        return response

    answers = await asyncio.gather(*map(create, range(20)), return_exceptions=True)
    refused = answers.pop(7)
    assert isinstance(refused, grpc.aio.AioRpcError)
    assert refused.code() is grpc.StatusCode.INVALID_ARGUMENT
    users = [answer.reminder.user_id for answer in answers if not isinstance(answer, BaseException)]
    assert users == [f"u{number}" for number in range(20) if number != 7]
    assert len(held.asked) == 19


async def test_a_flood_of_violations_arrives(stub: "Stub", failing: Failing) -> None:
    """Trailers have a limit; what is told stays within it, also in other alphabets."""
    request = pb.CreateReminderRequest()
    request.reminder.namespace = "ключ" * 200
    for _ in range(16):
        channel = request.reminder.channels.add(channel_id="ü" * 200)
        channel.webhook.url = f"http://{'ж' * 500}"
    request.reminder.params.update({"ы" * 3_000: float("nan")})
    failure = await failing(stub.CreateReminder(request))
    assert failure.code is grpc.StatusCode.INVALID_ARGUMENT
    assert "more violations" in failure.bad_request.field_violations[-1].description


async def test_errors_of_the_use_case_reach_the_client(
    stub: "Stub", held: Any, request_of: RequestOf, failing: Failing
) -> None:
    """As a result, and raised; with their details."""
    held.results[0] = KeyConflict(key="dedup_key", reminder_id="r9")
    failure = await failing(stub.CreateReminder(request_of()))
    assert failure.code is grpc.StatusCode.ALREADY_EXISTS
    assert failure.info.reason == "DEDUP_CONFLICT"
    assert dict(failure.info.metadata) == {"key": "dedup_key", "reminder_id": "r9"}
    held.failure = StoreUnavailable(operation="x", retry_after=timedelta(seconds=2))
    failure = await failing(stub.GetReminder(pb.GetReminderRequest(reminder_id="r1")))
    assert failure.code is grpc.StatusCode.UNAVAILABLE
    assert failure.info.reason == "STORE_UNAVAILABLE"
    assert failure.retry.retry_delay.seconds == 2


async def test_the_unexpected_is_logged_and_not_told(
    stub: "Stub", held: Any, request_of: RequestOf, failing: Failing
) -> None:
    """An incident id joins the log line and the answer."""
    held.failure = ZeroDivisionError("secret")
    with capture_logs() as logs:
        failure = await failing(stub.CreateReminder(request_of()))
    assert failure.code is grpc.StatusCode.INTERNAL
    assert "secret" not in str(failure.status)
    (line,) = [one for one in logs if one["event"] == "call.failed"]
    assert dict(failure.info.metadata) == {"incident": line["incident"]}
    assert line["method"] == "CreateReminder"
    assert line["exc_info"] is held.failure


async def test_get_and_not_found(stub: "Stub", request_of: RequestOf, failing: Failing) -> None:
    """A namespace that is not the reminder's reads as not there."""
    created = await stub.CreateReminder(request_of())
    reminder_id = created.reminder.reminder_id
    found = await stub.GetReminder(pb.GetReminderRequest(reminder_id=reminder_id))
    assert found == created.reminder
    other = pb.GetReminderRequest(reminder_id=reminder_id, namespace="other")
    failure = await failing(stub.GetReminder(other))
    assert failure.code is grpc.StatusCode.NOT_FOUND
    assert failure.info.reason == "REMINDER_NOT_FOUND"


async def test_list_walks_through_pages(
    stub: "Stub", held: Any, request_of: RequestOf, failing: Failing
) -> None:
    """By opaque tokens that belong to one list."""
    for _ in range(5):
        await stub.CreateReminder(request_of())
    seen, token, pages = [], "", 0
    while pages == 0 or token:
        request = pb.ListRemindersRequest(user_id="u1", page_size=2, page_token=token)
        page = await stub.ListReminders(request)
        assert (page.total_size, page.total_size_capped) == (5, False)
        seen += [one.reminder_id for one in page.reminders]
        token, pages = page.next_page_token, pages + 1
        assert not token.isdecimal()
    assert (seen, pages) == (["r1", "r2", "r3", "r4", "r5"], 3)
    assert held.listed == [("default", "u1", 2, position) for position in ("", "2", "4")]
    first = await stub.ListReminders(pb.ListRemindersRequest(user_id="u1", page_size=2))
    stolen = pb.ListRemindersRequest(user_id="u2", page_token=first.next_page_token)
    failure = await failing(stub.ListReminders(stolen))
    assert failure.code is grpc.StatusCode.INVALID_ARGUMENT
    assert failure.bad_request.field_violations[0].field == "page_token"


async def test_cancel_by_etag(
    stub: "Stub", held: Any, request_of: RequestOf, failing: Failing
) -> None:
    """The etag that Get answered is the version; the fate of each occurrence is told."""
    created = await stub.CreateReminder(request_of())
    reminder_id, etag = created.reminder.reminder_id, created.reminder.etag
    request = pb.CancelReminderRequest(reminder_id=reminder_id, etag=etag, request_id="c1")
    cancelled = await stub.CancelReminder(request)
    assert cancelled.was_fired
    assert [one.was_fired for one in cancelled.occurrences] == [True]
    assert held.changed == [("r1", 1, "c1")]
    failure = await failing(
        stub.CancelReminder(pb.CancelReminderRequest(reminder_id=reminder_id, etag="v1"))
    )
    assert failure.code is grpc.StatusCode.INVALID_ARGUMENT


async def test_reschedule(stub: "Stub", held: Any, request_of: RequestOf, failing: Failing) -> None:
    """The new schedule is validated as the request has it."""
    await stub.CreateReminder(request_of())
    request = pb.RescheduleReminderRequest(reminder_id="r1")
    request.schedule.after.seconds = 60
    moved = await stub.RescheduleReminder(request)
    assert not moved.was_fired
    assert held.changed == [("r1", After(delay=timedelta(seconds=60)), None, None)]
    request.schedule.at.seconds = 1_600_000_000
    failure = await failing(stub.RescheduleReminder(request))
    assert failure.info.reason == "TIME_IN_PAST"
    assert failure.bad_request.field_violations[0].field == "schedule.at"


async def test_ledger_lists(stub: "Stub", held: Any, request_of: RequestOf) -> None:
    """Occurrences and deliveries, with filter, limit and token."""
    await stub.CreateReminder(request_of())
    occurrences = await stub.ListOccurrences(pb.ListOccurrencesRequest(reminder_id="r1"))
    (occurrence,) = occurrences.occurrences
    assert occurrence.status == reminder_pb2.OCCURRENCE_STATUS_CLAIMED
    token = occurrences.next_page_token
    await stub.ListOccurrences(pb.ListOccurrencesRequest(reminder_id="r1", page_token=token))
    request = pb.ListDeliveriesRequest(
        reminder_id="r1", occurrence_id=occurrence.occurrence_id, page_size=7
    )
    (delivery,) = (await stub.ListDeliveries(request)).deliveries
    assert delivery.status == reminder_pb2.DELIVERY_STATUS_DELIVERED
    assert held.listed == [
        ("r1", 50, ""),
        ("r1", 50, "more"),
        ("r1", occurrence.occurrence_id, 7, ""),
    ]


async def test_batch_answers_each(
    stub: "Stub", held: Any, request_of: RequestOf, failing: Failing
) -> None:
    """In order: created, refused by validation, refused by the use case."""
    held.results[1] = KeyConflict(key="request_id", reminder_id="r9")
    batch = pb.BatchCreateRemindersRequest(batch_number=7)
    batch.requests.append(request_of("a"))
    batch.requests.add()
    batch.requests.append(request_of("b"))
    batch.requests.append(request_of("c"))
    answer = await stub.BatchCreateReminders(batch)
    assert answer.batch_number == 7
    kinds = [result.WhichOneof("result") for result in answer.results]
    assert kinds == ["created", "error", "error", "created"]
    assert answer.results[0].created.reminder.reminder_id == "r1"
    assert not answer.results[0].created.reminder.HasField("schedule")
    assert answer.results[1].error.code == grpc.StatusCode.INVALID_ARGUMENT.value[0]
    assert answer.results[2].error.code == grpc.StatusCode.ALREADY_EXISTS.value[0]
    assert [one.definition.user_id for one in held.asked] == ["a", "b", "c"]
    assert held.creates_begun == 1
    failure = await failing(stub.BatchCreateReminders(pb.BatchCreateRemindersRequest()))
    assert failure.info.reason == "FIELD_REQUIRED"


async def test_batch_of_nothing_valid_asks_nobody(stub: "Stub", held: Any) -> None:
    """All are refused one by one."""
    batch = pb.BatchCreateRemindersRequest(requests=[pb.CreateReminderRequest()] * 3)
    answer = await stub.BatchCreateReminders(batch)
    assert [one.WhichOneof("result") for one in answer.results] == ["error"] * 3
    assert held.creates_begun == 0


async def test_the_largest_batch_passes(stub: "Stub", held: Any, request_of: RequestOf) -> None:
    """500 reminders of 64 KiB, and the answer fits a client with default limits."""
    request = request_of()
    room = 64 * 1024 - request.reminder.ByteSize() - 40
    request.reminder.params.update({"text": "x" * room})
    assert request.reminder.ByteSize() > 65_000
    batch = pb.BatchCreateRemindersRequest(requests=[request] * 500)
    answer = await stub.BatchCreateReminders(batch)
    assert [one.WhichOneof("result") for one in answer.results] == ["created"] * 500
    assert len(held.asked) == 500


async def test_a_message_beyond_the_limit_is_refused(stub: "Stub", failing: Failing) -> None:
    """By gRPC, before it is read."""
    request = pb.CreateReminderRequest()
    request.reminder.params.update({"text": "x" * (41 * 1024 * 1024)})
    failure = await failing(stub.CreateReminder(request))
    assert failure.code is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_too_many_creates_are_told_to_come_back(
    stub: "Stub", held: Any, request_of: RequestOf, settings: SchedulerSettings, failing: Failing
) -> None:
    """Rather than queueing without end; those under way go on, and other calls are served."""
    held.gate.clear()
    half = settings.max_creates // 2
    batch = pb.BatchCreateRemindersRequest(requests=[request_of()] * (half - 1))
    held_up = stub.BatchCreateReminders(batch)
    last = stub.CreateReminder(request_of())
    await held.until_begun(2)
    failure = await failing(stub.CreateReminder(request_of()))
    assert failure.code is grpc.StatusCode.UNAVAILABLE
    assert failure.info.reason == "OVERLOADED"
    assert failure.retry.retry_delay.seconds == 1
    failure = await failing(stub.GetReminder(pb.GetReminderRequest(reminder_id="r1")))
    assert failure.code is grpc.StatusCode.NOT_FOUND
    held.gate.set()
    assert len((await held_up).results) == half - 1
    assert (await last).reminder.reminder_id
    assert (await stub.CreateReminder(request_of())).reminder.reminder_id


async def test_a_late_call_ends_by_its_deadline(
    stub: "Stub", held: Any, request_of: RequestOf, failing: Failing
) -> None:
    """And gives its place back."""
    held.gate.clear()
    failure = await failing(stub.CreateReminder(request_of(), timeout=0.2))
    assert failure.code is grpc.StatusCode.DEADLINE_EXCEEDED
    held.gate.set()
    created = await stub.CreateReminder(request_of(), timeout=10)
    assert created.reminder.reminder_id


async def test_a_message_that_cannot_be_read_is_the_callers_error(
    stub: "Stub", request_of: RequestOf, failing: Failing
) -> None:
    """Deeper than protobuf itself reads: INVALID_ARGUMENT, by unary calls and by streams."""
    request = request_of()
    value: dict[str, Any] = {}
    for _ in range(40):
        value = {"a": value}
    request.reminder.params.update(value)
    failure = await failing(stub.CreateReminder(request))
    assert failure.code is grpc.StatusCode.INVALID_ARGUMENT
    stream = stub.StreamCreateReminders()
    await stream.write(pb.BatchCreateRemindersRequest(requests=[request_of()]))
    batch = pb.BatchCreateRemindersRequest()
    batch.requests.add().reminder.params.update(value)
    await stream.write(batch)
    first: Any = await stream.read()
    assert first.results[0].WhichOneof("result") == "created"
    failure = await failing(stream.read())
    assert failure.code is grpc.StatusCode.INVALID_ARGUMENT
    assert "nested" in failure.message

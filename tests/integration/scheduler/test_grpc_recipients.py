"""Recipients over gRPC: put, get, delete, and what reminders take from a record."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tocsin.v1 import recipient_service_pb2 as recipient_pb
from tocsin.v1 import reminder_pb2
from tocsin.v1 import reminder_service_pb2 as pb
from tocsin.v1.recipient_service_pb2_grpc import RecipientServiceStub
from tocsin.v1.reminder_service_pb2_grpc import ReminderServiceStub

from reminders.clock import ManualClock
from reminders.errors import StoreUnavailable
from reminders.memory.store import MemoryStore
from scheduler.settings import SchedulerSettings
from tests.integration.scheduler.support import SHARDS, serving

if TYPE_CHECKING:
    from tocsin.v1.recipient_service_pb2_grpc import RecipientServiceAsyncStub
    from tocsin.v1.reminder_service_pb2_grpc import ReminderServiceAsyncStub

Failing = Callable[[Awaitable[object]], Awaitable[Any]]


@dataclass
class Whole:
    """The clients of a service on the in-memory adapters, and where its store has been."""

    reminders: "ReminderServiceAsyncStub"
    recipients: "RecipientServiceAsyncStub"
    channel: grpc.aio.Channel
    points: list[str]
    failing: set[str]

    @property
    def reads(self) -> int:
        """How often a recipient was read since last asked."""
        count = self.points.count("recipients.read")
        self.points.clear()
        return count

    async def put(self, user_id: str = "u1", *, etag: str = "", **fields: Any) -> Any:
        """A record, whole."""
        recipient = recipient_pb.Recipient(user_id=user_id, **fields)
        request = recipient_pb.PutRecipientRequest(recipient=recipient, etag=etag)
        return await self.recipients.PutRecipient(request)


@pytest.fixture
async def whole(clock: ManualClock, settings: SchedulerSettings) -> AsyncIterator[Whole]:
    """One for each test."""
    points: list[str] = []
    failing: set[str] = set()

    async def point(name: str) -> None:
        points.append(name)
        if name in failing:
            raise StoreUnavailable(operation=name)

    store = MemoryStore(shards=SHARDS, started_at=clock.now(), hook=point)
    async with serving(store, clock, settings) as channel:
        yield Whole(
            ReminderServiceStub(channel), RecipientServiceStub(channel), channel, points, failing
        )


def create(user_id: str = "u1", **fields: Any) -> pb.CreateReminderRequest:
    """In an hour, by e-mail to the record's address, unless told otherwise."""
    given = {"schedule": {"after": {"seconds": 3600}}, "channels": [{"email": {}}]} | fields
    return pb.CreateReminderRequest(reminder=reminder_pb2.Reminder(user_id=user_id, **given))


NINE: dict[str, Any] = {"local": {"time": "09:00"}}
DAILY: dict[str, Any] = {"recurrence": {"rrule": "daily", "start": "2026-12-01T09:00"}}


# --- the record -----------------------------------------------------------------------------------


async def test_put_get_delete(whole: Whole, clock: ManualClock, failing: Failing) -> None:
    """Replaced as a whole; another namespace has nobody of that name."""
    made = await whole.put(email="ada@example.com", locale="FR")
    assert (made.namespace, made.locale, made.create_time) == ("default", "fr", made.update_time)
    clock.advance(timedelta(seconds=1))
    changed = await whole.put(sms="+33123456789")
    assert (changed.email, changed.sms) == ("", "+33123456789")
    assert changed.create_time == made.create_time
    assert changed.update_time != made.update_time
    get = recipient_pb.GetRecipientRequest(user_id="u1")
    assert await whole.recipients.GetRecipient(get) == changed
    calls: list[Awaitable[object]] = [
        whole.recipients.GetRecipient(
            recipient_pb.GetRecipientRequest(namespace="acme", user_id="u1")
        ),
        whole.recipients.DeleteRecipient(
            recipient_pb.DeleteRecipientRequest(namespace="acme", user_id="u1")
        ),
    ]
    for call in calls:
        failure = await failing(call)
        assert failure.code is grpc.StatusCode.NOT_FOUND
        assert failure.info.reason == "RECIPIENT_NOT_FOUND"
        assert failure.info.metadata["user_id"] == "u1"
    await whole.recipients.DeleteRecipient(recipient_pb.DeleteRecipientRequest(user_id="u1"))
    failure = await failing(whole.recipients.GetRecipient(get))
    assert failure.code is grpc.StatusCode.NOT_FOUND


async def test_an_etag_guards_against_what_was_not_seen(
    whole: Whole, clock: ManualClock, failing: Failing
) -> None:
    """Of a put and a delete; also where the record was deleted and made anew meanwhile."""
    first = await whole.put(email="ada@example.com")
    clock.advance(timedelta(seconds=1))
    second = await whole.put(etag=first.etag, email="bob@example.com")
    delete = recipient_pb.DeleteRecipientRequest
    stale: list[Awaitable[object]] = [
        whole.put(etag=first.etag, email="eve@example.com"),
        whole.recipients.DeleteRecipient(delete(user_id="u1", etag=first.etag)),
    ]
    for call in stale:
        failure = await failing(call)
        assert failure.code is grpc.StatusCode.ABORTED
        assert failure.info.reason == "VERSION_MISMATCH"
    assert (await whole.put(etag=first.etag, email="bob@example.com")).etag == second.etag
    await whole.recipients.DeleteRecipient(delete(user_id="u1", etag=second.etag))
    clock.advance(timedelta(seconds=1))
    await whole.put(email="ada@example.com")
    failure = await failing(whole.put(etag=first.etag, email="eve@example.com"))
    assert failure.info.reason == "VERSION_MISMATCH"
    failure = await failing(whole.put("u2", etag=first.etag))
    assert [one.field for one in failure.bad_request.field_violations] == ["etag"]


async def test_wrong_records_change_nothing(whole: Whole, failing: Failing) -> None:
    """Every violation at once."""
    await whole.put(email="ada@example.com")
    failure = await failing(whole.put(email="x", sms="y", quiet_hours={"start": "22:00"}))
    assert failure.code is grpc.StatusCode.INVALID_ARGUMENT
    fields = [one.field for one in failure.bad_request.field_violations]
    assert fields == [
        *("recipient.email", "recipient.sms", "recipient.time_zone", "recipient.quiet_hours.end"),
    ]
    stands = await whole.recipients.GetRecipient(recipient_pb.GetRecipientRequest(user_id="u1"))
    assert stands.email == "ada@example.com"


async def test_the_service_is_known_to_health(whole: Whole) -> None:
    """By its name."""
    health: Any = health_pb2_grpc.HealthStub(whole.channel)
    asked = health_pb2.HealthCheckRequest(service="tocsin.v1.RecipientService")
    assert (await health.Check(asked)).status == health_pb2.HealthCheckResponse.SERVING


# --- what a create takes from it ------------------------------------------------------------------


async def test_a_create_without_an_address_needs_a_record_that_has_one(
    whole: Whole, failing: Failing
) -> None:
    """Else NO_ADDRESS names the field and the remedy."""
    channels = [{"email": {}}, {"sms": {}}, {"push": {"provider": 2}}, {"log": {}}]
    failure = await failing(whole.reminders.CreateReminder(create(channels=channels)))
    assert failure.code is grpc.StatusCode.INVALID_ARGUMENT
    found = failure.bad_request.field_violations
    assert [(one.field, one.reason) for one in found] == [
        ("reminder.channels[0].email.to", "NO_ADDRESS"),
        ("reminder.channels[1].sms.to", "NO_ADDRESS"),
        ("reminder.channels[2].push.to", "NO_ADDRESS"),
    ]
    assert "the user has no recipient record" in found[0].description
    assert "PutRecipient" in found[0].description
    push = [{"token": "f1", "provider": 1}]
    await whole.put(email="ada@example.com", sms="+33123456789", push=push)
    failure = await failing(whole.reminders.CreateReminder(create(channels=channels)))
    (one,) = failure.bad_request.field_violations
    assert one.field == "reminder.channels[2].push.to"
    assert "a device's token of apns" in one.description
    channels[2] = {"push": {}}
    made = (await whole.reminders.CreateReminder(create(channels=channels))).reminder
    assert [each.WhichOneof("kind") for each in made.channels] == ["email", "sms", "push", "log"]
    assert made.channels[0].email.to == ""  # the address of then counts, not of now


async def test_other_problems_are_told_beside_it(whole: Whole, failing: Failing) -> None:
    """One answer, all violations, in the order of the fields."""
    request = create(schedule=NINE, channels=[{"email": {}}, {"webhook": {"url": "ftp://x"}}])
    failure = await failing(whole.reminders.CreateReminder(request))
    assert [one.field for one in failure.bad_request.field_violations] == [
        "reminder.schedule.local.time_zone",
        "reminder.channels[0].email.to",
        "reminder.channels[1].webhook.url",
    ]


@pytest.mark.parametrize("schedule", [NINE, DAILY])
async def test_the_zone_of_the_record_is_the_default_and_stays(
    whole: Whole, schedule: dict[str, Any], failing: Failing
) -> None:
    """It is stored: a later change of the record moves no promise."""
    log: list[dict[str, Any]] = [{"log": {}}]
    failure = await failing(whole.reminders.CreateReminder(create(schedule=schedule, channels=log)))
    (one,) = failure.bad_request.field_violations
    assert one.field.endswith(".time_zone")
    assert "recipient record" in one.description
    await whole.put(time_zone="Asia/Tokyo")
    made = (await whole.reminders.CreateReminder(create(schedule=schedule, channels=log))).reminder
    (kind,) = schedule
    assert getattr(made.schedule, kind).time_zone == "Asia/Tokyo"
    assert made.next_occurrences[0].fire_time.ToJsonString().endswith("T00:00:00Z")
    await whole.put(time_zone="Europe/Paris")
    get = pb.GetReminderRequest(reminder_id=made.reminder_id)
    stands = await whole.reminders.GetReminder(get)
    assert stands.next_occurrences[0] == made.next_occurrences[0]
    own = {kind: {**schedule[kind], "time_zone": "UTC"}}
    made = (await whole.reminders.CreateReminder(create(schedule=own, channels=log))).reminder
    assert getattr(made.schedule, kind).time_zone == "UTC"


async def test_a_batch_reads_each_record_once_and_only_where_it_is_needed(whole: Whole) -> None:
    """Each request succeeds or fails by itself."""
    for user in ("u1", "u2"):
        await whole.put(user, email=f"{user}@example.com")
    _ = whole.reads
    complete = create("u1", channels=[{"email": {"to": "x@example.com"}}, {"log": {}}])
    batch = pb.BatchCreateRemindersRequest(requests=[complete] * 3)
    answer = await whole.reminders.BatchCreateReminders(batch)
    assert [one.WhichOneof("result") for one in answer.results] == ["created"] * 3
    assert whole.reads == 0
    some = [create("u1"), complete, create("u2"), create("u3"), create("u1"), create("")]
    answer = await whole.reminders.BatchCreateReminders(
        pb.BatchCreateRemindersRequest(requests=some)
    )
    assert [one.WhichOneof("result") for one in answer.results] == [
        *("created", "created", "created", "error", "created", "error"),
    ]
    assert whole.reads == 3
    whole.failing.add("recipients.read")
    answer = await whole.reminders.BatchCreateReminders(
        pb.BatchCreateRemindersRequest(requests=some)
    )
    codes = [one.error.code for one in answer.results]
    assert codes == [14, 0, 14, 14, 14, 3]  # UNAVAILABLE where a record was needed


async def test_a_repeat_answers_what_was_made_while_there_was_an_address(
    whole: Whole, failing: Failing
) -> None:
    """As one that comes too late does; a new key is refused."""
    await whole.put(email="ada@example.com")
    made = (await whole.reminders.CreateReminder(create(dedup_key="k1"))).reminder
    await whole.put(sms="+33123456789")
    again = await whole.reminders.CreateReminder(create(dedup_key="k1"))
    assert (again.deduplicated, again.reminder.reminder_id) == (True, made.reminder_id)
    failure = await failing(whole.reminders.CreateReminder(create(dedup_key="k2")))
    assert failure.info.reason == "NO_ADDRESS"


# --- changes --------------------------------------------------------------------------------------


async def test_a_reschedule_takes_the_zone_of_the_record(whole: Whole, failing: Failing) -> None:
    """Of the user whose reminder it is."""
    made = (await whole.reminders.CreateReminder(create(channels=[{"log": {}}]))).reminder
    request = pb.RescheduleReminderRequest(
        reminder_id=made.reminder_id, schedule=reminder_pb2.Schedule(**NINE)
    )
    failure = await failing(whole.reminders.RescheduleReminder(request))
    assert [one.field for one in failure.bad_request.field_violations] == [
        "schedule.local.time_zone"
    ]
    await whole.put(time_zone="Asia/Tokyo")
    moved = (await whole.reminders.RescheduleReminder(request)).reminder
    assert moved.schedule.local.time_zone == "Asia/Tokyo"


async def test_an_update_asks_the_record_only_for_what_it_changes(
    whole: Whole, failing: Failing
) -> None:
    """Labels can be edited though the address is gone; another user needs one."""
    await whole.put(email="ada@example.com", time_zone="Asia/Tokyo")
    made = (await whole.reminders.CreateReminder(create())).reminder
    await whole.put(time_zone="Asia/Tokyo")

    async def update(*paths: str, **fields: Any) -> Any:
        request = pb.UpdateReminderRequest(
            reminder=reminder_pb2.Reminder(reminder_id=made.reminder_id, **fields)
        )
        request.update_mask.paths.extend(paths)
        return (await whole.reminders.UpdateReminder(request)).reminder

    assert (await update("labels", labels={"a": "b"})).labels == {"a": "b"}
    moved = await update("schedule", schedule=NINE)
    assert moved.schedule.local.time_zone == "Asia/Tokyo"
    failure = await failing(update("user_id", user_id="u2"))
    assert failure.info.reason == "NO_ADDRESS"
    failure = await failing(update("channels", channels=[{"sms": {}}]))
    assert [one.field for one in failure.bad_request.field_violations] == [
        "reminder.channels[0].sms.to"
    ]
    await whole.put("u2", email="bob@example.com")
    assert (await update("user_id", user_id="u2")).user_id == "u2"

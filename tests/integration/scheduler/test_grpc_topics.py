"""Topics through a real server: subscribers one by one and in bulk, and reminders for a topic."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from structlog.testing import capture_logs
from tocsin.v1 import reminder_pb2
from tocsin.v1 import reminder_service_pb2 as calls
from tocsin.v1 import topic_service_pb2 as pb
from tocsin.v1.reminder_service_pb2_grpc import ReminderServiceStub
from tocsin.v1.topic_service_pb2_grpc import TopicServiceStub

from reminders.clock import ManualClock
from reminders.localstack import Endpoints
from reminders.memory.store import MemoryStore
from reminders.model.subscriber import bucket_of
from reminders.ports import Store
from reminders.signing_secrets import key_of
from reminders.storage.migrate import migrate
from reminders.storage.session import connect
from reminders.storage.settings import StorageSettings
from reminders.storage.store import CassandraStore
from scheduler.settings import SchedulerSettings
from tests.integration.scheduler.support import SHARDS, serving

if TYPE_CHECKING:
    from tocsin.v1.reminder_service_pb2_grpc import ReminderServiceAsyncStub
    from tocsin.v1.topic_service_pb2_grpc import TopicServiceAsyncStub

Failing = Callable[[Awaitable[object]], Awaitable[Any]]

URL = "https://hooks.example.com/x"


@dataclass
class Service:
    """A scheduler and its clients."""

    store: Store
    topics: "TopicServiceAsyncStub"
    reminders: "ReminderServiceAsyncStub"


def service_of(store: Store, channel: grpc.aio.Channel) -> Service:
    """Its clients."""
    return Service(store, TopicServiceStub(channel), ReminderServiceStub(channel))


@pytest.fixture
async def service(clock: ManualClock, settings: SchedulerSettings) -> AsyncIterator[Service]:
    """In memory."""
    store = MemoryStore(shards=SHARDS, started_at=clock.now())
    async with serving(store, clock, settings) as channel:
        yield service_of(store, channel)


@pytest.fixture
async def durable(
    stack: Endpoints, clock: ManualClock, settings: SchedulerSettings
) -> AsyncIterator[Service]:
    """On Cassandra, in a keyspace of its own."""
    storage = StorageSettings(
        hosts=tuple(stack.cassandra_hosts.split(",")),
        keyspace=f"topics_{uuid4().hex[:12]}",
        shards=SHARDS,
        request_timeout=timedelta(seconds=10),
    )
    await migrate(storage)
    store = await CassandraStore.connect(storage)
    async with serving(store, clock, settings) as channel:
        yield service_of(store, channel)
    await store.close()
    cluster, session = connect(storage, None)
    session.execute(f"DROP KEYSPACE {storage.keyspace}", timeout=60)
    cluster.shutdown()


def put_of(subscriber_id: str = "s1", **fields: Any) -> pb.PutSubscriberRequest:
    """A webhook of topic t."""
    request = pb.PutSubscriberRequest(**fields)
    request.subscriber.topic_id = "t"
    request.subscriber.subscriber_id = subscriber_id
    request.subscriber.endpoint.webhook.url = URL
    return request


def name_of(subscriber_id: str = "s1") -> dict[str, Any]:
    """Of topic t."""
    return {"topic_id": "t", "subscriber_id": subscriber_id}


async def test_a_secret_is_answered_once(service: Service, failing: Failing) -> None:
    """By the call that made it; get and list tell when it was made, and no more."""
    topics = service.topics
    with capture_logs() as logs:
        made = await topics.PutSubscriber(put_of())
        assert len(key_of(made.secret)) == 32
        rotated = await topics.RotateSecret(pb.RotateSecretRequest(**name_of()))
        assert rotated.secret != made.secret
        found = await topics.GetSubscriber(pb.GetSubscriberRequest(**name_of()))
        listed = await topics.ListSubscribers(pb.ListSubscribersRequest(topic_id="t"))
        put = await topics.PutSubscriber(put_of())
        again = await failing(topics.RotateSecret(pb.RotateSecretRequest(**name_of())))
    assert put.replaced
    assert list(listed.subscribers) == [found] == [rotated.subscriber]
    newest, before = found.secrets
    assert not newest.HasField("expire_time")
    assert before.expire_time == rotated.previous_expire_time
    assert again.code is grpc.StatusCode.FAILED_PRECONDITION
    assert again.info.reason == "ROTATION_UNDER_WAY"
    shown = f"{found}{listed}{put}{again.message}{again.info}{logs}"
    for secret in (made.secret, rotated.secret):
        assert secret.removeprefix("whsec_") not in shown


async def test_a_subscriber_lives_from_put_to_delete(service: Service, failing: Failing) -> None:
    """Whatever was put is shown; what is gone is NOT_FOUND, and deleting again is no error."""
    topics = service.topics
    request = put_of()
    request.subscriber.labels["plan"] = "gold"
    request.subscriber.filter["kind"] = "news"
    request.subscriber.time_zone = "Asia/Tokyo"
    made = (await topics.PutSubscriber(request)).subscriber
    assert made.endpoint.webhook.url == URL
    assert made.endpoint.channel_id == "webhook"
    assert (dict(made.labels), dict(made.filter)) == ({"plan": "gold"}, {"kind": "news"})
    assert (made.namespace, made.time_zone, made.paused) == ("default", "Asia/Tokyo", False)
    paused = await topics.PauseSubscriber(pb.PauseSubscriberRequest(**name_of()))
    assert paused.paused
    only = pb.ListSubscribersRequest(topic_id="t", paused=False)
    assert not (await topics.ListSubscribers(only)).subscribers
    resumed = await topics.ResumeSubscriber(pb.ResumeSubscriberRequest(**name_of()))
    assert resumed == made
    gone = pb.DeleteSubscriberRequest(**name_of())
    assert (await topics.DeleteSubscriber(gone)).deleted
    assert not (await topics.DeleteSubscriber(gone)).deleted
    failure = await failing(topics.GetSubscriber(pb.GetSubscriberRequest(**name_of())))
    assert failure.code is grpc.StatusCode.NOT_FOUND
    assert failure.info.reason == "SUBSCRIBER_NOT_FOUND"
    assert dict(failure.info.metadata) == name_of()


async def test_a_test_send_answers_where_to_look(service: Service) -> None:
    """Nobody delivers here: the reminder is there, marked, and in the topic's list."""
    await service.topics.PutSubscriber(put_of())
    request = pb.SendTestRequest(**name_of(), wait=Duration(seconds=0))
    sent = await service.topics.SendTest(request)
    assert not sent.finished
    assert not sent.HasField("delivery")
    name = calls.GetReminderRequest(reminder_id=sent.reminder_id)
    made = await service.reminders.GetReminder(name)
    assert (made.topic_id, made.only_subscriber_id) == ("t", "s1")
    assert made.next_occurrences[0].occurrence_id == sent.occurrence_id


async def streamed(
    topics: "TopicServiceAsyncStub", batches: list[pb.PutSubscribersRequest]
) -> list[pb.PutSubscribersResponse]:
    """All answers."""
    stream = topics.StreamSubscribers()

    async def send() -> None:
        for batch in batches:
            await stream.write(batch)
        await stream.done_writing()

    async with asyncio.TaskGroup() as group:
        group.create_task(send())
        return [answer async for answer in stream]


async def test_thousands_come_in_by_stream_and_are_listed_whole(durable: Service) -> None:
    """On Cassandra: a result for each, a bad one refused alone, pages in order and complete. Sent
    again, all of it stands as it was.
    """
    size, bad = 250, {17, 2_999}
    requests = [
        put_of("not an id" if number in bad else f"s{number:04}", request_id=f"q{number}")
        for number in range(3_000)
    ]
    batches = [
        pb.PutSubscribersRequest(batch_number=first, requests=requests[first : first + size])
        for first in range(0, len(requests), size)
    ]
    answers = await streamed(durable.topics, batches)
    assert [one.batch_number for one in answers] == [one.batch_number for one in batches]
    results = [result for answer in answers for result in answer.results]
    assert {n for n, one in enumerate(results) if one.WhichOneof("result") == "error"} == bad
    secrets = [one.put.secret for one in results]
    assert len(set(secrets)) == 2_999  # those of the bad ones are empty

    listed: list[str] = []
    token = ""
    while not listed or token:
        asked = pb.ListSubscribersRequest(topic_id="t", page_size=170, page_token=token)
        page = await durable.topics.ListSubscribers(asked)
        listed += [one.subscriber_id for one in page.subscribers]
        token = page.next_page_token
    assert sorted(listed) == [f"s{number:04}" for number in range(3_000) if number not in bad]
    assert listed == sorted(listed, key=lambda each: (bucket_of(each), each))

    again = [result for one in await streamed(durable.topics, batches) for result in one.results]
    assert again == results


async def test_a_batch_that_is_too_large_ends_the_stream(service: Service) -> None:
    """After the answers to those before it."""
    stream = service.topics.StreamSubscribers()
    await stream.write(pb.PutSubscribersRequest(batch_number=1, requests=[put_of()]))
    await stream.write(pb.PutSubscribersRequest(batch_number=2, requests=[put_of()] * 501))
    answer = await stream.read()
    assert isinstance(answer, pb.PutSubscribersResponse)
    assert answer.batch_number == 1
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stream.read()
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def to_topic(topic_id: str = "t") -> calls.CreateReminderRequest:
    """A reminder in an hour."""
    request = calls.CreateReminderRequest()
    request.reminder.topic_id = topic_id
    request.reminder.schedule.after.seconds = 3_600
    request.reminder.labels["kind"] = "news"
    return request


async def test_a_topics_reminder_is_listed_by_its_topic(service: Service, failing: Failing) -> None:
    """And by no user, even one of that name; explain shows the topic."""
    made = (await service.reminders.CreateReminder(to_topic())).reminder
    assert (made.topic_id, made.user_id, list(made.channels)) == ("t", "", [])
    stub = service.reminders
    assert await stub.GetReminder(calls.GetReminderRequest(reminder_id=made.reminder_id)) == made
    page = await stub.ListReminders(calls.ListRemindersRequest(topic_id="t"))
    assert (list(page.reminders), page.total_size) == ([made], 1)
    for other in (
        calls.ListRemindersRequest(user_id="t"),
        calls.ListRemindersRequest(topic_id="u"),
    ):
        page = await stub.ListReminders(other)
        assert (list(page.reminders), page.total_size) == ([], 0)
    for wrong in (
        calls.ListRemindersRequest(),
        calls.ListRemindersRequest(user_id="\0topic:t"),
        calls.ListRemindersRequest(user_id="u", topic_id="t"),
    ):
        failure = await failing(stub.ListReminders(wrong))
        assert failure.code is grpc.StatusCode.INVALID_ARGUMENT
    name = calls.ExplainReminderRequest(reminder_id=made.reminder_id)
    explained = await stub.ExplainReminder(name)
    assert explained.reminder == made
    assert explained.occurrences[0].next_action.owner == "scanner"


async def test_a_topics_reminder_changes_as_any_other(service: Service, failing: Failing) -> None:
    """Reschedule, update, pause, resume, cancel, and cancel of its group; the list follows."""
    stub = service.reminders

    async def ahead() -> list[tuple[str, int]]:
        page = await stub.ListReminders(calls.ListRemindersRequest(topic_id="t"))
        return [
            (one.reminder_id, one.next_occurrences[0].fire_time.seconds) for one in page.reminders
        ]

    made = (await stub.CreateReminder(to_topic())).reminder
    name = made.reminder_id
    move = calls.RescheduleReminderRequest(reminder_id=name)
    move.schedule.after.seconds = 7_200
    moved = (await stub.RescheduleReminder(move)).reminder
    assert await ahead() == [(name, moved.next_occurrences[0].fire_time.seconds)]
    update = calls.UpdateReminderRequest(update_mask=FieldMask(paths=["labels"]))
    update.reminder.reminder_id = name
    update.reminder.labels["kind"] = "sports"
    updated = (await stub.UpdateReminder(update)).reminder
    assert (updated.topic_id, dict(updated.labels)) == ("t", {"kind": "sports"})
    for path in ("user_id", "channels"):
        update = calls.UpdateReminderRequest(update_mask=FieldMask(paths=[path]))
        update.reminder.reminder_id = name
        update.reminder.user_id = "u1"
        update.reminder.channels.add().log.SetInParent()
        failure = await failing(stub.UpdateReminder(update))
        assert failure.code is grpc.StatusCode.INVALID_ARGUMENT
    await stub.PauseReminder(calls.PauseReminderRequest(reminder_id=name))
    assert await ahead() == []
    await stub.ResumeReminder(calls.ResumeReminderRequest(reminder_id=name))
    assert [each for each, _ in await ahead()] == [name]
    cancelled = await stub.CancelReminder(calls.CancelReminderRequest(reminder_id=name))
    assert cancelled.reminder.status == reminder_pb2.REMINDER_STATUS_CANCELLED
    assert not cancelled.was_fired
    assert await ahead() == []

"""DeliveryService over gRPC, on the real use cases in memory."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from tocsin.v1 import delivery_service_pb2 as pb
from tocsin.v1 import reminder_pb2
from tocsin.v1 import reminder_service_pb2 as calls
from tocsin.v1.delivery_service_pb2_grpc import DeliveryServiceStub
from tocsin.v1.reminder_service_pb2_grpc import ReminderServiceStub

from reminders.clock import ManualClock
from reminders.lifecycle.endings import write_ends
from reminders.memory.store import MemoryStore
from reminders.model.ended import listed
from reminders.model.endpoint import Address
from reminders.model.entry import Kind
from reminders.model.ledger import Attempt, DeliveryStatus, LedgerRow, OccurrenceStatus
from scheduler.settings import SchedulerSettings
from tests.integration.scheduler.support import SHARDS, serving

URL = "https://example.com/hook"
ENDPOINT = Address(namespace="default", kind="webhook", address=URL).endpoint_id
RequestOf = Callable[..., calls.CreateReminderRequest]
Failing = Callable[[Awaitable[object]], Awaitable[Any]]


@dataclass
class Whole:
    """A service on the in-memory adapters, and its clients."""

    reminders: Any
    deliveries: Any
    store: MemoryStore
    clock: ManualClock

    async def failed(self, request: calls.CreateReminderRequest) -> LedgerRow:
        """A reminder whose one delivery failed just now."""
        made = await self.reminders.CreateReminder(request)
        name = made.reminder.reminder_id
        stored = await self.store.records.read(name)
        assert stored is not None
        occurrence = stored.live[0].occurrence
        assert occurrence is not None
        now = self.clock.now()
        row = LedgerRow(
            namespace="default",
            reminder_id=name,
            reminder_version=1,
            occurrence=occurrence,
            channel_id=stored.record.definition.channels[0].channel_id,
            delivery_key="dlv_1",
            delivery=DeliveryStatus.FAILED,
            reason="attempts_exhausted",
            attempts=(Attempt(number=1, started_at=now, error_class="http_5xx"),),
            attempt_count=1,
        )
        row, ended = listed(row, at=now, kind="webhook", endpoint_id=ENDPOINT)
        assert ended is not None
        await self.store.ended.add([ended])
        await self.store.ledger.write([row], at=now)
        return row

    async def waiting(self) -> list[datetime]:
        """When the replays that were asked for are due."""
        found: list[datetime] = []
        for minutes in range(10):
            minute = self.clock.now().replace(second=0, microsecond=0)
            for shard in range(SHARDS):
                states = await self.store.due.slice(
                    minute + timedelta(minutes=minutes), shard, limit=99
                )
                replays = [each.entry for each in states if each.entry.kind is Kind.REPLAY]
                found += [entry.key.ring_at for entry in replays]
        return sorted(found)


@pytest.fixture
async def whole(clock: ManualClock, settings: SchedulerSettings) -> AsyncIterator[Whole]:
    """A running one."""
    store = MemoryStore(shards=SHARDS, started_at=clock.now())
    async with serving(store, clock, settings) as channel:
        yield Whole(ReminderServiceStub(channel), DeliveryServiceStub(channel), store, clock)


def webhook(request_of: RequestOf) -> calls.CreateReminderRequest:
    """A reminder with one."""
    request = request_of()
    del request.reminder.channels[:]
    request.reminder.channels.add().webhook.url = f"{URL}?token=secret"
    request.reminder.params.update({"title": "Tea"})
    request.reminder.template_id = "tea"
    return request


async def test_what_failed_is_listed_with_what_was_to_be_sent(
    whole: Whole, request_of: RequestOf
) -> None:
    """Page by page, and filtered."""
    rows = []
    for _ in range(3):
        rows.append(await whole.failed(webhook(request_of)))
        whole.clock.advance(timedelta(minutes=1))
    request = pb.ListEndedDeliveriesRequest(page_size=2)
    first = await whole.deliveries.ListEndedDeliveries(request)
    assert [each.delivery.reminder_id for each in first.deliveries] == [
        row.reminder_id for row in rows[:2]
    ]
    one = first.deliveries[0]
    assert one.delivery.status == reminder_pb2.DELIVERY_STATUS_FAILED
    assert one.delivery.attempts[0].error_class == "http_5xx"
    assert (one.endpoint_id, one.channel_kind) == (ENDPOINT, "webhook")
    assert one.payload.channel.webhook.url == f"{URL}?token=secret"
    assert one.payload.params["title"] == "Tea"
    assert one.payload.template_id == "tea"
    request.page_token = first.next_page_token
    second = await whole.deliveries.ListEndedDeliveries(request)
    assert [each.delivery.reminder_id for each in second.deliveries] == [rows[2].reminder_id]
    assert not second.next_page_token
    for filter_ in (
        pb.EndedFilter(reason="other"),
        pb.EndedFilter(status=reminder_pb2.DELIVERY_STATUS_EXPIRED),
        pb.EndedFilter(endpoint_id="ep_" + "a" * 26),
        pb.EndedFilter(namespace="other"),
        pb.EndedFilter(subscriber_id="s"),
    ):
        found = await whole.deliveries.ListEndedDeliveries(
            pb.ListEndedDeliveriesRequest(filter=filter_)
        )
        assert not found.deliveries


async def test_it_is_redriven_page_by_page_with_one_request_id(
    whole: Whole, request_of: RequestOf
) -> None:
    """A repeat writes nothing more, and a dry run only counts."""
    for _ in range(3):
        await whole.failed(webhook(request_of))
    whole.clock.advance(timedelta(minutes=1))
    dry = await whole.deliveries.RedriveDeliveries(pb.RedriveDeliveriesRequest(validate_only=True))
    assert dry.counts.sent_again == 3
    assert await whole.waiting() == []
    for _ in range(2):
        request = pb.RedriveDeliveriesRequest(request_id="q", page_size=2)
        first = await whole.deliveries.RedriveDeliveries(request)
        request.page_token = first.next_page_token
        second = await whole.deliveries.RedriveDeliveries(request)
        assert (first.counts.sent_again, second.counts.sent_again) == (2, 1)
        times = await whole.waiting()
        assert len(times) == 3
        assert times[-1] - times[0] == timedelta(milliseconds=20)


async def test_a_request_id_stands_for_one_filter(
    whole: Whole, request_of: RequestOf, failing: Failing
) -> None:
    """And page tokens for one list."""
    for _ in range(3):
        await whole.failed(webhook(request_of))
    whole.clock.advance(timedelta(minutes=1))
    redrive = whole.deliveries.RedriveDeliveries
    first = await redrive(pb.RedriveDeliveriesRequest(request_id="q", page_size=1))
    other = pb.EndedFilter(reason="attempts_exhausted")
    refused = await failing(redrive(pb.RedriveDeliveriesRequest(request_id="q", filter=other)))
    assert refused.code is grpc.StatusCode.ALREADY_EXISTS
    request = pb.RedriveDeliveriesRequest(filter=other, page_token=first.next_page_token)
    refused = await failing(redrive(request))
    assert refused.code is grpc.StatusCode.INVALID_ARGUMENT


async def test_an_endpoint_is_disabled_found_and_enabled_with_its_backlog(
    whole: Whole, request_of: RequestOf
) -> None:
    """By its URL and by its id; what is recovered waits until all dispatchers know."""
    row = await whole.failed(webhook(request_of))
    whole.clock.advance(timedelta(minutes=1))
    api = whole.deliveries
    unknown = await api.GetEndpoint(pb.GetEndpointRequest(webhook_url=URL))
    assert unknown.status == pb.ENDPOINT_STATUS_HEALTHY
    disabled = await api.DisableEndpoint(pb.DisableEndpointRequest(webhook_url=f"{URL}?x=1"))
    assert (disabled.endpoint_id, disabled.address) == (ENDPOINT, URL)
    assert disabled.disable_reason == pb.DISABLE_REASON_MANUAL
    found = await api.GetEndpoint(pb.GetEndpointRequest(endpoint_id=ENDPOINT))
    assert found.status == pb.ENDPOINT_STATUS_DISABLED
    listed = await api.ListEndpoints(pb.ListEndpointsRequest(disabled_only=True))
    assert [each.endpoint_id for each in listed.endpoints] == [ENDPOINT]
    since = Timestamp()
    since.FromDatetime(whole.clock.now() - timedelta(hours=1))
    enabling = pb.EnableEndpointRequest(endpoint_id=ENDPOINT, recover_since=since)
    answer = await api.EnableEndpoint(enabling)
    assert answer.endpoint.status == pb.ENDPOINT_STATUS_HEALTHY
    assert answer.counts.sent_again == 1
    assert await whole.waiting() == [whole.clock.now() + timedelta(seconds=15)]
    listed = await api.ListEndpoints(pb.ListEndpointsRequest())
    assert not listed.endpoints
    assert row.delivery_key


@pytest.mark.parametrize(
    ("call", "request_", "field"),
    [
        ("GetEndpoint", pb.GetEndpointRequest(), "endpoint_id"),
        ("GetEndpoint", pb.GetEndpointRequest(endpoint_id="a", webhook_url="b"), "endpoint_id"),
        ("DisableEndpoint", pb.DisableEndpointRequest(endpoint_id="ep_" + "x" * 26), "endpoint_id"),
        ("DisableEndpoint", pb.DisableEndpointRequest(webhook_url="x"), "webhook_url"),
        (
            "ListEndedDeliveries",
            pb.ListEndedDeliveriesRequest(
                filter=pb.EndedFilter(status=reminder_pb2.DELIVERY_STATUS_PENDING)
            ),
            "filter.status",
        ),
        (
            "RedriveDeliveries",
            pb.RedriveDeliveriesRequest(filter=pb.EndedFilter(namespace="$events")),
            "filter.namespace",
        ),
        (
            "ListEndedDeliveries",
            pb.ListEndedDeliveriesRequest(
                filter=pb.EndedFilter(start_time=Timestamp(seconds=4_000_000_000))
            ),
            "filter.end_time",
        ),
    ],
)
async def test_wrong_requests_name_the_field(
    whole: Whole, failing: Failing, call: str, request_: Any, field: str
) -> None:
    """And change nothing."""
    refused = await failing(getattr(whole.deliveries, call)(request_))
    assert refused.code is grpc.StatusCode.INVALID_ARGUMENT
    assert field in [each.field for each in refused.bad_request.field_violations]


async def test_an_occurrence_that_ended_without_a_delivery_is_listed_too(
    whole: Whole, request_of: RequestOf
) -> None:
    """There is nothing to send again: a trigger rings anew."""
    row = await whole.failed(webhook(request_of))
    bare = LedgerRow(
        namespace="default",
        reminder_id=row.reminder_id,
        reminder_version=1,
        occurrence=row.occurrence,
        ended=OccurrenceStatus.FAILED,
        reason="unreadable",
    )
    await write_ends(whole.store, [bare], at=whole.clock.now())
    whole.clock.advance(timedelta(minutes=1))
    wanted = pb.EndedFilter(reason="unreadable")
    listed = await whole.deliveries.ListEndedDeliveries(
        pb.ListEndedDeliveriesRequest(filter=wanted)
    )
    (one,) = listed.deliveries
    assert one.delivery.reason == "unreadable"
    assert one.delivery.status == reminder_pb2.DELIVERY_STATUS_FAILED
    redriven = await whole.deliveries.RedriveDeliveries(pb.RedriveDeliveriesRequest(filter=wanted))
    assert redriven.counts.no_delivery == 1
    assert await whole.waiting() == []

"""`tocsin ended`, `tocsin endpoints`: flags to messages, pages to their end, answers to lines."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from tocsin.v1 import delivery_service_pb2 as calls
from tocsin.v1 import delivery_service_pb2_grpc as service
from tocsin.v1 import reminder_pb2 as pb

Tocsin = Callable[..., Any]
AT = Timestamp(seconds=1_796_115_600)


class FakeDeliveries(service.DeliveryServiceServicer):
    """Gives the answers that are queued for a call, one after the other."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.answers: list[Any] = []

    def _answer(self, request: Any, context: Any) -> Any:
        del context
        copy = type(request)()
        copy.CopyFrom(request)
        self.requests.append(copy)
        return self.answers.pop(0)

    ListEndedDeliveries = _answer
    RedriveDeliveries = _answer
    GetEndpoint = _answer
    ListEndpoints = _answer
    EnableEndpoint = _answer
    DisableEndpoint = _answer


@pytest.fixture
def deliveries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeDeliveries]:
    """The fake on a free port, which the command line finds by its variable."""
    monkeypatch.chdir(tmp_path)
    fake = FakeDeliveries()
    server = grpc.server(ThreadPoolExecutor(max_workers=2))
    service.add_DeliveryServiceServicer_to_server(fake, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    monkeypatch.setenv("TOCSIN_GRPC_ADDRESS", f"127.0.0.1:{port}")
    yield fake
    server.stop(grace=None).wait()


def one(reminder_id: str) -> calls.EndedDelivery:
    """That went to a webhook."""
    made = calls.EndedDelivery(endpoint_id="ep_1", channel_kind="webhook", end_time=AT)
    made.delivery.reminder_id = reminder_id
    made.delivery.reason = "attempts_exhausted"
    made.delivery.status = pb.DELIVERY_STATUS_FAILED
    made.payload.channel.webhook.url = "https://example.com/hook"
    made.payload.params.update({"title": "Tea"})
    return made


def test_the_list_goes_on_to_its_end(deliveries: FakeDeliveries, tocsin: Tocsin) -> None:
    """Also over pages that hold nothing."""
    deliveries.answers = [
        calls.ListEndedDeliveriesResponse(deliveries=[one("r1")], next_page_token="a"),
        calls.ListEndedDeliveriesResponse(next_page_token="b"),
        calls.ListEndedDeliveriesResponse(deliveries=[one("r2")]),
    ]
    words = ("--since", "2h", "--until", "2026-12-01T09:00:00Z", "--status", "failed")
    ran = tocsin("ended", "list", *words, "--endpoint", "ep_1", "--reason", "x", "--payload")
    assert ran.code == 0, ran.err
    assert [each.page_token for each in deliveries.requests] == ["", "a", "b"]
    asked = deliveries.requests[0].filter
    assert (asked.namespace, asked.endpoint_id, asked.reason) == ("default", "ep_1", "x")
    assert asked.status == pb.DELIVERY_STATUS_FAILED
    ago = datetime.now(UTC) - asked.start_time.ToDatetime(UTC)
    assert timedelta(hours=2) <= ago < timedelta(hours=2, minutes=5)
    assert asked.end_time.ToDatetime(UTC) == datetime(2026, 12, 1, 9, tzinfo=UTC)
    for text in ("r1", "r2", "attempts_exhausted", "https://example.com/hook", '"Tea"', "ep_1"):
        assert text in ran.out


def test_a_long_list_is_cut_and_says_so(deliveries: FakeDeliveries, tocsin: Tocsin) -> None:
    """Without asking for more than is shown."""
    page = calls.ListEndedDeliveriesResponse(deliveries=[one("r1")], next_page_token="a")
    deliveries.answers = [page]
    ran = tocsin("ended", "list", "--limit", "1")
    assert deliveries.requests[0].page_size == 1
    assert "there are more" in ran.out


def test_a_status_that_is_none_is_refused(deliveries: FakeDeliveries, tocsin: Tocsin) -> None:
    """Before anything is asked."""
    ran = tocsin("ended", "list", "--status", "delivered")
    assert ran.code == 2
    assert not deliveries.requests


def test_a_redrive_is_one_of_several_calls(deliveries: FakeDeliveries, tocsin: Tocsin) -> None:
    """With one request id, drawn unless it is given; the counts are added up."""
    counts = [calls.RedriveCounts(sent_again=3, paused=1), calls.RedriveCounts(sent_again=2)]
    deliveries.answers = [
        calls.RedriveDeliveriesResponse(counts=counts[0], next_page_token="a"),
        calls.RedriveDeliveriesResponse(counts=counts[1]),
    ]
    ran = tocsin("ended", "redrive")
    assert ran.code == 0, ran.err
    first, second = deliveries.requests
    assert first.request_id == second.request_id != ""
    assert second.page_token == "a"
    assert not first.validate_only
    assert "5 will be sent again; left: 1 paused" in ran.out


def test_a_dry_run_says_what_would_be(deliveries: FakeDeliveries, tocsin: Tocsin) -> None:
    """And passes its request id on."""
    deliveries.answers = [calls.RedriveDeliveriesResponse(counts=calls.RedriveCounts(sent_again=1))]
    ran = tocsin("ended", "redrive", "--dry-run", "--request-id", "q")
    (request,) = deliveries.requests
    assert (request.validate_only, request.request_id) == (True, "q")
    assert "1 would be sent again" in ran.out


def endpoint() -> calls.Endpoint:
    """That is disabled."""
    return calls.Endpoint(
        endpoint_id="ep_1",
        channel_kind="webhook",
        address="https://example.com/hook",
        status=calls.ENDPOINT_STATUS_DISABLED,
        disable_reason=calls.DISABLE_REASON_FAILING,
        disable_time=AT,
        error_class="http_5xx",
    )


def test_endpoints_are_listed_and_shown(deliveries: FakeDeliveries, tocsin: Tocsin) -> None:
    """By id or by URL."""
    deliveries.answers = [
        calls.ListEndpointsResponse(next_page_token="a"),
        calls.ListEndpointsResponse(endpoints=[endpoint()]),
        endpoint(),
        calls.Endpoint(endpoint_id="ep_2", status=calls.ENDPOINT_STATUS_HEALTHY),
    ]
    ran = tocsin("endpoints", "list", "--disabled")
    assert deliveries.requests[1].disabled_only
    for text in ("ep_1", "disabled", "failing", "http_5xx", "https://example.com/hook"):
        assert text in ran.out
    ran = tocsin("endpoints", "show", "ep_1")
    assert deliveries.requests[-1].endpoint_id == "ep_1"
    ran = tocsin("endpoints", "show", "https://example.com/hook?x=1")
    assert deliveries.requests[-1].webhook_url == "https://example.com/hook?x=1"
    assert "healthy" in ran.out


def test_one_is_disabled_and_enabled_with_what_it_missed(
    deliveries: FakeDeliveries, tocsin: Tocsin
) -> None:
    """Page by page."""
    healthy = calls.Endpoint(endpoint_id="ep_1", status=calls.ENDPOINT_STATUS_HEALTHY)
    counts = calls.RedriveCounts(sent_again=2, ended=1)
    deliveries.answers = [
        endpoint(),
        calls.EnableEndpointResponse(endpoint=healthy, counts=counts, next_page_token="a"),
        calls.EnableEndpointResponse(endpoint=healthy, counts=counts),
    ]
    assert tocsin("endpoints", "disable", "ep_1").code == 0
    ran = tocsin("endpoints", "enable", "ep_1", "--recover-since", "5d")
    _, first, second = deliveries.requests
    assert first.request_id == second.request_id != ""
    assert second.page_token == "a"
    assert first.recover_since == second.recover_since
    assert "4 will be sent again; left: 2 cancelled or gone" in ran.out

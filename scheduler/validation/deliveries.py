"""Which ended deliveries, and which endpoint."""

import base64
import re
from datetime import datetime, timedelta
from typing import Final, Protocol, TypeVar

import msgspec
from msgspec import Struct
from tocsin.v1 import delivery_service_pb2 as pb
from tocsin.v1 import reminder_pb2

from reminders.lifecycle.ended_list import EndedFilter
from reminders.lifecycle.endpoints import EndpointPlace, Named
from reminders.lifecycle.problems import Problems, Reason, check_length, optional, shown
from reminders.lifecycle.redriving import RedriveCall, RedrivePlace
from reminders.model.codec import encode
from reminders.model.definition import Channel, Webhook
from reminders.model.endpoint import address_of
from reminders.urls import MAX_URL_BYTES, origin
from scheduler.validation.names import read_namespace
from scheduler.validation.reminders import ID_BYTES
from scheduler.validation.times import read_instant
from scheduler.validation.windows import Paged, Window, read_window

LATELY: Final = timedelta(hours=24)
"""What a list without a start begins with."""
REASON_BYTES: Final = 64
_ENDPOINT_ID: Final = re.compile(r"ep_[a-z2-7]{26}", re.ASCII).fullmatch
_STATUSES: Final = {
    reminder_pb2.DELIVERY_STATUS_UNSPECIFIED: "",
    reminder_pb2.DELIVERY_STATUS_FAILED: "failed",
    reminder_pb2.DELIVERY_STATUS_EXPIRED: "expired",
}

T = TypeVar("T")


class Naming(Protocol):
    """A request that names an endpoint."""

    @property
    def namespace(self) -> str:
        """Empty: the default one."""

    @property
    def endpoint_id(self) -> str:
        """This, or the other."""

    @property
    def webhook_url(self) -> str:
        """As a channel has it."""


class EndedWindow(Struct, frozen=True, kw_only=True):
    """A part of a list of ended deliveries."""

    wanted: EndedFilter
    window: Window
    after: RedrivePlace | None


def read_ended(
    request: pb.ListEndedDeliveriesRequest | pb.RedriveDeliveriesRequest,
    now: datetime,
    problems: Problems,
) -> EndedWindow:
    """The filter, and how far its list has come."""
    given = request.filter
    wanted = read_filter(given, now, problems)
    scope = ("ended", wanted.namespace, _content(given).hex())
    window, after = _window(request, scope, RedrivePlace, problems)
    return EndedWindow(wanted=wanted, window=window, after=after)


def read_filter(given: pb.EndedFilter, now: datetime, problems: Problems) -> EndedFilter:
    """With what is left open as of now."""
    namespace = read_namespace(given.namespace, "filter.namespace", problems)
    start: datetime | None = now - LATELY
    if given.HasField("start_time"):
        start = read_instant(given.start_time, "filter.start_time", problems, round_up=False)
    end: datetime | None = now
    if given.HasField("end_time"):
        end = read_instant(given.end_time, "filter.end_time", problems)
    if start is not None and end is not None and start >= end:
        problems.add("filter.end_time", Reason.VALUE_INVALID, "is not later than start_time")
    if given.status not in _STATUSES:
        problems.add(
            "filter.status",
            Reason.VALUE_INVALID,
            "must be DELIVERY_STATUS_FAILED or DELIVERY_STATUS_EXPIRED, or unset for both",
        )
    check_length(given.reason, REASON_BYTES, "filter.reason", problems)
    _check_endpoint_id(given.endpoint_id, "filter.endpoint_id", problems)
    check_length(given.subscriber_id, ID_BYTES, "filter.subscriber_id", problems)
    return EndedFilter(
        namespace=namespace,
        start=start or now,
        end=end or now,
        status=_STATUSES.get(given.status, ""),
        reason=given.reason,
        endpoint_id=given.endpoint_id,
        target=given.subscriber_id,
    )


def read_redrive(
    request: pb.RedriveDeliveriesRequest, asked: EndedWindow, problems: Problems
) -> RedriveCall:
    """One call of a redrive."""
    return RedriveCall(
        content=_content(request.filter),
        after=asked.after,
        limit=asked.window.limit,
        dry_run=request.validate_only,
        request_id=optional(request.request_id, ID_BYTES, "request_id", problems),
    )


def _check_endpoint_id(endpoint_id: str, field: str, problems: Problems) -> None:
    """Of none that was ever made nothing is on record, which reads as healthy."""
    if endpoint_id and not _ENDPOINT_ID(endpoint_id):
        said = f"{shown(endpoint_id)} is no endpoint's id, ep_…; ListEndpoints has them"
        problems.add(field, Reason.VALUE_INVALID, said)


def read_endpoint(request: Naming, problems: Problems) -> Named:
    """By its id, or by a URL that is sent to it."""
    namespace = read_namespace(request.namespace, "namespace", problems)
    if bool(request.endpoint_id) == bool(request.webhook_url):
        problems.required("endpoint_id", "this or webhook_url, one of the two")
    _check_endpoint_id(request.endpoint_id, "endpoint_id", problems)
    check_length(request.webhook_url, MAX_URL_BYTES, "webhook_url", problems)
    if not request.webhook_url:
        return Named(namespace=namespace, endpoint_id=request.endpoint_id)
    if "://" not in origin(request.webhook_url):
        problems.add("webhook_url", Reason.VALUE_INVALID, "is not a URL such as https://…")
    channel = Channel(channel_id="", target=Webhook(url=request.webhook_url))
    address = address_of(namespace, channel)
    assert address is not None
    return Named(namespace=namespace, endpoint_id=address.endpoint_id, address=address)


def read_recovery(
    request: pb.EnableEndpointRequest, named: Named, now: datetime, problems: Problems
) -> tuple[EndedFilter | None, RedriveCall, Window]:
    """What is to be sent again with it; None: nothing."""
    wanted: EndedFilter | None = None
    since = request.recover_since
    if request.HasField("recover_since"):
        start = read_instant(since, "recover_since", problems, round_up=False)
        if start is not None and start >= now:
            problems.add("recover_since", Reason.VALUE_INVALID, "lies ahead")
        wanted = EndedFilter(
            namespace=named.namespace,
            start=start or now,
            end=now,
            endpoint_id=named.endpoint_id,
        )
    content = f"{named.endpoint_id} {since.seconds}.{since.nanos:09}".encode()
    scope = ("recovered", named.namespace, content.decode())
    window, after = _window(request, scope, RedrivePlace, problems)
    call = RedriveCall(
        content=content,
        after=after,
        limit=window.limit,
        request_id=optional(request.request_id, ID_BYTES, "request_id", problems),
    )
    return wanted, call, window


def read_endpoints(
    request: pb.ListEndpointsRequest, problems: Problems
) -> tuple[str, Window, EndpointPlace | None]:
    """Namespace, and which part of the list."""
    namespace = read_namespace(request.namespace, "namespace", problems)
    scope = ("endpoints", namespace, str(request.disabled_only))
    window, after = _window(request, scope, EndpointPlace, problems)
    return namespace, window, after


def position_of(place: Struct | None) -> str:
    """A place as page tokens carry it; empty for the end."""
    return base64.b64encode(encode(place)).decode() if place is not None else ""


def _window(
    request: Paged, scope: tuple[str, ...], kind: type[T], problems: Problems
) -> tuple[Window, T | None]:
    window = read_window(request, scope, problems)
    if not window.position:
        return window, None
    try:
        return window, msgspec.msgpack.decode(base64.b64decode(window.position), type=kind)
    except (msgspec.DecodeError, ValueError):  # of another release
        problems.add("page_token", Reason.VALUE_INVALID, "is not of this release; begin anew")
        return window, None


def _content(given: pb.EndedFilter) -> bytes:
    return given.SerializeToString(deterministic=True)

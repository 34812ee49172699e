"""Ended deliveries and endpoints, as operators see them."""

from collections.abc import Mapping
from typing import Final

from tocsin.v1 import delivery_service_pb2 as pb
from tocsin.v1 import reminder_pb2

from reminders.lifecycle.redriving import EndedView, Redrive
from reminders.model.endpoint import Endpoint, Why
from reminders.model.record import Record
from scheduler.mapping.definitions import put_channel, put_instant
from scheduler.mapping.ledger import put_delivery, put_occurrence
from scheduler.validation.params import from_json

_STATUSES: Final = {
    "failed": reminder_pb2.DELIVERY_STATUS_FAILED,
    "expired": reminder_pb2.DELIVERY_STATUS_EXPIRED,
}
_REASONS: Final = {
    Why.FAILING: pb.DISABLE_REASON_FAILING,
    Why.GONE: pb.DISABLE_REASON_GONE,
    Why.MANUAL: pb.DISABLE_REASON_MANUAL,
}


def put_ended(message: pb.EndedDelivery, view: EndedView) -> None:
    """With what was to be sent."""
    ended, row = view.ended, view.row
    put_delivery(message.delivery, row)
    message.delivery.status = _STATUSES[ended.status]
    put_occurrence(message.occurrence, row.occurrence)
    put_instant(message.end_time, ended.ended_at)
    message.endpoint_id = ended.endpoint_id
    message.channel_kind = ended.kind
    if view.record is not None:
        _put_payload(message.payload, view, view.record)


def _put_payload(message: pb.EndedPayload, view: EndedView, record: Record) -> None:
    definition = record.definition
    message.SetInParent()
    template_id = definition.template_id
    for channel in definition.channels:
        if channel.channel_id == view.row.channel_id:
            put_channel(message.channel, channel)
            template_id = channel.template_id or template_id
    message.template_id = template_id or ""
    from_json(definition.params_json, message.params)
    message.user_id = definition.user_id
    message.topic_id = definition.topic_id


def put_counts(message: pb.RedriveCounts, counts: Mapping[Redrive, int]) -> None:
    """Of one call."""
    message.SetInParent()
    message.sent_again = counts.get(Redrive.SENT_AGAIN, 0)
    message.ended = counts.get(Redrive.ENDED, 0)
    message.paused = counts.get(Redrive.PAUSED, 0)
    message.channel_gone = counts.get(Redrive.CHANNEL_GONE, 0)
    message.no_delivery = counts.get(Redrive.NO_DELIVERY, 0)


def put_endpoint(message: pb.Endpoint, endpoint: Endpoint) -> None:
    """As it stands."""
    message.namespace = endpoint.namespace
    message.endpoint_id = endpoint.endpoint_id
    message.channel_kind = endpoint.kind
    message.address = endpoint.address
    if endpoint.disabled:
        message.status = pb.ENDPOINT_STATUS_DISABLED
    else:
        failing, healthy = pb.ENDPOINT_STATUS_FAILING, pb.ENDPOINT_STATUS_HEALTHY
        message.status = failing if endpoint.troubled else healthy
    message.error_class = endpoint.error_class
    instants = {
        "failing_time": endpoint.failing_since,
        "last_failure_time": endpoint.last_failure_at,
        "last_success_time": endpoint.last_success_at,
        "disable_time": endpoint.disabled_at,
    }
    for name, at in instants.items():
        if at is not None:
            put_instant(getattr(message, name), at)
    if endpoint.why is not None:
        message.disable_reason = _REASONS[endpoint.why]

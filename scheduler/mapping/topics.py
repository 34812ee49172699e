"""Subscribers as callers see them: never with the value of a secret, but in the one answer."""

from datetime import datetime

from google.rpc.status_pb2 import Status
from tocsin.v1 import topic_service_pb2 as pb

from reminders.errors import TocsinError
from reminders.lifecycle.subscriber_puts import Put
from reminders.lifecycle.subscribing import Rotated
from reminders.lifecycle.trials import Tried
from reminders.model.subscriber import Subscriber
from scheduler.errors import status_of
from scheduler.mapping.definitions import put_channel, put_instant
from scheduler.mapping.ledger import put_delivery


def put_subscriber(message: pb.Subscriber, subscriber: Subscriber, now: datetime) -> None:
    """Everything; of its secrets those that are valid `now`."""
    message.namespace = subscriber.namespace
    message.topic_id = subscriber.topic_id
    message.subscriber_id = subscriber.subscriber_id
    put_channel(message.endpoint, subscriber.channel)
    message.labels.update(subscriber.labels)
    message.filter.update(subscriber.filter)
    message.time_zone = subscriber.time_zone
    message.paused = subscriber.paused
    put_instant(message.create_time, subscriber.created_at)
    put_instant(message.update_time, subscriber.updated_at)
    for secret in subscriber.valid_secrets(now):
        shown = message.secrets.add()
        put_instant(shown.create_time, secret.made_at)
        end = subscriber.valid_until(secret)
        if end is not None:
            put_instant(shown.expire_time, end)


def subscriber_message(subscriber: Subscriber, now: datetime) -> pb.Subscriber:
    """As an answer of its own."""
    message = pb.Subscriber()
    put_subscriber(message, subscriber, now)
    return message


def put_message(put: Put, now: datetime) -> pb.PutSubscriberResponse:
    """Of one put."""
    message = pb.PutSubscriberResponse(replaced=put.replaced)
    put_subscriber(message.subscriber, put.subscriber, now)
    if put.shown is not None:
        message.secret = put.shown.value
    return message


def put_result(message: pb.PutSubscriberResult, result: Put | TocsinError) -> None:
    """Of one among many: without the subscriber, so that an answer is no larger than its batch."""
    if isinstance(result, TocsinError):
        status: Status = status_of(result)
        message.error.CopyFrom(status)
        return
    message.put.replaced = result.replaced
    if result.shown is not None:
        message.put.secret = result.shown.value


def rotated_message(rotated: Rotated, now: datetime) -> pb.RotateSecretResponse:
    """Of a rotation."""
    message = pb.RotateSecretResponse()
    put_subscriber(message.subscriber, rotated.subscriber, now)
    if rotated.shown is not None:
        message.secret = rotated.shown.value
    put_instant(message.previous_expire_time, rotated.others_end_at)
    return message


def tried_message(tried: Tried) -> pb.SendTestResponse:
    """Of a test."""
    message = pb.SendTestResponse(
        reminder_id=tried.reminder_id,
        occurrence_id=tried.occurrence_id,
        finished=tried.finished,
    )
    if tried.delivery is not None:
        put_delivery(message.delivery, tried.delivery)
    return message

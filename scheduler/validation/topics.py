"""Topics: who subscribes, by which endpoint, and what is signed how."""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Protocol

from google.protobuf.duration_pb2 import Duration
from msgspec import Struct
from tocsin.v1 import topic_service_pb2 as pb

from reminders.lifecycle.problems import Problems, Reason, optional, shown
from reminders.lifecycle.subscriber_puts import Asked
from reminders.lifecycle.subscriber_secrets import OVERLAP
from reminders.lifecycle.texts import read_zone
from reminders.lifecycle.trials import Trial
from reminders.signing_secrets import SecretText, key_of
from scheduler.validation.channels import NAME_BYTES, ChannelReader
from scheduler.validation.deployment import Deployment
from scheduler.validation.names import read_namespace
from scheduler.validation.params import NO_PARAMS, to_json
from scheduler.validation.reach import ALONE
from scheduler.validation.reminders import ID_BYTES, REMINDER_BYTES, check_topic, read_labels
from scheduler.validation.times import read_duration
from scheduler.validation.windows import Window, read_window

LONGEST_OVERLAP = timedelta(days=30)
LONGEST_WAIT = timedelta(seconds=30)
WAIT = timedelta(seconds=10)

_SUBSCRIBER_ID = re.compile(r"[A-Za-z0-9._:@+=-]{1,128}", re.ASCII).fullmatch


class Named(Struct, frozen=True, kw_only=True):
    """Which subscriber."""

    namespace: str
    topic_id: str
    subscriber_id: str

    @property
    def parts(self) -> tuple[str, str, str]:
        """As use cases take it."""
        return self.namespace, self.topic_id, self.subscriber_id


class Listed(Struct, frozen=True, kw_only=True):
    """Which part of whose list."""

    namespace: str
    topic_id: str
    labels: dict[str, str]
    paused: bool | None
    window: Window


class Naming(Protocol):
    """A message that names a subscriber."""

    @property
    def namespace(self) -> str:
        """The tenant."""

    @property
    def topic_id(self) -> str:
        """Of the topic."""

    @property
    def subscriber_id(self) -> str:
        """Of the subscriber."""


def read_named(asked: Naming, problems: Problems, *, under: str = "") -> Named:
    """`under`: the path of the message that names it, with its dot."""
    namespace = read_namespace(asked.namespace, f"{under}namespace", problems)
    check_topic(asked.topic_id, f"{under}topic_id", problems)
    field = f"{under}subscriber_id"
    if not asked.subscriber_id:
        problems.required(field, "your id of the subscriber")
    elif not _SUBSCRIBER_ID(asked.subscriber_id):
        said = "is not 1-128 characters of A-Z, a-z, 0-9 and . _ : @ + = -"
        problems.add(field, Reason.VALUE_INVALID, f"{shown(asked.subscriber_id)} {said}")
    return Named(namespace=namespace, topic_id=asked.topic_id, subscriber_id=asked.subscriber_id)


def read_subscriber(request: pb.PutSubscriberRequest, deployment: Deployment) -> Asked:
    """The normal form. Raises `InvalidRequest`."""
    problems = Problems()
    asked = request.subscriber
    if not request.HasField("subscriber"):
        problems.required("subscriber", "which topic, who, and where to")
        problems.raise_if_any()
    named = read_named(asked, problems, under="subscriber.")
    at = "subscriber.endpoint"
    reader = ChannelReader(deployment, named.namespace, problems, ALONE)
    channel = reader.endpoint(asked.endpoint, at)
    labels = read_labels(asked.labels, "subscriber.labels", problems)
    wanted = read_labels(asked.filter, "subscriber.filter", problems)
    if asked.time_zone:
        read_zone(asked.time_zone, "subscriber.time_zone", problems)
    secret = read_secret(request.secret, problems)
    if secret is not None and asked.endpoint.WhichOneof("kind") != "webhook":
        said = "signs webhooks, which this endpoint is not; leave it empty"
        problems.add("secret", Reason.SECRET_INVALID, said)
    request_id = optional(request.request_id, ID_BYTES, "request_id", problems)
    problems.raise_if_any()
    return Asked(
        namespace=named.namespace,
        topic_id=named.topic_id,
        subscriber_id=named.subscriber_id,
        channel=channel,
        labels=dict(labels),
        filter=dict(wanted),
        time_zone=asked.time_zone,
        secret=secret,
        request_id=request_id,
    )


def read_secret(secret: str, problems: Problems) -> SecretText | None:
    """None: none is given. What is wrong is noted, and the secret is not repeated."""
    if not secret:
        return None
    try:
        key_of(secret)
    except ValueError as error:
        problems.add("secret", Reason.SECRET_INVALID, str(error))
    return SecretText(secret)


def read_list(request: pb.ListSubscribersRequest) -> Listed:
    """Raises `InvalidRequest`."""
    problems = Problems()
    namespace = read_namespace(request.namespace, "namespace", problems)
    check_topic(request.topic_id, "topic_id", problems)
    labels = dict(read_labels(request.labels, "labels", problems))
    paused = request.paused if request.HasField("paused") else None
    scope = ("subscribers", namespace, request.topic_id, str(paused), *_flat(labels))
    window = read_window(request, scope, problems)
    problems.raise_if_any()
    return Listed(
        namespace=namespace,
        topic_id=request.topic_id,
        labels=labels,
        paused=paused,
        window=window,
    )


def _flat(labels: Mapping[str, str]) -> list[str]:
    return [text for pair in labels.items() for text in pair]


def read_overlap(request: pb.RotateSecretRequest, problems: Problems) -> timedelta:
    """How long the secrets before the new one stay valid."""
    given = request.overlap if request.HasField("overlap") else None
    return _bounded(given, "overlap", OVERLAP, LONGEST_OVERLAP, problems)


def read_trial(request: pb.SendTestRequest) -> Trial:
    """Raises `InvalidRequest`."""
    problems = Problems()
    named = read_named(request, problems)
    params = NO_PARAMS
    if request.HasField("params"):
        params = to_json(request.params, "params", problems)
    if len(params.encode()) > REMINDER_BYTES:
        said = f"has more than {REMINDER_BYTES} bytes as JSON"
        problems.add("params", Reason.PAYLOAD_TOO_LARGE, said)
    template_id = optional(request.template_id, NAME_BYTES, "template_id", problems)
    given = request.wait if request.HasField("wait") else None
    wait = _bounded(given, "wait", WAIT, LONGEST_WAIT, problems)
    request_id = optional(request.request_id, ID_BYTES, "request_id", problems)
    problems.raise_if_any()
    return Trial(
        namespace=named.namespace,
        topic_id=named.topic_id,
        subscriber_id=named.subscriber_id,
        params_json=params,
        template_id=template_id,
        wait=wait,
        request_id=request_id,
    )


def _bounded(
    given: Duration | None, field: str, default: timedelta, longest: timedelta, problems: Problems
) -> timedelta:
    if given is None:
        return default
    found = read_duration(given, field, problems)
    if found is not None and found > longest:
        said = f"must be from 0s to {longest.total_seconds():.0f}s"
        problems.add(field, Reason.VALUE_INVALID, said)
    return found if found is not None else default

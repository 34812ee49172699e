"""What: a `Reminder` message as a `Definition`."""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from msgspec.structs import replace
from tocsin.v1 import reminder_pb2 as pb

from reminders.lifecycle.problems import (
    Problems,
    Reason,
    check_count,
    check_length,
    optional,
    shown,
)
from reminders.lifecycle.texts import A_ZONE
from reminders.model.definition import TOPIC_KEY, Channel, Definition
from scheduler.validation.channels import NAME_BYTES, ChannelReader
from scheduler.validation.deployment import Deployment
from scheduler.validation.params import NO_PARAMS, to_json
from scheduler.validation.policies import DEFAULTS, read_policies
from scheduler.validation.reach import UNREAD, Reach
from scheduler.validation.schedules import Against, read_schedule

DEFAULT_NAMESPACE = "default"
REMINDER_BYTES = 64 * 1024
"""Of the serialized message."""
ID_BYTES = 128
"""Of the caller's own ids: users, groups, requests."""
DEDUP_KEY_BYTES = 256
MAX_LABELS = 32
LABEL_BYTES = 63


def read_definition(
    reminder: pb.Reminder,
    now: datetime,
    field: str,
    problems: Problems,
    *,
    deployment: Deployment,
    reach: Reach = UNREAD,
) -> Definition | None:
    """The normal form; None if its schedule can't be read. What is wrong is noted."""
    fits = _check_size(reminder, field, problems)
    user_id, topic_id = read_audience(reminder, f"{field}.", problems)
    policies = DEFAULTS
    if reminder.HasField("policies"):
        policies = read_policies(reminder.policies, f"{field}.policies", problems)
    schedule = reach.kept
    if schedule is None:
        against = Against(now=now, limits=deployment.limits, zone=reach.zone)
        if topic_id:  # its subscribers have no recipient records
            against = replace(against, zone="", zone_wanted=A_ZONE)
        at = f"{field}.schedule"
        schedule = read_schedule(reminder.schedule, policies, against, at, problems)
    namespace = reminder.namespace or DEFAULT_NAMESPACE
    reader = ChannelReader(deployment, namespace, problems, reach)
    channels = _channels(reminder, reader, f"{field}.channels", problems)
    template_id = optional(reminder.template_id, NAME_BYTES, f"{field}.template_id", problems)
    params = NO_PARAMS
    if fits and reminder.HasField("params"):
        params = _params(reminder, f"{field}.params", problems)
    dedup_key = optional(reminder.dedup_key, DEDUP_KEY_BYTES, f"{field}.dedup_key", problems)
    group_id = optional(reminder.group_id, ID_BYTES, f"{field}.group_id", problems)
    labels = read_labels(reminder.labels, f"{field}.labels", problems)
    if schedule is None:
        return None
    return Definition(
        user_id=user_id,
        schedule=schedule,
        policies=policies,
        channels=channels,
        template_id=template_id,
        params_json=params,
        dedup_key=dedup_key,
        group_id=group_id,
        labels=labels,
        topic_id=topic_id,
    )


def _params(reminder: pb.Reminder, field: str, problems: Problems) -> str:
    """As JSON text, which may be larger than the message: a control character has six bytes."""
    params = to_json(reminder.params, field, problems)
    size = len(params) if params.isascii() else len(params.encode())
    if size > REMINDER_BYTES:
        problems.add(
            field,
            Reason.PAYLOAD_TOO_LARGE,
            f"has {size} bytes as JSON; at most {REMINDER_BYTES} are taken",
        )
    return params


def _check_size(reminder: pb.Reminder, field: str, problems: Problems) -> bool:
    size = reminder.ByteSize()
    if size <= REMINDER_BYTES:
        return True
    problems.add(
        field,
        Reason.PAYLOAD_TOO_LARGE,
        f"has {size} bytes; at most {REMINDER_BYTES} are taken: send a reference instead",
    )
    return False


class Addressed(Protocol):
    """A message that names a user or a topic."""

    @property
    def user_id(self) -> str:
        """Empty: none."""

    @property
    def topic_id(self) -> str:
        """Empty: none."""


def read_audience(asked: Addressed, under: str, problems: Problems) -> tuple[str, str]:
    """The user or the topic; one of the two is empty. `under`: the path, with its dot."""
    user_id, topic_id = asked.user_id, asked.topic_id
    if topic_id and user_id:
        problems.add(
            f"{under}topic_id", Reason.VALUE_INVALID, "and user_id exclude each other; give one"
        )
    elif topic_id:
        check_topic(topic_id, f"{under}topic_id", problems)
    elif user_id:
        check_length(user_id, ID_BYTES, f"{under}user_id", problems)
        if user_id.startswith(TOPIC_KEY):
            problems.add(f"{under}user_id", Reason.VALUE_INVALID, "begins as no user's id may")
    else:
        problems.required(f"{under}user_id", "whose reminders, unless topic_id says which topic's")
    return user_id, topic_id


def check_topic(topic_id: str, field: str, problems: Problems) -> None:
    """A topic's id, which is the caller's own."""
    if not topic_id:
        problems.required(field, "which topic")
    check_length(topic_id, ID_BYTES, field, problems)


def _channels(
    reminder: pb.Reminder, reader: ChannelReader, field: str, problems: Problems
) -> tuple[Channel, ...]:
    """A topic's reminder has none: each subscriber has an endpoint of its own."""
    if not reminder.topic_id:
        return reader.read(reminder.channels, field)
    if reminder.channels:
        problems.add(
            field,
            Reason.CHANNELS_FORBIDDEN,
            "of a topic's reminder are its subscribers' endpoints; leave this empty",
        )
    return ()


def read_labels(
    labels: Mapping[str, str], field: str, problems: Problems
) -> tuple[tuple[str, str], ...]:
    """Sorted by key."""
    if not labels:
        return ()
    check_count(len(labels), MAX_LABELS, field, problems)
    pairs = sorted(labels.items())[:MAX_LABELS]
    for key, value in pairs:
        at = f"{field}[{shown(key)}]"
        if not key:
            problems.add(at, Reason.VALUE_INVALID, "has an empty key")
        check_length(key, LABEL_BYTES, at, problems)
        check_length(value, LABEL_BYTES, at, problems)
    return tuple(pairs)

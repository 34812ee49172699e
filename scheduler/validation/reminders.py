"""What: a `Reminder` message as a `Definition`."""

from collections.abc import Mapping
from datetime import datetime

from tocsin.v1 import reminder_pb2 as pb

from reminders.lifecycle.problems import (
    Problems,
    Reason,
    check_count,
    check_length,
    optional,
    shown,
)
from reminders.model.definition import Definition, Schedule
from scheduler.validation.channels import NAME_BYTES, ChannelReader
from scheduler.validation.deployment import Deployment
from scheduler.validation.params import NO_PARAMS, to_json
from scheduler.validation.policies import DEFAULTS, read_policies
from scheduler.validation.schedules import read_schedule

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
    schedule: Schedule | None = None,
) -> Definition | None:
    """The normal form; None if its schedule can't be read. What is wrong is noted. `schedule`: one
    that was right when it was given, and stays as it is.
    """
    fits = _check_size(reminder, field, problems)
    user_id = _user(reminder, field, problems)
    policies = DEFAULTS
    if reminder.HasField("policies"):
        policies = read_policies(reminder.policies, f"{field}.policies", problems)
    if schedule is None:
        at = f"{field}.schedule"
        limits = deployment.limits
        schedule = read_schedule(reminder.schedule, policies, now, at, problems, limits)
    namespace = reminder.namespace or DEFAULT_NAMESPACE
    reader = ChannelReader(deployment, namespace, problems)
    channels = reader.read(reminder.channels, f"{field}.channels")
    template_id = optional(reminder.template_id, NAME_BYTES, f"{field}.template_id", problems)
    params = NO_PARAMS
    if fits and reminder.HasField("params"):
        params = _params(reminder, f"{field}.params", problems)
    dedup_key = optional(reminder.dedup_key, DEDUP_KEY_BYTES, f"{field}.dedup_key", problems)
    group_id = optional(reminder.group_id, ID_BYTES, f"{field}.group_id", problems)
    labels = _labels(reminder.labels, f"{field}.labels", problems)
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


def _user(reminder: pb.Reminder, field: str, problems: Problems) -> str:
    user_id = reminder.user_id
    if user_id:
        check_length(user_id, ID_BYTES, f"{field}.user_id", problems)
    elif reminder.HasField("topic_id"):
        problems.add(
            f"{field}.topic_id",
            Reason.AUDIENCE_UNAVAILABLE,
            "topics are not served yet; use user_id",
        )
    else:
        problems.required(f"{field}.user_id", "who is to be reminded")
    return user_id


def _labels(
    labels: Mapping[str, str], field: str, problems: Problems
) -> tuple[tuple[str, str], ...]:
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

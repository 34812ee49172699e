"""Which fields an update may name."""

from typing import Final

from tocsin.v1 import reminder_pb2 as pb
from tocsin.v1 import reminder_service_pb2 as service_pb

from reminders.lifecycle.problems import Problems, Reason, one_of, shown

MASK: Final = "update_mask"
SCHEDULE: Final = "schedule"
_POLICIES: Final = tuple(field.name for field in pb.Policies.DESCRIPTOR.fields)
_RETRY: Final = tuple(field.name for field in pb.RetryPolicy.DESCRIPTOR.fields)
FIELDS: Final = (
    "user_id",
    SCHEDULE,
    "policies",
    "channels",
    "template_id",
    "params",
    "labels",
)
PATHS: Final = frozenset(
    (
        *FIELDS,
        *(f"policies.{name}" for name in _POLICIES),
        *(f"policies.retry.{name}" for name in _RETRY),
    )
)
_FIXED: Final = {
    "namespace": "names the reminder and is never changed",
    "reminder_id": "names the reminder and is never changed",
    "dedup_key": "is fixed at creation: it says which create this was",
    "group_id": "is fixed at creation: a cancel of its group must find it",
    "topic_id": "is fixed at creation: create another one for another topic",
    "status": "is changed by cancel, pause and resume",
    "pause_reason": "is changed by pause",
}
_OUTPUT: Final = "is decided by the server"


def read_mask(request: service_pb.UpdateReminderRequest, problems: Problems) -> tuple[str, ...]:
    """The paths, sorted, each once. What can't be updated is noted, with the reason."""
    paths = tuple(sorted(set(request.update_mask.paths)))
    if not paths:
        problems.required(MASK, f"the fields to replace, of {one_of(FIELDS)}")
    for path in paths:
        if path not in PATHS:
            problems.add(MASK, *_why_not(path))
    return paths


def _why_not(path: str) -> tuple[Reason, str]:
    name, _, inside = path.partition(".")
    if name in _FIXED:
        return Reason.FIELD_IMMUTABLE, f"{path}: {_FIXED[name]}"
    if name in pb.Reminder.DESCRIPTOR.fields_by_name and name not in FIELDS:
        return Reason.FIELD_IMMUTABLE, f"{path}: {_OUTPUT}"
    if name == "policies":
        return Reason.FIELD_UNKNOWN, f"{shown(path)} is none of {one_of(_POLICIES)} of policies"
    if name in FIELDS and inside:
        return Reason.FIELD_UNKNOWN, f"{shown(path)} is replaced as a whole: name {name}"
    return Reason.FIELD_UNKNOWN, f"{shown(path)} is none of {one_of(FIELDS)}"

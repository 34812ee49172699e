"""A reminder as callers see it."""

from typing import Final

from google.protobuf.struct_pb2 import Struct
from tocsin.v1 import reminder_pb2 as pb

from reminders.lifecycle import View
from reminders.model.entry import DueEntry
from reminders.model.record import Status
from scheduler.mapping.definitions import put_definition, put_instant
from scheduler.mapping.ledger import put_occurrence
from scheduler.tokens import etag_of

_STATUSES: Final = {
    Status.SCHEDULED: pb.REMINDER_STATUS_SCHEDULED,
    Status.PAUSED: pb.REMINDER_STATUS_PAUSED,
    Status.FIRED: pb.REMINDER_STATUS_FIRED,
    Status.CANCELLED: pb.REMINDER_STATUS_CANCELLED,
    Status.FAILED: pb.REMINDER_STATUS_FAILED,
}


def put_reminder(message: pb.Reminder, view: View, params: Struct | None = None) -> None:
    """Everything. `params` as in `put_definition`."""
    put_decisions(message, view)
    put_definition(message, view.record.definition, params)


def put_decisions(message: pb.Reminder, view: View) -> None:
    """What the server decided: all but the caller's own definition."""
    record = view.record
    message.namespace = record.namespace
    message.version = record.version
    if record.reminder_id:  # a validate_only has none
        message.reminder_id = record.reminder_id
        message.etag = etag_of(record.reminder_id, record.version)
    message.status = _STATUSES[view.status]
    for entry in view.ahead:
        _put_planned(message.next_occurrences.add(), entry, len(record.definition.channels))
    put_instant(message.create_time, record.created_at)
    put_instant(message.update_time, record.updated_at)
    if record.pause_reason:
        message.pause_reason = record.pause_reason


def _put_planned(message: pb.Occurrence, entry: DueEntry, targets: int) -> None:
    message.namespace = entry.namespace
    message.reminder_id = entry.reminder_id
    message.reminder_version = entry.version
    message.status = pb.OCCURRENCE_STATUS_PLANNED
    message.target_count = targets
    if entry.occurrence is not None:
        put_occurrence(message, entry.occurrence)

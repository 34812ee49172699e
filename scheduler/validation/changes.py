"""Which change of which version of a reminder."""

from msgspec import Struct
from tocsin.v1 import reminder_service_pb2 as pb

from reminders.lifecycle import Call
from reminders.lifecycle.problems import Problems, Reason, optional
from reminders.model.definition import Schedule
from scheduler.tokens import version_of
from scheduler.validation.names import Name, read_name
from scheduler.validation.reminders import ID_BYTES

Plain = (
    pb.CancelReminderRequest
    | pb.RescheduleReminderRequest
    | pb.PauseReminderRequest
    | pb.ResumeReminderRequest
)
"""Requests that name their reminder themselves."""


class ChangeRequest(Struct, frozen=True, kw_only=True):
    """Which version to change, and the id of this very call."""

    name: Name
    expected_version: int | None
    request_id: str | None
    schedule: Schedule | None = None
    """Of a reschedule."""
    paths: tuple[str, ...] = ()
    """Of an update."""

    @property
    def call(self) -> Call:
        """As the use cases take it."""
        return Call(
            namespace=self.name.namespace,
            reminder_id=self.name.reminder_id,
            expected_version=self.expected_version,
            request_id=self.request_id,
        )


def read_change(request: Plain, schedule: Schedule | None, problems: Problems) -> ChangeRequest:
    """`schedule`: that of a reschedule."""
    name = read_name(request.namespace, request.reminder_id, problems)
    return read_changed(name, request, problems, schedule)


def read_changed(
    name: Name,
    request: Plain | pb.UpdateReminderRequest,
    problems: Problems,
    schedule: Schedule | None = None,
) -> ChangeRequest:
    """What all changes have, of the reminder `name`."""
    version = None
    if request.etag:
        version = version_of(request.etag, name.reminder_id)
        if version is None:
            problems.add(
                "etag", Reason.VALUE_INVALID, "is not one of this reminder; send what Get answered"
            )
    return ChangeRequest(
        name=name,
        expected_version=version,
        request_id=optional(request.request_id, ID_BYTES, "request_id", problems),
        schedule=schedule,
    )

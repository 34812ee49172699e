"""Whose recipient record a request could lean on."""

from tocsin.v1 import reminder_pb2 as pb

from reminders.lifecycle.problems import Problems, check_length
from scheduler.validation.names import read_namespace
from scheduler.validation.reach import WORDS
from scheduler.validation.reminders import ID_BYTES


def record_wanted(reminder: pb.Reminder) -> tuple[str, str] | None:
    """Namespace and user whose record could fill something in; None if nothing, or nobody."""
    scratch = Problems()
    namespace = read_namespace(reminder.namespace, "namespace", scratch)
    check_length(reminder.user_id, ID_BYTES, "user_id", scratch)
    if not reminder.user_id or scratch.found:
        return None
    if lacks_zone(reminder.schedule) or any(map(_lacks_address, reminder.channels)):
        return namespace, reminder.user_id
    return None


def lacks_zone(schedule: pb.Schedule) -> bool:
    """Whether it has local times and does not say where."""
    kind = schedule.WhichOneof("kind")
    if kind == "local":
        return not schedule.local.time_zone
    return kind == "recurrence" and not schedule.recurrence.time_zone


def _lacks_address(channel: pb.Channel) -> bool:
    kind = channel.WhichOneof("kind")
    return kind in WORDS and not getattr(channel, kind).to

"""Which deliveries to send again."""

from tocsin.v1 import reminder_service_pb2 as pb

from reminders.lifecycle.problems import Problems, Reason
from reminders.lifecycle.reading import MAX_CHANNELS
from reminders.lifecycle.replaying import Asked
from reminders.recurrence.errors import KeyInvalid
from reminders.recurrence.identity import parse_occurrence_key


def read_replay(request: pb.ReplayOccurrenceRequest, problems: Problems) -> Asked:
    """Channels sorted, each once: the order does not make another call of it."""
    if not request.occurrence_id:
        problems.required("occurrence_id", "as `tocsin explain` shows it")
    else:
        try:
            parse_occurrence_key(request.occurrence_id)
        except KeyInvalid as error:
            problems.add("occurrence_id", Reason.VALUE_INVALID, error.reason)
    if len(request.channel_ids) > MAX_CHANNELS:
        problems.add("channel_ids", Reason.FIELD_TOO_LONG, f"at most {MAX_CHANNELS}")
    return Asked(
        occurrence_id=request.occurrence_id,
        channels=tuple(sorted(set(request.channel_ids))),
        force=request.force,
        dry_run=request.validate_only,
    )

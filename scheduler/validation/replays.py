"""Which deliveries to send again."""

from tocsin.v1 import reminder_service_pb2 as pb

from reminders.lifecycle.problems import Problems, Reason
from reminders.lifecycle.reading import MAX_CHANNELS
from reminders.lifecycle.replaying import Asked
from reminders.recurrence.errors import KeyInvalid
from reminders.recurrence.identity import parse_occurrence_key

MAX_SUBSCRIBERS = 100


def read_replay(request: pb.ReplayOccurrenceRequest, problems: Problems) -> Asked:
    """Channels and subscribers sorted, each once: the order does not make another call of it."""
    if not request.occurrence_id:
        problems.required("occurrence_id", "as `tocsin explain` shows it")
    else:
        try:
            parse_occurrence_key(request.occurrence_id)
        except KeyInvalid as error:
            problems.add("occurrence_id", Reason.VALUE_INVALID, error.reason)
    if len(request.channel_ids) > MAX_CHANNELS:
        problems.add("channel_ids", Reason.FIELD_TOO_LONG, f"at most {MAX_CHANNELS}")
    if len(request.subscriber_ids) > MAX_SUBSCRIBERS:
        said = f"at most {MAX_SUBSCRIBERS}; none at all for everybody whom it did not reach"
        problems.add("subscriber_ids", Reason.FIELD_TOO_LONG, said)
    if "" in request.subscriber_ids:
        problems.add("subscriber_ids", Reason.VALUE_INVALID, "an id is not empty")
    return Asked(
        occurrence_id=request.occurrence_id,
        channels=tuple(sorted(set(request.channel_ids))),
        subscribers=tuple(sorted(set(request.subscriber_ids))),
        force=request.force,
        dry_run=request.validate_only,
    )

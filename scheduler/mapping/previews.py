"""What a schedule would do."""

from tocsin.v1 import reminder_service_pb2 as service_pb

from reminders.lifecycle.previewing import LeftOut, Preview, Previewed
from scheduler.mapping.definitions import local_text, put_instant


def preview_message(preview: Preview) -> service_pb.PreviewOccurrencesResponse:
    """The answer."""
    response = service_pb.PreviewOccurrencesResponse(
        zone_data_version=preview.zone_data,
        holiday_data_version=preview.holiday_data,
        stopped=preview.stopped,
    )
    for one in preview.occurrences:
        _put_previewed(response.occurrences.add(), one)
    for skipped in preview.left_out:
        _put_left_out(response.left_out.add(), skipped)
    return response


def _put_previewed(message: service_pb.PreviewedOccurrence, one: Previewed) -> None:
    message.occurrence_id = one.occurrence_id
    message.nominal_local = local_text(one.nominal)
    message.planned_local = local_text(one.local)
    message.time_zone = one.zone
    message.fold = one.fold
    put_instant(message.planned_time, one.instant)
    message.utc_offset = one.offset
    message.policy = one.policy
    message.note = one.note


def _put_left_out(message: service_pb.LeftOutOccurrence, one: LeftOut) -> None:
    message.occurrence_id = one.occurrence_id
    message.nominal_local = local_text(one.nominal)
    message.time_zone = one.zone
    message.policy = one.policy
    message.note = one.note

"""Occurrences, deliveries and attempts."""

from typing import Final

from tocsin.v1 import reminder_pb2 as pb
from tocsin.v1 import reminder_service_pb2 as service_pb

from reminders.lifecycle import OccurrenceView
from reminders.lifecycle.targets import ends_about
from reminders.model.entry import Occurrence, Origin
from reminders.model.fanout import Fanout
from reminders.model.ledger import Attempt, DeliveryStatus, LedgerRow, OccurrenceStatus
from reminders.model.record import OccurrenceAnswer
from scheduler.mapping.definitions import local_text, put_duration, put_instant

_OCCURRENCES: Final = {
    OccurrenceStatus.PLANNED: pb.OCCURRENCE_STATUS_PLANNED,
    OccurrenceStatus.CLAIMED: pb.OCCURRENCE_STATUS_CLAIMED,
    OccurrenceStatus.COMPLETED: pb.OCCURRENCE_STATUS_COMPLETED,
    OccurrenceStatus.FAILED: pb.OCCURRENCE_STATUS_FAILED,
    OccurrenceStatus.SKIPPED: pb.OCCURRENCE_STATUS_SKIPPED,
    OccurrenceStatus.CANCELLED: pb.OCCURRENCE_STATUS_CANCELLED,
    OccurrenceStatus.EXPIRED: pb.OCCURRENCE_STATUS_EXPIRED,
}
_ORIGINS: Final = {
    Origin.SCHEDULE: pb.OCCURRENCE_ORIGIN_SCHEDULE,
    Origin.TRIGGER: pb.OCCURRENCE_ORIGIN_TRIGGER,
    Origin.BACKFILL: pb.OCCURRENCE_ORIGIN_BACKFILL,
}
_DELIVERIES: Final = {
    None: pb.DELIVERY_STATUS_UNSPECIFIED,
    DeliveryStatus.PENDING: pb.DELIVERY_STATUS_PENDING,
    DeliveryStatus.SENDING: pb.DELIVERY_STATUS_SENDING,
    DeliveryStatus.RETRYING: pb.DELIVERY_STATUS_RETRYING,
    DeliveryStatus.DELIVERED: pb.DELIVERY_STATUS_DELIVERED,
    DeliveryStatus.CONFIRMED: pb.DELIVERY_STATUS_CONFIRMED,
    DeliveryStatus.BOUNCED: pb.DELIVERY_STATUS_BOUNCED,
    DeliveryStatus.FAILED: pb.DELIVERY_STATUS_FAILED,
    DeliveryStatus.EXPIRED: pb.DELIVERY_STATUS_EXPIRED,
    DeliveryStatus.CANCELLED: pb.DELIVERY_STATUS_CANCELLED,
}


def put_occurrence(message: pb.Occurrence, occurrence: Occurrence) -> None:
    """What was promised."""
    message.occurrence_id = occurrence.occurrence_id
    message.nominal_local = local_text(occurrence.nominal_local)
    message.planned_local = local_text(occurrence.planned_local)
    message.time_zone = occurrence.zone
    message.fold = occurrence.fold
    put_instant(message.planned_time, occurrence.planned_at)
    put_instant(message.fire_time, occurrence.fire_at)
    message.zone_data_version = occurrence.zone_data
    message.origin = _ORIGINS[occurrence.origin]
    message.holiday_data_version = occurrence.holiday_data


def put_occurrence_view(message: pb.Occurrence, view: OccurrenceView) -> None:
    """What was promised and what became of it."""
    message.namespace = view.namespace
    message.reminder_id = view.reminder_id
    message.reminder_version = view.version
    put_occurrence(message, view.occurrence)
    message.status = _OCCURRENCES[view.status]
    message.reason = view.reason
    message.target_count = view.target_count
    if view.fanout is not None:
        put_fanout(message.fan_out, view.fanout)
    if view.claimed_at is not None:
        put_instant(message.claim_time, view.claimed_at)
    if view.skipped_through is not None:
        message.skipped_count = view.skipped_count
        message.skipped_through_local = local_text(view.skipped_through.planned_local)
        put_instant(message.skipped_through_time, view.skipped_through.planned_at)


def put_fanout(message: pb.FanOut, fanout: Fanout) -> None:
    """How far it has come."""
    message.topic_id = fanout.topic_id
    message.subscriber_count = fanout.subscribers
    message.target_count = fanout.counts.targets
    message.paused_count = fanout.paused
    message.filtered_count = fanout.filtered
    message.delivered_count = fanout.counts.taken
    message.failed_count = fanout.counts.failed
    message.stopped_count = fanout.counts.stopped
    message.open_count = fanout.counts.open
    message.finished = fanout.finished
    message.rate_per_second = fanout.per_second
    message.stop_reason = fanout.why
    put_instant(message.start_time, fanout.started_at)
    if fanout.counted_at is not None:
        put_instant(message.count_time, fanout.counted_at)
    end = ends_about(fanout)
    if end is not None:
        put_instant(message.estimated_end_time, end)


def put_delivery(message: pb.Delivery, row: LedgerRow) -> None:
    """One receiver of an occurrence."""
    message.namespace = row.namespace
    message.reminder_id = row.reminder_id
    message.occurrence_id = row.occurrence.occurrence_id
    message.delivery_key = row.delivery_key
    message.channel_id = row.channel_id
    message.subscriber_id = row.target
    message.status = _DELIVERIES[row.delivery]
    message.attempt_count = row.attempt_count
    message.provider_event_id = row.provider_event_id
    message.acknowledged = row.acknowledged
    if row.next_attempt_at is not None:
        put_instant(message.next_attempt_time, row.next_attempt_at)
    for attempt in row.attempts:
        _put_attempt(message.attempts.add(), attempt)
    if row.attempts:
        message.error_class = row.attempts[-1].error_class
    message.reason = row.reason


def put_fate(message: service_pb.OccurrenceFate, answer: OccurrenceAnswer) -> None:
    """What a change found out about one occurrence."""
    message.occurrence_id = answer.occurrence_id
    message.was_fired = answer.was_fired
    message.deliveries_stopped = answer.stopped
    put_instant(message.planned_time, answer.planned_at)


def _put_attempt(message: pb.Attempt, attempt: Attempt) -> None:
    message.number = attempt.number
    message.status_code = attempt.status_code
    message.error_class = attempt.error_class
    message.excerpt = attempt.excerpt
    message.replay_id = attempt.replay
    message.outcome_unknown = attempt.outcome_unknown or attempt.error_class == "outcome_unknown"
    put_instant(message.start_time, attempt.started_at)
    put_duration(message.duration, attempt.duration)

"""What became of a reminder, as callers see it."""

from typing import Final

from tocsin.v1 import reminder_service_pb2 as service_pb

from reminders.lifecycle.explaining import ExplainedOccurrence, Explanation
from reminders.lifecycle.verdicts import NextAction, Replay
from scheduler.mapping.definitions import put_instant
from scheduler.mapping.ledger import put_delivery, put_occurrence_view
from scheduler.mapping.reminders import put_reminder

_REPLAYS: Final = {
    Replay.SAFE: service_pb.REPLAY_SAFETY_SAFE,
    Replay.MAY_REPEAT: service_pb.REPLAY_SAFETY_MAY_REPEAT,
    Replay.ACKNOWLEDGED: service_pb.REPLAY_SAFETY_ACKNOWLEDGED,
    Replay.UNDER_WAY: service_pb.REPLAY_SAFETY_UNDER_WAY,
}


def put_explanation(message: service_pb.ExplainReminderResponse, found: Explanation) -> None:
    """Everything."""
    put_reminder(message.reminder, found.view)
    for one in found.occurrences:
        _put_occurrence(message.occurrences.add(), one)
    message.truncated = found.truncated
    _put_action(message.next_action, found.following)


def _put_occurrence(message: service_pb.ExplainedOccurrence, one: ExplainedOccurrence) -> None:
    put_occurrence_view(message.occurrence, one.view)
    message.policy = one.policy
    message.explanation = one.why
    for each in one.deliveries:
        delivery = message.deliveries.add()
        put_delivery(delivery.delivery, each.row)
        delivery.replay_command = each.command
        delivery.replay_safety = _REPLAYS[each.replay]
        _put_action(delivery.next_action, each.following)
    _put_action(message.next_action, one.following)


def _put_action(message: service_pb.NextAction, action: NextAction) -> None:
    message.owner = action.owner
    message.action = action.what
    if action.at is not None:
        put_instant(message.time, action.at)

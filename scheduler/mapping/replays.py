"""What a replay does, as callers see it."""

from collections.abc import Sequence
from typing import Final

from tocsin.v1 import reminder_service_pb2 as service_pb

from reminders.lifecycle.replaying import Replayed, Verdict
from reminders.lifecycle.replaying_targets import ReplayedAll

_VERDICTS: Final = {
    Verdict.SENT_AGAIN: service_pb.REPLAY_VERDICT_SENT_AGAIN,
    Verdict.ACKNOWLEDGED: service_pb.REPLAY_VERDICT_ACKNOWLEDGED,
    Verdict.UNDER_WAY: service_pb.REPLAY_VERDICT_UNDER_WAY,
    Verdict.CHANNEL_GONE: service_pb.REPLAY_VERDICT_CHANNEL_GONE,
    Verdict.SUBSCRIBER_GONE: service_pb.REPLAY_VERDICT_SUBSCRIBER_GONE,
}


def put_replayed(
    message: service_pb.ReplayOccurrenceResponse, found: Sequence[Replayed] | ReplayedAll
) -> None:
    """Every delivery, and the counts."""
    if isinstance(found, ReplayedAll):
        message.replay_count = found.again
        message.suppressed_count = found.taken
        return
    for one in found:
        message.deliveries.add(
            channel_id=one.row.channel_id,
            subscriber_id=one.row.target,
            delivery_key=one.row.delivery_key,
            verdict=_VERDICTS[one.verdict],
        )
    verdicts = [one.verdict for one in found]
    message.replay_count = verdicts.count(Verdict.SENT_AGAIN)
    message.suppressed_count = verdicts.count(Verdict.ACKNOWLEDGED)

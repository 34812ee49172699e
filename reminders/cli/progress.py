"""How far a fan-out has come, in a line."""

from tocsin.v1 import reminder_pb2 as pb
from tocsin.v1 import reminder_service_pb2 as calls
from tocsin.v1.reminder_service_pb2_grpc import ReminderServiceStub

from reminders.cli import rpc
from reminders.cli.render import moment, utc_text

NEWEST = 20
"""Occurrences looked at."""


def newest(stub: ReminderServiceStub, namespace: str, reminder: str) -> list[str]:
    """Of the newest occurrence that fired, and of those before it that are not finished."""
    request = calls.ListOccurrencesRequest(
        namespace=namespace, reminder_id=reminder, page_size=NEWEST
    )
    answer = stub.ListOccurrences(request, timeout=rpc.DEADLINE_S)
    fired = [each for each in answer.occurrences if each.HasField("fan_out")]
    shown = fired[:1] + [each for each in fired[1:] if not each.fan_out.finished]
    return [f"{each.occurrence_id}  {fanout_text(each.fan_out)}" for each in shown]


def fanout_text(fan_out: pb.FanOut) -> str:
    """`4,200 of about 8,000 told: 4,100 delivered, 60 failed; 812 a second, until about …`."""
    if not fan_out.HasField("count_time"):
        return f"telling the subscribers of {fan_out.topic_id}"
    told = f"{fan_out.target_count:,} told"
    if not fan_out.finished and fan_out.subscriber_count:
        told = f"{fan_out.target_count:,} of about {fan_out.subscriber_count:,} told"
    counts = {
        "delivered": fan_out.delivered_count,
        "failed": fan_out.failed_count,
        "stopped": fan_out.stopped_count,
        "under way": fan_out.open_count,
        "paused": fan_out.paused_count,
        "filtered out": fan_out.filtered_count,
    }
    said = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    text = f"{told}: {said}" if said else told
    if fan_out.stop_reason:
        text += f"; stopped: {fan_out.stop_reason}"
    if fan_out.HasField("estimated_end_time"):
        until = utc_text(moment(fan_out.estimated_end_time).replace(microsecond=0))
        text += f"; {fan_out.rate_per_second:,.0f} a second, until about {until}"
    return text

"""Which occurrences a request asks for, and what they are called. By arithmetic, not by the
product's calendar.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from tocsin.v1 import reminder_pb2


def whole_ms(at: datetime) -> datetime:
    """As the service rounds: up."""
    return at + timedelta(microseconds=-at.microsecond % 1000)


def aware(stamp: Any) -> datetime:
    """Of a protobuf timestamp."""
    at: datetime = stamp.ToDatetime(tzinfo=UTC)
    return at


def instant(schedule: reminder_pb2.Schedule) -> datetime:
    """Of a one-shot."""
    return aware(schedule.at)


def instant_id(schedule: reminder_pb2.Schedule) -> str:
    """As `Occurrence.occurrence_id` documents it."""
    at = instant(schedule)
    millis = f".{at.microsecond // 1000:03}" if at.microsecond else ""
    return f"{at:%Y%m%dT%H%M%S}{millis}Z"


def occurrences_of(rule: reminder_pb2.Recurrence) -> dict[str, datetime]:
    """Of a rule of every few seconds, by id."""
    parts = dict(part.split("=") for part in rule.rrule.split(";"))
    start = datetime.fromisoformat(rule.start).replace(tzinfo=UTC)
    step = timedelta(seconds=int(parts["INTERVAL"]))
    at = [start + step * i for i in range(int(parts["COUNT"]))]
    return {f"{each:%Y%m%dT%H%M%S}": each for each in at}

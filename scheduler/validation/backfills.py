"""Which past range to backfill."""

from datetime import datetime, timedelta

from msgspec import Struct
from tocsin.v1 import reminder_service_pb2 as pb

from reminders.lifecycle.problems import Problems, Reason
from scheduler.validation.times import read_instant

LONGEST_RANGE = timedelta(days=366)


class Range(Struct, frozen=True, kw_only=True):
    """From `start` until before `end`; None: now."""

    start: datetime
    end: datetime | None


def read_range(
    request: pb.BackfillReminderRequest, now: datetime, problems: Problems
) -> Range | None:
    """None: something is wrong with it, and noted."""
    if not request.HasField("start_time"):
        problems.required("start_time", "where the past range begins")
        return None
    start = read_instant(request.start_time, "start_time", problems)
    end = None
    if request.HasField("end_time"):
        end = read_instant(request.end_time, "end_time", problems)
        if end is None:
            return None
    if start is None:
        return None
    until = end or now
    if until > now:
        problems.add(
            "end_time",
            Reason.TIME_AHEAD,
            f"{until.isoformat()} lies ahead, where the reminder rings by itself; leave it empty "
            "for now",
        )
    elif not timedelta(0) < until - start <= LONGEST_RANGE:
        problems.add(
            "start_time",
            Reason.RANGE_INVALID,
            f"must lie before end_time (now, unless given) by at most {LONGEST_RANGE.days} days; "
            "backfill a longer range in parts",
        )
    else:
        return Range(start=start, end=end)
    return None

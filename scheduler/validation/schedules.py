"""When: the four kinds of schedule."""

from datetime import datetime, time

from msgspec import Struct
from tocsin.v1 import reminder_pb2 as pb

from reminders.lifecycle.problems import Problems, Reason
from reminders.lifecycle.recurrences import AskedRecurrence, read_recurrence
from reminders.lifecycle.request_limits import DEFAULT_REQUEST_LIMITS, RequestLimits
from reminders.lifecycle.texts import A_ZONE, check_ahead, read_date, read_time, read_zone
from reminders.model.definition import After, At, LocalTime, Policies, Recurring, Schedule
from reminders.recurrence.zones import localize
from scheduler.validation.times import read_duration, read_instant

_KINDS = "at, after, local or recurrence"
A_ZONE_OR_RECORD = f"{A_ZONE}, here or in the user's recipient record (PutRecipient)"


class Against(Struct, frozen=True, kw_only=True, gc=False):
    """What a schedule is read against."""

    now: datetime
    limits: RequestLimits = DEFAULT_REQUEST_LIMITS
    zone: str = ""
    """Of local times that do not say where; empty: none is known."""
    zone_wanted: str = A_ZONE_OR_RECORD
    """What to give where none is known."""


def read_schedule(
    schedule: pb.Schedule,
    policies: Policies,
    against: Against,
    field: str,
    problems: Problems,
) -> Schedule | None:
    """None if there is none or it can't be read; what is wrong is noted."""
    kind = schedule.WhichOneof("kind")
    if kind == "at":
        instant = read_instant(schedule.at, f"{field}.at", problems)
        if instant is None:
            return None
        check_ahead(instant, against.now, f"{field}.at", problems, against.limits)
        return At(instant=instant)
    if kind == "after":
        return _after(schedule, f"{field}.after", problems, against.limits)
    if kind == "local":
        return _local(schedule.local, policies, against, f"{field}.local", problems)
    if kind == "recurrence":
        return _recurrence(schedule.recurrence, against, f"{field}.recurrence", problems)
    problems.required(field, f"one of {_KINDS}")
    return None


def _after(
    schedule: pb.Schedule, field: str, problems: Problems, limits: RequestLimits
) -> After | None:
    delay = read_duration(schedule.after, field, problems)
    if delay is None:
        return None
    if delay > limits.horizon:
        problems.add(
            field,
            Reason.TIME_TOO_FAR,
            f"is more than {limits.horizon_text}; create it later",
        )
    return After(delay=delay)


def _local(
    local: pb.LocalTime, policies: Policies, against: Against, field: str, problems: Problems
) -> LocalTime | None:
    day = read_date(local.date, f"{field}.date", problems) if local.date else None
    wall = read_time(local.time, f"{field}.time", problems)
    zone = local.time_zone or against.zone
    where = read_zone(zone, f"{field}.time_zone", problems, against.zone_wanted)
    if wall is None or where is None:
        return None
    if day is not None:
        instants = localize(
            datetime.combine(day, wall), where, gap=policies.gap, overlap=policies.overlap
        )
        if instants:
            instant = instants[-1].instant
            check_ahead(instant, against.now, f"{field}.date", problems, against.limits)
    return LocalTime(date=day.isoformat() if day else None, time=_time_text(wall), zone=zone)


def _time_text(wall: time) -> str:
    return wall.isoformat("seconds" if wall.second else "minutes")


def _recurrence(
    asked: pb.Recurrence, against: Against, field: str, problems: Problems
) -> Recurring | None:
    last = Problems()  # of the last field: what is wrong is listed in the order of the fields
    until = None
    if asked.HasField("until"):
        until = read_instant(asked.until, f"{field}.until", last, round_up=False)
    rule = asked.WhichOneof("rule")
    plain = AskedRecurrence(
        rrule=asked.rrule if rule == "rrule" else None,
        cron=asked.cron if rule == "cron" else None,
        start=asked.start,
        time_zone=asked.time_zone or against.zone,
        exdates=asked.exdates,
        rdates=asked.rdates,
        max_occurrences=asked.max_occurrences,
        until=until,
        zone_wanted=against.zone_wanted,
    )
    found = read_recurrence(plain, against.now, field, problems, against.limits)
    problems.found += last.found
    return found

"""When: the four kinds of schedule."""

from datetime import datetime, time

from tocsin.v1 import reminder_pb2 as pb

from reminders.lifecycle.problems import Problems, Reason
from reminders.lifecycle.recurrences import AskedRecurrence, read_recurrence
from reminders.lifecycle.request_limits import DEFAULT_REQUEST_LIMITS, RequestLimits
from reminders.lifecycle.texts import check_ahead, read_date, read_time, read_zone
from reminders.model.definition import After, At, LocalTime, Policies, Recurring, Schedule
from reminders.recurrence.zones import localize
from scheduler.validation.times import read_duration, read_instant

_KINDS = "at, after, local or recurrence"


def read_schedule(
    schedule: pb.Schedule,
    policies: Policies,
    now: datetime,
    field: str,
    problems: Problems,
    limits: RequestLimits = DEFAULT_REQUEST_LIMITS,
) -> Schedule | None:
    """None if there is none or it can't be read; what is wrong is noted."""
    kind = schedule.WhichOneof("kind")
    if kind == "at":
        instant = read_instant(schedule.at, f"{field}.at", problems)
        if instant is None:
            return None
        check_ahead(instant, now, f"{field}.at", problems, limits)
        return At(instant=instant)
    if kind == "after":
        return _after(schedule, f"{field}.after", problems, limits)
    if kind == "local":
        return _local(schedule.local, policies, now, f"{field}.local", problems, limits)
    if kind == "recurrence":
        return _recurrence(schedule.recurrence, now, f"{field}.recurrence", problems, limits)
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
    local: pb.LocalTime,
    policies: Policies,
    now: datetime,
    field: str,
    problems: Problems,
    limits: RequestLimits,
) -> LocalTime | None:
    day = read_date(local.date, f"{field}.date", problems) if local.date else None
    wall = read_time(local.time, f"{field}.time", problems)
    where = read_zone(local.time_zone, f"{field}.time_zone", problems)
    if wall is None or where is None:
        return None
    if day is not None:
        instants = localize(
            datetime.combine(day, wall), where, gap=policies.gap, overlap=policies.overlap
        )
        if instants:
            check_ahead(instants[-1].instant, now, f"{field}.date", problems, limits)
    return LocalTime(
        date=day.isoformat() if day else None, time=_time_text(wall), zone=local.time_zone
    )


def _time_text(wall: time) -> str:
    return wall.isoformat("seconds" if wall.second else "minutes")


def _recurrence(
    asked: pb.Recurrence, now: datetime, field: str, problems: Problems, limits: RequestLimits
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
        time_zone=asked.time_zone,
        exdates=asked.exdates,
        rdates=asked.rdates,
        max_occurrences=asked.max_occurrences,
        until=until,
    )
    found = read_recurrence(plain, now, field, problems, limits)
    problems.found += last.found
    return found

"""When: the four kinds of schedule."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, time

from tocsin.v1 import reminder_pb2 as pb

from reminders.model.definition import After, At, LocalTime, Policies, Recurring, Schedule
from reminders.recurrence.cron import Cron
from reminders.recurrence.errors import RuleInvalid
from reminders.recurrence.rules import Rule
from reminders.recurrence.zones import localize
from scheduler.validation.problems import Problems, Reason, check_count
from scheduler.validation.times import (
    FARTHEST,
    check_ahead,
    read_date,
    read_duration,
    read_instant,
    read_local,
    read_time,
    read_zone,
)

MAX_DATES = 500
"""exdates, and rdates."""
MAX_OCCURRENCES = 999_999_999

_KINDS = "at, after, local or recurrence"


def read_schedule(
    schedule: pb.Schedule, policies: Policies, now: datetime, field: str, problems: Problems
) -> Schedule | None:
    """None if there is none or it can't be read; what is wrong is noted."""
    kind = schedule.WhichOneof("kind")
    if kind == "at":
        instant = read_instant(schedule.at, f"{field}.at", problems)
        if instant is None:
            return None
        check_ahead(instant, now, f"{field}.at", problems)
        return At(instant=instant)
    if kind == "after":
        return _after(schedule, f"{field}.after", problems)
    if kind == "local":
        return _local(schedule.local, policies, now, f"{field}.local", problems)
    if kind == "recurrence":
        return _recurrence(schedule.recurrence, now, f"{field}.recurrence", problems)
    problems.required(field, f"one of {_KINDS}")
    return None


def _after(schedule: pb.Schedule, field: str, problems: Problems) -> After | None:
    delay = read_duration(schedule.after, field, problems)
    if delay is None:
        return None
    if delay > FARTHEST:
        problems.add(field, Reason.TIME_TOO_FAR, "is more than ten years; create it later")
    return After(delay=delay)


def _local(
    local: pb.LocalTime, policies: Policies, now: datetime, field: str, problems: Problems
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
            check_ahead(instants[-1].instant, now, f"{field}.date", problems)
    return LocalTime(
        date=day.isoformat() if day else None, time=_time_text(wall), zone=local.time_zone
    )


def _time_text(wall: time) -> str:
    return wall.isoformat("seconds" if wall.second else "minutes")


def _recurrence(
    asked: pb.Recurrence, now: datetime, field: str, problems: Problems
) -> Recurring | None:
    rule, cron = _rule(asked, field, problems)
    start = read_local(asked.start, f"{field}.start", problems) if asked.start else None
    if rule is not None and not asked.start:
        problems.required(f"{field}.start", "the first local time, such as 2026-12-07T09:00")
    where = read_zone(asked.time_zone, f"{field}.time_zone", problems)
    exdates = _dates(asked.exdates, f"{field}.exdates", problems)
    rdates = _dates(asked.rdates, f"{field}.rdates", problems)
    count = _count(asked, rule, field, problems)
    until = _until(asked, rule, field, problems)
    if start is not None and where is not None:
        first = start.replace(tzinfo=where)
        if first > now + FARTHEST:
            problems.add(f"{field}.start", Reason.TIME_TOO_FAR, "is more than ten years ahead")
        if until is not None and until < first:
            problems.add(f"{field}.until", Reason.RULE_INVALID, "lies before start")
    if where is None or (rule is None and cron is None):
        return None
    return Recurring(
        rrule=replace(rule, count=None, until=None).text if rule is not None else None,
        cron=cron.text if cron is not None else None,
        start_local=start,
        zone=asked.time_zone,
        exdates_local=exdates,
        rdates_local=rdates,
        max_occurrences=count,
        until=until,
    )


def _rule(asked: pb.Recurrence, field: str, problems: Problems) -> tuple[Rule | None, Cron | None]:
    """One of the two, or neither and a problem."""
    kind = asked.WhichOneof("rule")
    try:
        if kind == "rrule":
            return Rule.parse(asked.rrule), None
        if kind == "cron":
            return None, Cron.parse(asked.cron)
    except RuleInvalid as error:
        problems.add(f"{field}.{kind}", Reason.RULE_INVALID, f"{error.part} {error.reason}")
    else:
        problems.required(field, "one of rrule or cron")
    return None, None


def _dates(texts: Sequence[str], field: str, problems: Problems) -> tuple[datetime, ...]:
    """A set: sorted, each once."""
    if not texts:
        return ()
    check_count(len(texts), MAX_DATES, field, problems)
    found = set()
    for index, text in enumerate(texts[:MAX_DATES]):
        local = read_local(text, f"{field}[{index}]", problems)
        if local is not None:
            found.add(local)
    return tuple(sorted(found))


def _count(asked: pb.Recurrence, rule: Rule | None, field: str, problems: Problems) -> int | None:
    inside = rule.count if rule is not None else None
    beside = asked.max_occurrences
    if not 0 <= beside <= MAX_OCCURRENCES:
        problems.add(
            f"{field}.max_occurrences",
            Reason.VALUE_INVALID,
            f"must be from 1 to {MAX_OCCURRENCES}, or 0 for no such end",
        )
    if inside is not None and beside:
        problems.add(
            f"{field}.max_occurrences",
            Reason.RULE_INVALID,
            "is given beside COUNT in rrule; keep one of the two",
        )
    return inside if inside is not None else (beside or None)


def _until(
    asked: pb.Recurrence, rule: Rule | None, field: str, problems: Problems
) -> datetime | None:
    inside = rule.until if rule is not None else None
    if not asked.HasField("until"):
        return inside
    if inside is not None:
        problems.add(
            f"{field}.until",
            Reason.RULE_INVALID,
            "is given beside UNTIL in rrule; keep one of the two",
        )
    return read_instant(asked.until, f"{field}.until", problems, round_up=False)

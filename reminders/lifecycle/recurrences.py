"""A recurrence as a caller writes it → its normal form.

Here, and not at the gRPC edge, since `tocsin preview` reads the same without a server: both must
take the same rules, refuse the same ones, and for the same reason.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from msgspec import Struct

from reminders.errors import InvalidRequest, Violation
from reminders.lifecycle.problems import Problems, Reason, check_count
from reminders.lifecycle.request_limits import DEFAULT_REQUEST_LIMITS, RequestLimits
from reminders.lifecycle.texts import A_ZONE, read_local, read_local_in, read_zone
from reminders.model.definition import Recurring, Schedule
from reminders.recurrence.cron import Cron
from reminders.recurrence.errors import RecurrenceError, RuleExhausted, RuleInvalid
from reminders.recurrence.policies import CalendarPolicies, MissingDay
from reminders.recurrence.rules import Rule
from reminders.recurrence.series import Series
from reminders.recurrence.spacing import closer_than

MAX_DATES = 500
"""exdates, and rdates."""
MAX_OCCURRENCES = 999_999_999
_FINEST = timedelta(seconds=1)
"""No rule names two times that are closer."""


class AskedRecurrence(Struct, frozen=True, kw_only=True):
    """`tocsin.v1.Recurrence` as plain values. Empty texts and 0 are "not given"."""

    rrule: str | None
    cron: str | None
    """At most one of the two is given."""
    start: str
    time_zone: str
    exdates: Sequence[str]
    rdates: Sequence[str]
    max_occurrences: int
    until: datetime | None
    """Aware, UTC, in whole milliseconds."""
    zone_wanted: str = A_ZONE
    """What to give where `time_zone` is empty."""


def read_recurrence(
    asked: AskedRecurrence,
    now: datetime,
    field: str,
    problems: Problems,
    limits: RequestLimits = DEFAULT_REQUEST_LIMITS,
) -> Recurring | None:
    """None if it can't be read; what is wrong is noted."""
    rule, cron = _rule(asked, field, problems)
    start = read_local(asked.start, f"{field}.start", problems) if asked.start else None
    if rule is not None and not asked.start:
        problems.required(f"{field}.start", "the first local time, such as 2026-12-07T09:00")
    where = read_zone(asked.time_zone, f"{field}.time_zone", problems, asked.zone_wanted)
    exdates = _dates(asked.exdates, where, f"{field}.exdates", problems)
    rdates = _dates(asked.rdates, where, f"{field}.rdates", problems)
    count = _count(asked, rule, field, problems)
    until = _until(asked, rule, field, problems)
    if start is not None and where is not None:
        first = start.replace(tzinfo=where)
        if first > now + limits.horizon:
            problems.add(
                f"{field}.start",
                Reason.TIME_TOO_FAR,
                f"is more than {limits.horizon_text} ahead; create it later",
            )
        if until is not None and until < first:
            inside = asked.until is None
            problems.add(
                f"{field}.{'rrule' if inside else 'until'}",
                Reason.RULE_INVALID,
                f"{'UNTIL ' if inside else ''}lies before start: nothing would ring; end it later",
            )
    if where is None or (rule is None and cron is None):
        return None
    begins = start or now.astimezone(where).replace(tzinfo=None, microsecond=0)
    _check_spacing(rule or cron, begins, field, problems, limits)
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


def _rule(
    asked: AskedRecurrence, field: str, problems: Problems
) -> tuple[Rule | None, Cron | None]:
    """One of the two, or neither and a problem."""
    kind = "rrule" if asked.rrule is not None else "cron"
    try:
        if asked.rrule is not None:
            return Rule.parse(asked.rrule), None
        if asked.cron is not None:
            return None, Cron.parse(asked.cron)
    except RuleInvalid as error:
        problems.add(f"{field}.{kind}", Reason.RULE_INVALID, f"{error.part} {error.reason}")
    else:
        problems.required(field, "one of rrule or cron")
    return None, None


def _check_spacing(
    rule: Rule | Cron | None, start: datetime, field: str, problems: Problems, limits: RequestLimits
) -> None:
    """Not more often than the deployment lets a rule ring."""
    if rule is None or limits.min_interval <= _FINEST:
        return
    series = _alone(rule, start)
    if series is None:
        return  # refused when its occurrences are computed
    close = closer_than(limits.min_interval, series)
    if close is not None:
        one, other = close
        problems.add(
            f"{field}.{'rrule' if isinstance(rule, Rule) else 'cron'}",
            Reason.RULE_TOO_FREQUENT,
            f"names {one.isoformat()} and {other.isoformat()}: at least "
            f"{limits.min_interval_text} must lie between two occurrences here; space them out",
        )


def _alone(rule: Rule | Cron, start: datetime) -> Series | None:
    """The rule without what is beside it; a 31st that its months never have is clamped."""
    for missing_day in (MissingDay.SKIP, MissingDay.CLAMP):
        policies = CalendarPolicies(missing_day=missing_day)
        with suppress(RecurrenceError):
            return Series(rule=rule, start_local=start, zone="UTC", policies=policies)
    return None


def _dates(
    texts: Sequence[str], where: ZoneInfo | None, field: str, problems: Problems
) -> tuple[datetime, ...]:
    """A set of local times in the rule's zone: sorted, each once."""
    if not texts:
        return ()
    check_count(len(texts), MAX_DATES, field, problems)
    found = set()
    for index, text in enumerate(texts[:MAX_DATES]):
        local = read_local_in(text, where, f"{field}[{index}]", problems)
        if local is not None:
            found.add(local)
    return tuple(sorted(found))


def _count(asked: AskedRecurrence, rule: Rule | None, field: str, problems: Problems) -> int | None:
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
    asked: AskedRecurrence, rule: Rule | None, field: str, problems: Problems
) -> datetime | None:
    inside = rule.until if rule is not None else None
    if asked.until is None:
        return inside
    if inside is not None:
        problems.add(
            f"{field}.until",
            Reason.RULE_INVALID,
            "is given beside UNTIL in rrule; keep one of the two",
        )
    return asked.until


_PARTS = frozenset({"start", "exdates", "rdates", "until", "max_occurrences"})
"""Parts of a series with a field of their own; all others stand in the rule."""


def rule_refused(
    error: RecurrenceError, schedule: Schedule, field: str = "schedule"
) -> InvalidRequest:
    """A rule that reads well and can't be computed: names the field of the part that is wrong."""
    rule = "cron" if isinstance(schedule, Recurring) and schedule.rrule is None else "rrule"
    remedy = ""
    if isinstance(error, RuleExhausted):
        remedy = "; its parts seem never to meet: drop or widen one of them"
    return InvalidRequest(
        violations=[
            Violation(
                field=f"{field}.recurrence.{error.part if error.part in _PARTS else rule}",
                reason=Reason.RULE_INVALID.value,
                description=f"{error.part} {error.reason}{remedy}",
            )
        ]
    )

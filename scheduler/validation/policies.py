"""Policies: enums, limits, defaults."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final, TypeVar

from google.protobuf.duration_pb2 import Duration
from tocsin.v1 import reminder_pb2 as pb

from reminders.lifecycle.problems import Problems, Reason
from reminders.lifecycle.texts import read_holiday_calendar
from reminders.model.definition import CatchUp, Policies, Retry
from reminders.recurrence.policies import Gap, MissingDay, Overlap
from scheduler.validation.times import read_duration

SECOND = timedelta(seconds=1)
MAX_LATENESS = timedelta(days=7)
"""Of catch_up_max_age and expire_after: due entries are kept for some weeks past their time."""
MAX_JITTER = timedelta(seconds=30)
MAX_RETRY_AGE = timedelta(days=3)
MAX_ATTEMPTS = 100
MAX_SCHEDULE = 32

# By number on the wire; 0 is the default.
GAPS: Final[Mapping[int, Gap]] = dict(enumerate((Gap.NEXT_VALID, *Gap)))
OVERLAPS: Final[Mapping[int, Overlap]] = dict(enumerate((Overlap.EARLIER, *Overlap)))
MISSING_DAYS: Final[Mapping[int, MissingDay]] = dict(enumerate((MissingDay.SKIP, *MissingDay)))
CATCH_UPS: Final[Mapping[int, CatchUp]] = dict(enumerate((CatchUp.LATEST, *CatchUp)))

DEFAULTS: Final = Policies()

T = TypeVar("T")


def read_policies(asked: pb.Policies, field: str, problems: Problems) -> Policies:
    """With every default filled in."""
    catch_up_max_age, expire_after = DEFAULTS.catch_up_max_age, DEFAULTS.expire_after
    jitter = DEFAULTS.jitter
    if asked.HasField("catch_up_max_age"):
        at = f"{field}.catch_up_max_age"
        catch_up_max_age = _within(asked.catch_up_max_age, SECOND, MAX_LATENESS, at, problems)
    if asked.HasField("expire_after"):
        at = f"{field}.expire_after"
        expire_after = _within(asked.expire_after, SECOND, MAX_LATENESS, at, problems)
    if asked.HasField("jitter"):
        jitter = _within(asked.jitter, timedelta(0), MAX_JITTER, f"{field}.jitter", problems)
    retry = DEFAULTS.retry
    if asked.HasField("retry"):
        retry = _retry(asked.retry, f"{field}.retry", problems)
    return Policies(
        gap=_choice(GAPS, asked.gap, f"{field}.gap", problems),
        overlap=_choice(OVERLAPS, asked.overlap, f"{field}.overlap", problems),
        missing_day=_choice(MISSING_DAYS, asked.missing_day, f"{field}.missing_day", problems),
        holiday_calendar=read_holiday_calendar(
            asked.holiday_calendar, f"{field}.holiday_calendar", problems
        ),
        catch_up=_choice(CATCH_UPS, asked.catch_up, f"{field}.catch_up", problems),
        catch_up_max_age=_same(catch_up_max_age, DEFAULTS.catch_up_max_age),
        expire_after=_same(expire_after, DEFAULTS.expire_after),
        jitter=_same(jitter, DEFAULTS.jitter),
        retry=_same(retry, DEFAULTS.retry),
    )


def _same(value: T, default: T) -> T:
    """The default itself where it is equal: the stored form leaves defaults out by identity."""
    return default if value == default else value


def _retry(asked: pb.RetryPolicy, field: str, problems: Problems) -> Retry:
    schedule = _schedule(asked, f"{field}.schedule", problems)
    attempts = asked.max_attempts or len(schedule) or DEFAULTS.retry.max_attempts
    if not 1 <= attempts <= MAX_ATTEMPTS:
        problems.add(
            f"{field}.max_attempts",
            Reason.VALUE_INVALID,
            f"must be from 1 to {MAX_ATTEMPTS}, or 0 for {DEFAULTS.retry.max_attempts}",
        )
    max_age = DEFAULTS.retry.max_age
    if asked.HasField("max_age"):
        max_age = _within(asked.max_age, SECOND, MAX_RETRY_AGE, f"{field}.max_age", problems)
    return Retry(
        max_attempts=_same(attempts, DEFAULTS.retry.max_attempts),
        max_age=_same(max_age, DEFAULTS.retry.max_age),
        schedule=schedule,
    )


def _schedule(asked: pb.RetryPolicy, field: str, problems: Problems) -> tuple[timedelta, ...]:
    """Empty: the deployment's."""
    if len(asked.schedule) > MAX_SCHEDULE:
        problems.add(field, Reason.VALUE_INVALID, f"must have at most {MAX_SCHEDULE} waits")
        return ()
    waits = tuple(
        _within(wait, timedelta(0), MAX_RETRY_AGE, f"{field}[{place}]", problems)
        for place, wait in enumerate(asked.schedule)
    )
    if waits and waits[0]:
        problems.add(
            f"{field}[0]", Reason.VALUE_INVALID, "must be 0s: the first attempt waits for nothing"
        )
    return waits


def _within(
    duration: Duration, low: timedelta, high: timedelta, field: str, problems: Problems
) -> timedelta:
    found = read_duration(duration, field, problems)
    if found is None:
        return low
    if not low <= found <= high:
        problems.add(
            field,
            Reason.VALUE_INVALID,
            f"must be from {low.total_seconds():.0f}s to {high.total_seconds():.0f}s",
        )
    return found


def _choice(choices: Mapping[int, T], number: int, field: str, problems: Problems) -> T:
    try:
        return choices[number]
    except KeyError:
        problems.add(
            field, Reason.VALUE_INVALID, f"{number} is not known; use 0 to {len(choices) - 1}"
        )
        return choices[0]

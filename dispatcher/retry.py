"""When a failed delivery is tried again. Pure: a repeat of a settlement finds the same time."""

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta

from reminders.lifecycle.planning import instant_ms
from reminders.model.definition import RETRY_SCHEDULE
from reminders.model.entry import Body, Occurrence, Origin, Replay

SOONEST = timedelta(seconds=1)
"""No retry comes sooner: the clocks of two processes may differ by 0.2 s, and the later attempt's
row must have the later stamp."""

_UNIT = 1 << 64


def backoff(
    delivery_key: str, attempt: int, schedule: Sequence[timedelta] = RETRY_SCHEDULE
) -> timedelta:
    """How long to wait after that attempt failed: up to the schedule's wait (full jitter).

    `schedule`: the longest wait before each attempt, from the first one on; the last of them holds
    for all further ones. The share is drawn from key and attempt, so what failed together does not
    return together.
    """
    return schedule[min(attempt, len(schedule) - 1)] * _drawn(delivery_key, attempt)


def share(delivery_key: str, number: int) -> float:
    """Evenly in 0.5 to 1, and always the same for the same arguments."""
    return 0.5 + _drawn(delivery_key, number) / 2


def _drawn(delivery_key: str, number: int) -> float:
    digest = hashlib.blake2b(f"{delivery_key}#{number}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) / _UNIT


def next_attempt_at(
    delivery_key: str,
    attempt: int,
    ended_at: datetime,
    retry_after: timedelta | None,
    schedule: Sequence[timedelta] = RETRY_SCHEDULE,
) -> datetime:
    """The time of the attempt after this one. `ended_at` is as recorded in the ledger.

    What the receiver asked for is honoured where it is longer than the back-off.
    """
    wait = max(backoff(delivery_key, attempt, schedule), SOONEST)
    if retry_after is not None:
        wait = max(wait, retry_after)
    return instant_ms(ended_at + wait)


def refusal(
    body: Body,
    occurrence: Occurrence,
    spent: int,
    at: datetime,
    *,
    claimed_at: datetime | None = None,
    replay: Replay | None = None,
) -> str | None:
    """Why there is no attempt at that time after `spent` ones: a stable word. None: there is.

    `claimed_at`: from then on the age of a backfilled one counts, whose time is long past. That of
    a replay counts from its call, and it does not expire: somebody wants it in spite of its age.
    """
    if spent >= body.retry.max_attempts:
        return "attempts_exhausted"
    if replay is None and expired(body, occurrence, at):
        return "expired"
    since = occurrence.fire_at
    if occurrence.origin is Origin.BACKFILL and claimed_at is not None:
        since = claimed_at
    if replay is not None:
        since = replay.asked_at
    if spent and at > since + body.retry.max_age:
        return "max_age"
    return None


def expired(body: Body, occurrence: Occurrence, at: datetime) -> bool:
    """Whether a one-shot is too late to ring. For a rule the scanner asks its catch-up policy."""
    return body.expire_after is not None and at > occurrence.fire_at + body.expire_after

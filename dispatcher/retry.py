"""When a failed delivery is tried again. Pure: a repeat of a settlement finds the same time."""

import hashlib
from datetime import datetime, timedelta

from reminders.lifecycle.planning import instant_ms
from reminders.model.entry import Body, Occurrence, Origin

FIRST = timedelta(seconds=2)
FACTOR = 3
"""2 s, 6 s, 18 s, … : the default 12 attempts span about 4 hours; doubling would give up in one."""
CAP = timedelta(hours=1)

_EXPONENT_MAX = 16  # far beyond the cap, and no overflow
_UNIT = 1 << 64


def backoff(delivery_key: str, attempt: int) -> timedelta:
    """How long to wait after that attempt failed: exponential and bounded, of which 50 to 100 %.

    The share is drawn from key and attempt, so what failed together does not return together.
    """
    full = min(FIRST * int(FACTOR ** min(attempt - 1, _EXPONENT_MAX)), CAP)
    return full * share(delivery_key, attempt)


def share(delivery_key: str, number: int) -> float:
    """Evenly in 0.5 to 1, and always the same for the same arguments."""
    digest = hashlib.blake2b(f"{delivery_key}#{number}".encode(), digest_size=8).digest()
    return 0.5 + int.from_bytes(digest) / _UNIT / 2


def next_attempt_at(
    delivery_key: str, attempt: int, ended_at: datetime, retry_after: timedelta | None
) -> datetime:
    """The time of the attempt after this one. `ended_at` is as recorded in the ledger.

    What the receiver asked for is honoured where it is longer than the back-off.
    """
    wait = backoff(delivery_key, attempt)
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
) -> str | None:
    """Why there is no attempt at that time after `spent` ones: a stable word. None: there is.

    `claimed_at`: from then on the age of a backfilled one counts, whose time is long past.
    """
    if expired(body, occurrence, at):
        return "expired"
    if spent >= body.retry.max_attempts:
        return "attempts_exhausted"
    since = occurrence.fire_at
    if occurrence.origin is Origin.BACKFILL and claimed_at is not None:
        since = claimed_at
    if spent and at > since + body.retry.max_age:
        return "max_age"
    return None


def expired(body: Body, occurrence: Occurrence, at: datetime) -> bool:
    """Whether a one-shot is too late to ring. For a rule the scanner asks its catch-up policy."""
    return body.expire_after is not None and at > occurrence.fire_at + body.expire_after

"""Which missed occurrences of a rule need not ring any more. Pure."""

from datetime import datetime, timedelta

from reminders.buckets import MINUTE
from reminders.model.definition import CatchUp

LATE = timedelta(seconds=30)
"""Up to this it rings a little late, whatever the policy; under NONE up to a minute, so that a
takeover or a restart skips nothing."""


def overtaken(
    policy: CatchUp,
    max_age: timedelta,
    *,
    fire_at: datetime,
    next_at: datetime | None,
    now: datetime,
) -> str | None:
    """Why an occurrence that should have rung at `fire_at` is skipped: a stable word.

    None: it rings. `next_at`: when the rule's next one fires.
    """
    late_by = now - fire_at
    if late_by <= LATE:
        return None
    if policy is CatchUp.NONE and late_by > MINUTE:
        return "catch_up_none"
    if policy is CatchUp.LATEST and next_at is not None and now >= next_at:
        return "superseded"
    return "too_old" if late_by > max_age else None

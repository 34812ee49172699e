"""Spreading occurrences that need not ring at the very second."""

from datetime import datetime, timedelta
from hashlib import blake2b

_MS = timedelta(milliseconds=1)


def jitter(
    reminder_id: str,
    occurrence_key: str,
    window: timedelta,
    *,
    instant: datetime,
    previous: datetime | None = None,
    following: datetime | None = None,
) -> timedelta:
    """How far from `instant` this occurrence rings: within ±window, in whole milliseconds.

    The same for the same arguments in every process, evenly spread over reminders and occurrences.
    It never reaches half of the way to the neighbours' instants (None: no neighbour), so jittered
    neighbours keep their order too. A negative or zero window gives zero.
    """
    reach = window // _MS
    if reach <= 0:
        return timedelta(0)
    back = reach if previous is None else min(reach, _half_way(instant - previous))
    ahead = reach if following is None else min(reach, _half_way(following - instant))
    seed = blake2b(f"{reminder_id}\0{occurrence_key}".encode(), digest_size=8).digest()
    drawn = int.from_bytes(seed, "big") * (back + ahead + 1) >> 64
    return (drawn - back) * _MS


def _half_way(distance: timedelta) -> int:
    """Milliseconds strictly below half of the distance, none for neighbours out of order."""
    return max(0, (distance // _MS - 1) // 2)

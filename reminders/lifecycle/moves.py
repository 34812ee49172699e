"""What a walk with new zone data tells: occurrences that move, reminders that are left, sums."""

from msgspec import Struct

from reminders.lifecycle.recomputing import Moved


class Totals(Struct, kw_only=True, array_like=True):
    """What a walk has come to, from its beginning, over all runs that it took."""

    records: int = 0
    older: int = 0
    """Reminders with something ahead under older data."""
    moved: int = 0
    """Occurrences at another instant."""
    dropped: int = 0
    """Occurrences that the new data takes away; the ledger says why."""
    newer: int = 0
    """Reminders left alone because newer data than ours computed them."""
    failed: int = 0
    """Reminders that could not be recomputed."""


class Left(Struct, frozen=True, kw_only=True):
    """A reminder that was left as it is, and why."""

    namespace: str
    reminder_id: str
    why: str
    newer: bool = False


class Passed(Struct, frozen=True, kw_only=True):
    """How far the walk has come; after each page."""

    totals: Totals
    share: float
    """Of all records, 0 to 1, by the store's order."""
    resumed_at: float = 0.0
    """The share where this run began."""


Event = Moved | Left | Passed

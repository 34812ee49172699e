"""What to do with awkward dates. Stored with each reminder; the first member is the default.

The policies act in this order: the missing day first (it decides the date), then gap or overlap
(they decide the instant). RFC 5545 contradicts itself on gaps (3.3.10 ignores such times, 3.3.5
shifts them), so the stored policy decides.
"""

from dataclasses import dataclass
from enum import StrEnum


class Gap(StrEnum):
    """A local time that a transition jumps over, such as 02:30 where 02:00 becomes 03:00."""

    NEXT_VALID = "next_valid"
    """The first local time that exists again: 03:00."""
    SHIFT_FORWARD = "shift_forward"
    """Later by the size of the gap: 03:30 (RFC 5545 3.3.5)."""
    SKIP = "skip"
    """No occurrence (RFC 5545 3.3.10)."""


class Overlap(StrEnum):
    """A local time that a transition repeats, such as 02:30 where 03:00 becomes 02:00."""

    EARLIER = "earlier"
    LATER = "later"
    BOTH = "both"
    """Two occurrences with two identities."""


class MissingDay(StrEnum):
    """A monthly or yearly rule that names the 29th, 30th or 31st of a month that has none.

    Acts on positive BYMONTHDAY, written or taken from the start. Not on days counted from the end,
    days of the year, or weekdays; and not where BYDAY, BYWEEKNO or BYYEARDAY also limits the day.
    """

    SKIP = "skip"
    """No occurrence in that month (RFC 5545 3.3.10)."""
    CLAMP = "clamp"
    """The last day of the month."""
    NEXT_BUSINESS_DAY = "next_business_day"
    """The first business day after the month's end."""
    PREVIOUS_BUSINESS_DAY = "previous_business_day"
    """The last business day of the month."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarPolicies:
    """The policies of one series."""

    gap: Gap = Gap.NEXT_VALID
    overlap: Overlap = Overlap.EARLIER
    missing_day: MissingDay = MissingDay.SKIP
    holiday_calendar: str | None = None
    """Whose holidays are no business days: "FR", "US-CA". None: Monday to Friday, no holidays."""

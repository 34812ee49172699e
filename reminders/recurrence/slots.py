"""What the sources of occurrences hand to a series: candidates in batches."""

from dataclasses import dataclass
from datetime import datetime

from reminders.recurrence.zones import Localized


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An instant that a rule or an RDATE names; the series decides whether it counts."""

    at: Localized
    missing: int = 0
    """As in `identity`: days past the month's end that the rule asked for."""
    from_rule: bool = True
    """Not an RDATE: COUNT and UNTIL apply."""

    @property
    def order(self) -> tuple[datetime, bool, datetime, int]:
        """By instant; of several on one instant, the rule's earliest local intent comes first."""
        return (self.at.instant, not self.from_rule, self.at.nominal, self.missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Candidates in any order, and how far the source has come."""

    found: tuple[Candidate, ...] = ()
    opens: datetime
    """No later batch has anything before this: a local time where naive, else an instant."""
    steps: int
    """Work done: dates, periods and local times looked at."""

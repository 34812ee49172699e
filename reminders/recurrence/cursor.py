"""Where a series stands, and what it plans."""

from dataclasses import dataclass
from datetime import datetime
from typing import Self

from reminders.recurrence.identity import parse_occurrence_key


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """All that is kept of a series to go on: the last local intent, and how many so far."""

    last_local: datetime | None = None
    """Naive nominal local time of the last occurrence; None: nothing yet."""
    emitted: int = 0
    """Occurrences of the rule up to here, for COUNT: those left out by EXDATE are counted, RDATEs
    and what was past at creation are not."""
    last_fold: int = 0
    """Of the last occurrence's planned local time (PEP 495)."""
    last_missing: int = 0
    """Of the last occurrence: days past the month's end that the rule asked for."""
    last_planned: datetime | None = None
    """Of the last occurrence: the naive local time that was promised, where that is known. What the
    rule named up to there had its turn, wherever newer zone or holiday data put it."""
    is_instant: bool = False
    """Not behind an occurrence but at an instant, as `Series.first_after` makes it: nothing is
    known of what came before."""

    @classmethod
    def after(cls, key: str, *, emitted: int, fold: int, planned: datetime | None = None) -> Self:
        """The cursor behind a stored occurrence: key, ordinal, planned local time and its fold.

        Raises:
            KeyInvalid: Not an occurrence key.
        """
        intent = parse_occurrence_key(key)
        return cls(
            last_local=intent.local,
            emitted=emitted,
            last_fold=fold,
            last_missing=intent.missing,
            last_planned=planned,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One occurrence of a series, from the local intent to the instant."""

    key: str
    """Its identity within the reminder: `identity.occurrence_key`."""
    nominal: datetime
    """The naive local time that the rule named; for a missing day, at the month's last day."""
    local: datetime
    """The naive local time that is promised, after the policies."""
    fold: int
    """Which of two equal local times `local` is (PEP 495)."""
    zone: str
    instant: datetime
    """Of `local`: aware, UTC."""
    note: str | None
    """Which policies acted, such as `missing_day:clamp,gap:next_valid`, if any did."""
    cursor: Cursor
    """Behind this occurrence."""

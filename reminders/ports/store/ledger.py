"""What happened."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from reminders.model.ledger import LedgerRow


class Ledger(Protocol):
    """What happened, one row for each (occurrence, channel, target).

    Rows with a target, a subscriber's, are written and read here; `Fanouts` pages over them.
    """

    async def write(self, rows: Sequence[LedgerRow], *, at: datetime) -> None:
        """Replaces rows whole; the later `at` wins."""

    async def read(
        self, reminder_id: str, occurrence_id: str, channel_id: str = "", target: str = ""
    ) -> LedgerRow | None:
        """One row."""

    async def page(
        self,
        reminder_id: str,
        *,
        occurrence_id: str | None = None,
        after: tuple[str, str, str] | None = None,
        limit: int,
    ) -> list[LedgerRow]:
        """At most `limit` rows without a target, newest occurrence first, then by channel
        descending; strictly after `after` = (occurrence_id, channel_id, target) in that order.
        """

"""What Cassandra keeps of a fan-out beside the occurrence's own row in the ledger."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from reminders.model.fanout import PageCount, TargetCounts
from reminders.model.ledger import LedgerRow


class Fanouts(Protocol):
    """Deliveries to subscribers, in `SUBSCRIBER_BUCKETS` partitions for each occurrence, and what
    each page of them came to. One delivery is written and read by `Ledger`, as every other.
    """

    async def targets(
        self,
        reminder_id: str,
        occurrence_id: str,
        bucket: int,
        *,
        after: tuple[str, str] = ("", ""),
        through: str | None = None,
        limit: int,
    ) -> list[LedgerRow]:
        """At most `limit` deliveries of a bucket in order of (target, channel_id), strictly after
        `after`, with `target <= through`. Fewer than `limit`: that was all.
        """

    async def counts(self, reminder_id: str, occurrence_id: str, bucket: int) -> TargetCounts:
        """How many deliveries of a bucket stand how, without moving the rows. Takes about 10 µs of
        the server for each.
        """

    async def record(
        self, reminder_id: str, occurrence_id: str, count: PageCount, *, at: datetime
    ) -> None:
        """Replaces what is known of a page; the later `at` wins."""

    async def pages(self, reminder_id: str, occurrence_id: str) -> Sequence[PageCount]:
        """Of all pages that were recorded, by bucket and number."""

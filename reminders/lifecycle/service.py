"""All use cases behind one door, wired once."""

from collections.abc import Sequence

from reminders.errors import TocsinError
from reminders.lifecycle.changing import Changes
from reminders.lifecycle.creating import Creates
from reminders.lifecycle.planning import Planner
from reminders.lifecycle.reading import Reads
from reminders.lifecycle.requests import (
    Changed,
    Created,
    CreateRequest,
    OccurrenceView,
    Page,
    View,
)
from reminders.lifecycle.writing import EntryWriter
from reminders.model.definition import Schedule
from reminders.model.ledger import LedgerRow
from reminders.platform import Platform


class Reminders:
    """What an edge (gRPC, HTTP) offers; errors are those of `reminders.errors`."""

    def __init__(self, platform: Platform) -> None:
        self.planner = Planner(shards=platform.limits.shards)
        self.writer = EntryWriter(platform)
        self.reads = Reads(platform)
        self.changes = Changes(platform, self.writer, self.planner, self.reads)
        self.creates = Creates(platform, self.writer, self.planner, self.reads, self.changes.finish)

    async def create(self, requests: Sequence[CreateRequest]) -> list[Created | TocsinError]:
        """One result for each, in order."""
        return await self.creates.create(requests)

    async def get(self, namespace: str, reminder_id: str) -> View:
        """Raises `NotFound`."""
        return await self.reads.get(namespace, reminder_id, self.changes.finish)

    async def pending(
        self, namespace: str, user_id: str, *, limit: int, token: str
    ) -> tuple[Page[View], int, bool]:
        """A page, the total, and whether the total is cut."""
        return await self.reads.pending(namespace, user_id, limit=limit, token=token)

    async def cancel(
        self,
        namespace: str,
        reminder_id: str,
        *,
        expected_version: int | None,
        request_id: str | None,
    ) -> Changed:
        """Raises `NotFound`, `VersionMismatch`, `KeyConflict`, `AlreadyEnded`."""
        return await self.changes.cancel(
            namespace, reminder_id, expected_version=expected_version, request_id=request_id
        )

    async def reschedule(
        self,
        namespace: str,
        reminder_id: str,
        schedule: Schedule,
        *,
        expected_version: int | None,
        request_id: str | None,
    ) -> Changed:
        """As `cancel`, and `AlreadyFired`."""
        return await self.changes.reschedule(
            namespace,
            reminder_id,
            schedule,
            expected_version=expected_version,
            request_id=request_id,
        )

    async def occurrences(
        self, namespace: str, reminder_id: str, *, limit: int, token: str
    ) -> Page[OccurrenceView]:
        """Newest first."""
        return await self.reads.occurrences(namespace, reminder_id, limit=limit, token=token)

    async def deliveries(
        self, namespace: str, reminder_id: str, *, occurrence_id: str | None, limit: int, token: str
    ) -> Page[LedgerRow]:
        """Newest first."""
        return await self.reads.deliveries(
            namespace, reminder_id, occurrence_id=occurrence_id, limit=limit, token=token
        )

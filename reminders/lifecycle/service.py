"""All use cases behind one door, wired once."""

from collections.abc import Callable, Sequence
from datetime import datetime

from reminders.errors import TocsinError
from reminders.lifecycle.aside import Aside
from reminders.lifecycle.backfilling import Backfills
from reminders.lifecycle.changing import Changes
from reminders.lifecycle.creating import Creates
from reminders.lifecycle.endpoints import Endpoints
from reminders.lifecycle.explaining import Explanation, Explanations
from reminders.lifecycle.grouping import Groups
from reminders.lifecycle.planning import Planner
from reminders.lifecycle.reading import Reads
from reminders.lifecycle.recipients import Recipients
from reminders.lifecycle.redriving import Redrives
from reminders.lifecycle.replaying import Asked, Replayed, Replays
from reminders.lifecycle.replaying_targets import ReplayedAll
from reminders.lifecycle.requests import (
    Backfilled,
    Call,
    Changed,
    Created,
    CreateRequest,
    OccurrenceView,
    Page,
    View,
)
from reminders.lifecycle.subscribing import Subscribing
from reminders.lifecycle.targets import Wanted
from reminders.lifecycle.trials import Trials
from reminders.lifecycle.triggering import Triggers
from reminders.lifecycle.writing import EntryWriter
from reminders.model.definition import Definition, Schedule
from reminders.model.ledger import LedgerRow
from reminders.platform import Platform


class Reminders:
    """What an edge (gRPC, HTTP) offers; errors are those of `reminders.errors`."""

    def __init__(self, platform: Platform) -> None:
        self.planner = Planner(shards=platform.limits.shards)
        self.writer = EntryWriter(platform)
        self.reads = Reads(platform)
        self.groups = Groups(platform)
        aside = Aside()
        self.changes = Changes(platform, self.writer, self.planner, self.reads, aside)
        self.creates = Creates(
            platform, self.writer, self.planner, self.reads, self.changes.finish, aside
        )
        self.triggers = Triggers(platform, self.writer, self.reads, self.changes.finish)
        self.replays = Replays(platform, self.writer, self.reads, self.changes.finish)
        self.explanations = Explanations(platform, self.reads, self.changes.finish)
        self.recipients = Recipients(platform)
        self.subscribing = Subscribing(platform)
        self.trials = Trials(platform, self.subscribing, self.creates, self.planner)
        self.redrives = Redrives(platform, self.writer)
        self.endpoints = Endpoints(platform)
        self.backfills = Backfills(platform, self.writer, self.reads, self.changes.finish)

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
        call = Call(
            namespace=namespace,
            reminder_id=reminder_id,
            expected_version=expected_version,
            request_id=request_id,
        )
        return await self.changes.cancel(call)

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
        call = Call(
            namespace=namespace,
            reminder_id=reminder_id,
            expected_version=expected_version,
            request_id=request_id,
        )
        return await self.changes.reschedule(call, schedule)

    async def update(
        self,
        call: Call,
        edit: Callable[[Definition], Definition],
        *,
        content: bytes,
        reschedules: bool,
    ) -> Changed:
        """As `cancel`, and `AlreadyFired`. See `Changes.update`."""
        return await self.changes.update(call, edit, content=content, reschedules=reschedules)

    async def pause(self, call: Call, reason: str) -> Changed:
        """As `cancel`."""
        return await self.changes.pause(call, reason)

    async def resume(self, call: Call) -> Changed:
        """As `cancel`."""
        return await self.changes.resume(call)

    async def trigger(
        self, namespace: str, reminder_id: str, *, request_id: str | None
    ) -> OccurrenceView:
        """Raises `NotFound`, `AlreadyEnded`."""
        return await self.triggers.trigger(namespace, reminder_id, request_id=request_id)

    async def backfill(
        self,
        namespace: str,
        reminder_id: str,
        *,
        start: datetime,
        end: datetime | None,
        validate_only: bool,
        request_id: str | None,
    ) -> Backfilled:
        """Raises `NotFound`, `NotRecurring`, `AlreadyEnded`, `ReminderPaused`, `KeyConflict`."""
        return await self.backfills.backfill(
            namespace,
            reminder_id,
            start=start,
            end=end,
            validate_only=validate_only,
            request_id=request_id,
        )

    async def replay(
        self, namespace: str, reminder_id: str, asked: Asked, *, request_id: str | None
    ) -> tuple[Replayed, ...] | ReplayedAll:
        """See `Replays.replay`."""
        return await self.replays.replay(namespace, reminder_id, asked, request_id=request_id)

    async def cancel_group(self, namespace: str, group_id: str) -> datetime:
        """Up to when the group's reminders are void. After `Unavailable`, repeat it."""
        return await self.groups.cancel(namespace, group_id)

    async def occurrences(
        self, namespace: str, reminder_id: str, *, limit: int, token: str
    ) -> Page[OccurrenceView]:
        """Newest first."""
        return await self.reads.occurrences(namespace, reminder_id, limit=limit, token=token)

    async def explain(self, namespace: str, reminder_id: str, *, limit: int) -> Explanation:
        """Of the newest `limit` occurrences. Raises `NotFound`."""
        return await self.explanations.explain(namespace, reminder_id, limit=limit)

    async def deliveries(
        self, namespace: str, reminder_id: str, wanted: Wanted, *, limit: int, token: str
    ) -> Page[LedgerRow]:
        """Newest first."""
        return await self.reads.deliveries(namespace, reminder_id, wanted, limit=limit, token=token)

"""Use cases that a test can hold up or make fail."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from reminders.errors import NotFound, TocsinError, VersionMismatch
from reminders.lifecycle import (
    Changed,
    Created,
    CreateRequest,
    OccurrenceView,
    Page,
    Planner,
    Reminders,
    View,
)
from reminders.lifecycle.targets import Wanted
from reminders.model.definition import Schedule
from reminders.model.ledger import DeliveryStatus, LedgerRow, OccurrenceStatus
from reminders.model.record import OccurrenceAnswer, Record, Status

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


class HeldReminders(Reminders):
    """The use cases in a dictionary. `gate` holds creates up while it is closed."""

    def __init__(self) -> None:
        self.views: dict[str, View] = {}
        self.gate = asyncio.Event()
        self.gate.set()
        self.arrived = asyncio.Condition()
        self.creates_begun = 0
        self.failure: Exception | None = None
        self.results: dict[int, TocsinError] = {}
        """By position in a call: what fails there."""
        self.asked: list[CreateRequest] = []
        self.listed: list[tuple[object, ...]] = []
        self.changed: list[tuple[object, ...]] = []

    async def create(self, requests: Sequence[CreateRequest]) -> list[Created | TocsinError]:
        """In memory, once the gate is open."""
        async with self.arrived:
            self.creates_begun += 1
            self.arrived.notify_all()
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        self.asked.extend(requests)
        return [
            self.results.get(position) or Created(view=self._made(request))
            for position, request in enumerate(requests)
        ]

    async def until_begun(self, creates: int) -> None:
        """Returns when so many calls of `create` have arrived."""
        async with self.arrived:
            await self.arrived.wait_for(lambda: self.creates_begun >= creates)

    async def get(self, namespace: str, reminder_id: str) -> View:
        """Raises `NotFound`."""
        if self.failure is not None:
            raise self.failure
        view = self.views.get(reminder_id)
        if view is None or view.record.namespace != namespace:
            raise NotFound(reminder_id=reminder_id)
        return view

    async def pending(
        self, namespace: str, user_id: str, *, limit: int, token: str
    ) -> tuple[Page[View], int, bool]:
        """Positions are numbers."""
        self.listed.append((namespace, user_id, limit, token))
        found = [v for v in self.views.values() if v.record.definition.user_id == user_id]
        start = int(token or 0)
        after = str(start + limit) if start + limit < len(found) else ""
        page = Page(items=tuple(found[start : start + limit]), next_token=after)
        return page, len(found), False

    async def cancel(
        self,
        namespace: str,
        reminder_id: str,
        *,
        expected_version: int | None,
        request_id: str | None,
    ) -> Changed:
        """Checks the version; says that every occurrence had fired."""
        view = await self.get(namespace, reminder_id)
        if expected_version not in (None, view.record.version):
            raise VersionMismatch(actual=view.record.version)
        self.changed.append((reminder_id, expected_version, request_id))
        answers = tuple(
            OccurrenceAnswer(
                occurrence_id=entry.occurrence.occurrence_id,
                planned_at=entry.occurrence.planned_at,
                was_fired=True,
            )
            for entry in view.ahead
            if entry.occurrence is not None
        )
        return Changed(view=view, was_fired=True, answers=answers)

    async def reschedule(
        self,
        namespace: str,
        reminder_id: str,
        schedule: Schedule,
        *,
        expected_version: int | None,
        request_id: str | None,
    ) -> Changed:
        """Takes note of the schedule."""
        view = await self.get(namespace, reminder_id)
        self.changed.append((reminder_id, schedule, expected_version, request_id))
        return Changed(view=view, was_fired=False)

    async def occurrences(
        self, namespace: str, reminder_id: str, *, limit: int, token: str
    ) -> Page[OccurrenceView]:
        """The planned ones, as claimed."""
        view = await self.get(namespace, reminder_id)
        self.listed.append((reminder_id, limit, token))
        items = tuple(
            OccurrenceView(
                namespace=namespace,
                reminder_id=reminder_id,
                version=1,
                occurrence=entry.occurrence,
                status=OccurrenceStatus.CLAIMED,
            )
            for entry in view.ahead
            if entry.occurrence is not None
        )
        return Page(items=items, next_token="more" if not token else "")

    async def deliveries(
        self, namespace: str, reminder_id: str, wanted: Wanted, *, limit: int, token: str
    ) -> Page[LedgerRow]:
        """One for each planned occurrence."""
        view = await self.get(namespace, reminder_id)
        self.listed.append((reminder_id, wanted.occurrence_id, limit, token))
        items = tuple(
            LedgerRow(
                namespace=namespace,
                reminder_id=reminder_id,
                reminder_version=1,
                occurrence=entry.occurrence,
                channel_id="webhook",
                delivery=DeliveryStatus.DELIVERED,
            )
            for entry in view.ahead
            if entry.occurrence is not None
        )
        return Page(items=items)

    def _made(self, request: CreateRequest) -> View:
        record = Record(
            namespace=request.namespace,
            reminder_id=f"r{len(self.views) + 1}",
            version=1,
            status=Status.SCHEDULED,
            definition=request.definition,
            created_at=NOW,
            updated_at=NOW,
            stamp=0,
        )
        view = View(record=record, status=record.status, ahead=Planner(shards=4).first(record))
        self.views[record.reminder_id] = view
        return view

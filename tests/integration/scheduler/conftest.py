"""A real gRPC server and client over use cases that a test can hold up or make fail."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

import grpc
import pytest
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status as RpcStatus
from tocsin.v1 import reminder_service_pb2 as pb
from tocsin.v1.reminder_service_pb2_grpc import ReminderServiceStub

from reminders.clock import ManualClock
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
from scheduler.server import Scheduler
from scheduler.settings import SchedulerSettings

if TYPE_CHECKING:
    from tocsin.v1.reminder_service_pb2_grpc import ReminderServiceAsyncStub

Detail = TypeVar("Detail", BadRequest, ErrorInfo, RetryInfo)

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


@pytest.fixture
def held() -> HeldReminders:
    """The use cases behind the server."""
    return HeldReminders()


@pytest.fixture
def clock() -> ManualClock:
    """Stands at noon."""
    return ManualClock(NOW)


@pytest.fixture
def settings() -> SchedulerSettings:
    """A free port, and small bounds."""
    return SchedulerSettings(address="127.0.0.1:0", max_creates=1_000, drain_lead=timedelta(0))


@pytest.fixture
async def scheduler(
    held: HeldReminders, clock: ManualClock, settings: SchedulerSettings
) -> AsyncIterator[Scheduler]:
    """Built and not started."""
    built = Scheduler(held, clock, settings)
    yield built
    held.gate.set()
    await built.stop(timedelta(0))


@pytest.fixture
async def channel(scheduler: Scheduler) -> AsyncIterator[grpc.aio.Channel]:
    """To the started server."""
    port = await scheduler.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as opened:
        yield opened


@pytest.fixture
def stub(channel: grpc.aio.Channel) -> "ReminderServiceAsyncStub":
    """The generated client."""
    return ReminderServiceStub(channel)


@pytest.fixture
def request_of() -> Callable[..., pb.CreateReminderRequest]:
    """A valid request."""

    def make(user_id: str = "u1", **fields: object) -> pb.CreateReminderRequest:
        request = pb.CreateReminderRequest(**fields)  # type: ignore[arg-type]
        request.reminder.user_id = user_id
        request.reminder.schedule.after.seconds = 3_600
        request.reminder.channels.add().log.SetInParent()
        request.reminder.params.update({"text": "tea"})
        return request

    return make


class Failure:
    """A call's error, with its details decoded as grpcio-status does."""

    def __init__(self, error: grpc.aio.AioRpcError) -> None:
        self.code = error.code()
        self.status = RpcStatus()
        for key, value in error.trailing_metadata() or ():
            if key == "grpc-status-details-bin":
                assert isinstance(value, bytes)
                self.status.ParseFromString(value)
        self.message = error.details()
        self.info = self._detail(ErrorInfo())
        self.bad_request = self._detail(BadRequest())
        self.retry = self._detail(RetryInfo())
        if self.status.ByteSize():
            assert self.status.code == self.code.value[0]
            assert self.status.message == self.message

    def _detail(self, kind: Detail) -> Detail:
        for packed in self.status.details:
            if packed.Unpack(kind):
                break
        return kind


@pytest.fixture
def failing() -> Callable[..., object]:
    """Awaits a call that must fail, and gives its `Failure`."""

    async def fail(call: object) -> Failure:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call  # type: ignore[misc]
        return Failure(caught.value)

    return fail

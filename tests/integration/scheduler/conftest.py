"""A real gRPC server and client: over use cases that a test can hold up or make fail (`stub`), or
over the real ones in memory (`whole`).
"""

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

import grpc
import pytest
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status as RpcStatus
from tocsin.v1 import reminder_service_pb2 as pb
from tocsin.v1.reminder_service_pb2_grpc import ReminderServiceStub

from reminders.clock import ManualClock
from reminders.memory.store import MemoryStore
from scheduler.server import Scheduler
from scheduler.settings import SchedulerSettings
from tests.integration.scheduler.held import NOW, HeldReminders
from tests.integration.scheduler.support import SHARDS, serving

if TYPE_CHECKING:
    from tocsin.v1.reminder_service_pb2_grpc import ReminderServiceAsyncStub

Detail = TypeVar("Detail", BadRequest, ErrorInfo, RetryInfo)


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
async def whole(
    clock: ManualClock, settings: SchedulerSettings
) -> "AsyncIterator[ReminderServiceAsyncStub]":
    """The client of a service on the in-memory adapters."""
    store = MemoryStore(shards=SHARDS, started_at=clock.now())
    async with serving(store, clock, settings) as channel:
        yield ReminderServiceStub(channel)


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

"""The server around the calls: health, reflection, drain, ports, metrics."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from tocsin.v1 import reminder_service_pb2 as pb

from reminders.clock import ManualClock
from scheduler.calls import RECORDED_AT_ONCE, Calls
from scheduler.server import SERVICE, Scheduler
from scheduler.settings import SchedulerSettings

if TYPE_CHECKING:
    from tocsin.v1.reminder_service_pb2_grpc import ReminderServiceAsyncStub as Stub

RequestOf = Callable[..., pb.CreateReminderRequest]
Failing = Callable[[Awaitable[object]], Awaitable[Any]]
Status = health_pb2.HealthCheckResponse


@pytest.fixture
def health(channel: grpc.aio.Channel) -> Any:
    """The client of grpc.health.v1."""
    return health_pb2_grpc.HealthStub(channel)


def of(service: str) -> Any:
    """A question about a service."""
    return health_pb2.HealthCheckRequest(service=service)


async def test_health_knows_the_server_and_the_service(health: Any, failing: Failing) -> None:
    """And nothing else."""
    for service in ("", SERVICE):
        assert (await health.Check(of(service))).status == Status.SERVING
    failure = await failing(health.Check(of("other")))
    assert failure.code is grpc.StatusCode.NOT_FOUND


async def test_health_follows_readiness(
    held: Any, clock: ManualClock, settings: SchedulerSettings
) -> None:
    """A clock out of bounds or a store that is gone: not serving, until that is over."""
    stores: list[str] = []
    scheduler = Scheduler(held, clock, settings, stores=lambda: stores)
    assert scheduler.problems() == ["not started"]
    stop = asyncio.Event()
    running = asyncio.create_task(scheduler.run(stop))
    async with grpc.aio.insecure_channel(f"127.0.0.1:{await scheduler.port()}") as channel:
        seen: asyncio.Queue[int] = asyncio.Queue()
        watching = asyncio.create_task(watch(channel, seen))
        assert await seen.get() == Status.SERVING

        async def look_again() -> None:
            await clock.until_sleeping()
            clock.advance(settings.readiness_interval)

        clock.bounds = False
        await look_again()
        assert await seen.get() == Status.NOT_SERVING
        assert scheduler.problems() == ["the clock is out of bounds"]
        clock.bounds = True
        await look_again()
        assert await seen.get() == Status.SERVING
        stores.append("Redis does not answer")
        await look_again()
        assert await seen.get() == Status.NOT_SERVING
        assert scheduler.problems() == ["Redis does not answer"]
        stop.set()
        await running
        await watching
    assert scheduler.problems() == ["stopping"]


async def watch(channel: grpc.aio.Channel, seen: asyncio.Queue[int]) -> None:
    """Takes note of what a watcher is told, to the end of the stream."""
    async for answer in health_pb2_grpc.HealthStub(channel).Watch(of(SERVICE)):
        seen.put_nowait(answer.status)


async def test_reflection_lists_the_service(channel: grpc.aio.Channel) -> None:
    """So that grpcurl works without the protos."""
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)

    async def questions() -> AsyncIterator[Any]:
        yield reflection_pb2.ServerReflectionRequest(list_services="")
        yield reflection_pb2.ServerReflectionRequest(file_containing_symbol=SERVICE)

    answers = [answer async for answer in stub.ServerReflectionInfo(questions())]
    names = {service.name for service in answers[0].list_services_response.service}
    assert names >= {
        SERVICE,
        "tocsin.v1.RecipientService",
        "tocsin.v1.TopicService",
        "grpc.health.v1.Health",
        "grpc.reflection.v1alpha.ServerReflection",
    }
    assert answers[1].file_descriptor_response.file_descriptor_proto


async def test_stop_lets_calls_end_and_refuses_new_ones(
    scheduler: Scheduler, stub: "Stub", held: Any, request_of: RequestOf, failing: Failing
) -> None:
    """Nothing that was taken is dropped, however long the grace; it ends with the last call."""
    held.gate.clear()
    under_way = asyncio.ensure_future(stub.CreateReminder(request_of()))
    await held.until_begun(1)
    stopping = asyncio.create_task(scheduler.stop(timedelta(hours=1)))
    await asyncio.sleep(0)
    failure = await failing(stub.CreateReminder(request_of()))
    assert failure.code is grpc.StatusCode.UNAVAILABLE
    assert failure.info.reason == "SHUTTING_DOWN"
    assert failure.retry.retry_delay.seconds == 1
    assert not stopping.done()
    held.gate.set()
    assert (await under_way).reminder.reminder_id == "r1"
    await stopping


async def test_stop_ends_streams_behind_what_they_read(
    scheduler: Scheduler, stub: "Stub", held: Any, request_of: RequestOf, failing: Failing
) -> None:
    """A client that could go on for hours is told where it stands."""
    held.gate.clear()
    stream = stub.StreamCreateReminders()
    for number in (1, 2):
        batch = pb.BatchCreateRemindersRequest(batch_number=number, requests=[request_of()])
        await stream.write(batch)
    await held.until_begun(2)
    stopping = asyncio.create_task(scheduler.stop(timedelta(hours=1)))
    held.gate.set()
    answers: list[Any] = [await stream.read() for _ in range(2)]
    assert [answer.batch_number for answer in answers] == [1, 2]
    failure = await failing(stream.read())
    assert failure.code is grpc.StatusCode.UNAVAILABLE
    assert failure.info.reason == "SHUTTING_DOWN"
    await stopping


async def test_grace_ends_what_does_not(
    scheduler: Scheduler, stub: "Stub", held: Any, request_of: RequestOf, failing: Failing
) -> None:
    """A store that never answers can't keep the process."""
    held.gate.clear()
    under_way = asyncio.ensure_future(stub.CreateReminder(request_of()))
    await held.until_begun(1)
    await scheduler.stop(timedelta(milliseconds=50))
    failure = await failing(under_way)
    assert failure.code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)


async def test_a_port_is_taken_once_unless_shared(held: Any, clock: ManualClock) -> None:
    """A second process fails at start, with the address in its message; or both share it."""

    def scheduler_on(address: str, *, reuse_port: bool) -> Scheduler:
        settings = SchedulerSettings(address=address, reuse_port=reuse_port)
        return Scheduler(held, clock, settings)

    first = scheduler_on("127.0.0.1:0", reuse_port=False)
    address = f"127.0.0.1:{await first.start()}"
    with pytest.raises(OSError, match=address):
        await scheduler_on(address, reuse_port=False).start()
    await first.stop(timedelta(0))
    shared = [scheduler_on("127.0.0.1:0", reuse_port=True)]
    port = await shared[0].start()
    shared.append(scheduler_on(f"127.0.0.1:{port}", reuse_port=True))
    assert await shared[1].start() == port
    for one in shared:
        await one.stop(timedelta(0))


async def test_each_call_is_measured() -> None:
    """By method and outcome, and counted while it is under way."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    calls = Calls(provider.get_meter("test"))

    class Context:
        """As much of a call's context as is used."""

        def time_remaining(self) -> float | None:
            """No deadline."""
            return None

    async def behaviour(request: object, _context: object) -> object:
        assert calls.under_way == 1
        return request

    wrapped: Any = calls.wrap("CreateReminder", behaviour)
    calls_made = RECORDED_AT_ONCE + 3
    for _ in range(calls_made):
        await wrapped("x", Context())
    assert calls.under_way == 0
    await calls.idle()
    reader.get_metrics_data()  # lets the gauges be read, which flushes
    data = reader.get_metrics_data()
    assert data is not None
    metrics = {one.name: one for one in data.resource_metrics[0].scope_metrics[0].metrics}
    (point,) = metrics["rpc.server.call.duration"].data.data_points
    assert point.attributes == {"rpc.method": "CreateReminder", "rpc.response.status_code": "OK"}
    assert point.count == calls_made  # type: ignore[union-attr]
    assert metrics["tocsin.scheduler.calls_under_way"].data.data_points[0].value == 0  # type: ignore[union-attr]
    provider.shutdown()

"""The stream of batches through a real server: order, back-pressure, ends."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from structlog.testing import capture_logs
from tocsin.v1 import reminder_service_pb2 as pb

from scheduler.settings import SchedulerSettings

if TYPE_CHECKING:
    from tocsin.v1.reminder_service_pb2_grpc import ReminderServiceAsyncStub as Stub

RequestOf = Callable[..., pb.CreateReminderRequest]
Failing = Callable[[Awaitable[object]], Awaitable[Any]]


def batch_of(request: pb.CreateReminderRequest, number: int, size: int = 3) -> Any:
    """A batch with a number."""
    return pb.BatchCreateRemindersRequest(batch_number=number, requests=[request] * size)


async def test_answers_come_in_order(stub: "Stub", request_of: RequestOf) -> None:
    """With the number of each batch, and a good end."""
    stream = stub.StreamCreateReminders()

    async def send() -> None:
        for number in range(1, 51):
            await stream.write(batch_of(request_of(), number))
        await stream.done_writing()

    async with asyncio.TaskGroup() as group:
        group.create_task(send())
        answers = [answer async for answer in stream]
    assert [answer.batch_number for answer in answers] == list(range(1, 51))
    assert all(
        result.WhichOneof("result") == "created" for answer in answers for result in answer.results
    )
    assert await stream.code() is grpc.StatusCode.OK


async def test_a_stalled_store_stops_the_reading(
    stub: "Stub", held: Any, request_of: RequestOf
) -> None:
    """Four batches are under way and 1 MiB is on its way; then the client's writes block."""
    held.gate.clear()
    stream = stub.StreamCreateReminders()
    request = request_of()
    request.reminder.params.update({"text": "x" * 30_000})
    total, sent = 80, 0

    async def send() -> None:
        nonlocal sent
        for number in range(1, total + 1):
            await stream.write(batch_of(request, number, size=20))  # 0.6 MB
            sent = number
        await stream.done_writing()

    sending = asyncio.create_task(send())
    await held.until_begun(4)
    blocked_at = await until_still(lambda: sent)
    assert blocked_at <= 10
    assert held.creates_begun == 4
    held.gate.set()
    answers = [answer.batch_number async for answer in stream]
    await sending
    assert answers == list(range(1, total + 1))


async def until_still(value: Callable[[], int]) -> int:
    """The value once it has not changed for a while: nothing tells that a write blocks."""
    last, same = value(), 0
    while same < 25:
        await asyncio.sleep(0.02)
        same = same + 1 if value() == last else 0
        last = value()
    return last


async def test_a_bad_batch_ends_it_behind_earlier_answers(
    stub: "Stub", request_of: RequestOf, failing: Failing
) -> None:
    """INVALID_ARGUMENT with details; what came before is answered."""
    stream = stub.StreamCreateReminders()
    await stream.write(batch_of(request_of(), 1))
    await stream.write(pb.BatchCreateRemindersRequest(batch_number=2))
    await stream.write(batch_of(request_of(), 3))
    first: Any = await stream.read()
    assert first.batch_number == 1
    failure = await failing(stream.read())
    assert failure.code is grpc.StatusCode.INVALID_ARGUMENT
    assert failure.bad_request.field_violations[0].field == "requests"


async def test_the_unexpected_ends_it_as_internal(
    stub: "Stub", held: Any, request_of: RequestOf, failing: Failing
) -> None:
    """And the server serves the next one."""
    held.failure = ZeroDivisionError()
    with capture_logs():
        stream = stub.StreamCreateReminders()
        await stream.write(batch_of(request_of(), 1))
        failure = await failing(stream.read())
    assert failure.code is grpc.StatusCode.INTERNAL
    assert failure.info.metadata["incident"]
    held.failure = None
    stream = stub.StreamCreateReminders()
    await stream.write(batch_of(request_of(), 1))
    await stream.done_writing()
    assert [answer.batch_number async for answer in stream] == [1]


async def test_a_client_that_goes_gives_its_places_back(
    stub: "Stub", held: Any, request_of: RequestOf, settings: SchedulerSettings
) -> None:
    """Otherwise the gate would close for good."""
    for _ in range(3):
        held.gate.clear()
        begun = held.creates_begun
        stream = stub.StreamCreateReminders()
        await stream.write(batch_of(request_of(), 1, size=settings.max_creates // 2))
        await held.until_begun(begun + 1)
        stream.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stream.read()
    held.gate.set()
    stream = stub.StreamCreateReminders()
    await stream.write(batch_of(request_of(), 9, size=settings.max_creates // 2))
    answer: Any = await stream.read()
    assert answer.batch_number == 9
    stream.cancel()

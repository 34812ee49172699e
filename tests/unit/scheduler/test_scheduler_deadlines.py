"""A call ends at its limit, or at the caller's deadline, and says which."""

import asyncio
from datetime import timedelta
from typing import Any

import grpc
import pytest
from google.rpc import code_pb2, error_details_pb2, status_pb2
from opentelemetry.metrics import NoOpMeter

from reminders.errors import NotFound, StoreUnavailable
from scheduler.calls import Calls

SHORT = timedelta(milliseconds=20)
LONG = timedelta(minutes=1)


class Aborted(grpc.aio.AbortError):
    """What `abort` raises here."""


class Caller:
    """As much of a servicer's context as calls use."""

    def __init__(self, left_s: float | None = None) -> None:
        self._left_s = left_s
        self.status = status_pb2.Status()

    def time_remaining(self) -> float | None:
        """Until the caller's deadline."""
        return self._left_s

    def cancelled(self) -> bool:
        """The caller waits."""
        return False

    async def abort(self, code: grpc.StatusCode, message: str, details: Any = ()) -> None:
        """Keeps what was told."""
        del message
        self.status = status_pb2.Status(code=code.value[0])
        for _, raw in details:
            self.status.ParseFromString(raw)
        raise Aborted


class Hanging:
    """A use case whose store does not answer."""

    def __init__(self) -> None:
        self.unwound = False

    async def __call__(self, request: object, context: Any) -> None:
        """Waits until it is cancelled."""
        del request, context
        try:
            await asyncio.Event().wait()
        finally:
            self.unwound = True


async def answer(calls: Calls, caller: Caller, method: str = "GetReminder", **options: Any) -> str:
    """The reason that the caller is told for a store that hangs."""
    hanging = Hanging()
    with pytest.raises(Aborted):
        await calls.wrap(method, hanging, **options)(object(), caller)  # type: ignore[arg-type]
    assert hanging.unwound
    assert calls.under_way == 0
    info = error_details_pb2.ErrorInfo()
    assert any(each.Unpack(info) for each in caller.status.details)
    reason: str = info.reason
    return reason


async def test_a_store_that_hangs_is_unavailable_at_the_limit() -> None:
    """However long the caller would wait; and it may come again."""
    caller = Caller(left_s=60)
    assert await answer(Calls(NoOpMeter("t"), limit=SHORT), caller) == "TIMED_OUT"
    assert caller.status.code == code_pb2.UNAVAILABLE
    assert "repeating the same call is safe" in caller.status.message
    assert any(each.Is(error_details_pb2.RetryInfo.DESCRIPTOR) for each in caller.status.details)


@pytest.mark.parametrize(
    "options", [{}, {"streams": True}, {"method": "BatchCreateReminders"}], ids=str
)
async def test_a_callers_shorter_deadline_counts(options: dict[str, Any]) -> None:
    """Nothing goes on for somebody who has gone, whatever the kind of call."""
    caller = Caller(left_s=SHORT.total_seconds())
    calls = Calls(NoOpMeter("t"), limit=LONG)
    assert await answer(calls, caller, **options) == "DEADLINE_EXCEEDED"
    assert caller.status.code == code_pb2.DEADLINE_EXCEEDED


@pytest.mark.parametrize(
    "options", [{"streams": True}, {"method": "BatchCreateReminders"}], ids=str
)
async def test_streams_and_batches_have_no_limit_of_their_own(options: dict[str, Any]) -> None:
    """A stream lasts, and a batch of rules may plan for long."""
    calls, caller, hanging = Calls(NoOpMeter("t"), limit=SHORT), Caller(), Hanging()
    method = options.pop("method", "StreamCreateReminders")
    handler = calls.wrap(method, hanging, **options)
    task: asyncio.Task[None] = asyncio.create_task(handler(object(), caller), name="call")  # type: ignore[arg-type]
    done, _ = await asyncio.wait([task], timeout=3 * SHORT.total_seconds())
    assert not done
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_time_out_of_somebody_else_is_no_outage() -> None:
    """It is a bug, and told as one."""

    async def buggy(request: object, context: Any) -> None:
        raise TimeoutError

    caller = Caller()
    with pytest.raises(Aborted):
        await Calls(NoOpMeter("t"), limit=LONG).wrap("GetReminder", buggy)(object(), caller)  # type: ignore[arg-type]
    assert caller.status.code == code_pb2.INTERNAL


class Gone(Caller):
    """Its call has ended meanwhile: gRPC can't tell it anything."""

    async def abort(self, code: grpc.StatusCode, message: str, details: Any = ()) -> None:
        """As `context.abort` then."""
        del code, message, details
        raise grpc.aio.InternalError("Failed execute_batch")


@pytest.mark.parametrize("left_s", [0.0, None])
@pytest.mark.parametrize("failure", [StoreUnavailable(operation="t"), NotFound(), TimeoutError()])
async def test_nobody_to_tell_is_no_failure_of_ours(
    left_s: float | None, failure: Exception
) -> None:
    """Else each caller that gives up at a bad moment would be two errors in the log."""

    async def fails(request: object, context: Any) -> None:
        raise failure

    with pytest.raises(asyncio.CancelledError):
        await Calls(NoOpMeter("t"), limit=LONG).wrap("GetReminder", fails)(object(), Gone(left_s))  # type: ignore[arg-type]

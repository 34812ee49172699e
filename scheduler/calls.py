"""Around every call: errors become statuses, none takes for ever, and each is measured.

This wraps the handlers once, when they are registered, instead of running as a `ServerInterceptor`
for each call: it costs a few microseconds, sees streams as well, and leaves health and reflection
alone. Nothing is logged for a call that goes well.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from time import perf_counter
from typing import Any, Final, NoReturn, TypeVar

import grpc
import structlog
from google.protobuf.message import DecodeError
from google.rpc.status_pb2 import Status
from opentelemetry.metrics import CallbackOptions, Meter, Observation

from reminders.errors import InvalidRequest, TocsinError, Violation
from reminders.incidents import unexpected
from scheduler.admission import Draining
from scheduler.deadlines import CALL_TIMEOUT, UNLIMITED, in_time, remaining_s
from scheduler.errors import status_of

Request = TypeVar("Request")
Response = TypeVar("Response")
Context = grpc.aio.ServicerContext[Any, Any]
Behaviour = Callable[[Request, Context], Awaitable[Response]]

LATENCY_BOUNDS_S: Final = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)

DETAILS_KEY: Final = "grpc-status-details-bin"
"""Where clients look for a google.rpc.Status (grpcio-status and its kin)."""
CODES: Final = {int(code.value[0]): code for code in grpc.StatusCode}

RECORDED_AT_ONCE: Final = 50

log = structlog.get_logger()


class Unreadable:
    """In place of a request that protobuf could not read."""


UNREADABLE: Final = Unreadable()


def reading(parse: Callable[[bytes], Request]) -> Callable[[bytes], Request | Unreadable]:
    """A deserializer that does not raise: gRPC would call the caller's error INTERNAL."""

    def read(raw: bytes) -> Request | Unreadable:
        try:
            return parse(raw)
        except DecodeError:
            return UNREADABLE

    return read


def refuse_unreadable(request: object) -> None:
    """Raises `InvalidRequest` for what `reading` could not read."""
    if request is UNREADABLE:
        raise InvalidRequest(
            violations=[
                Violation(
                    field="",
                    reason="VALUE_INVALID",
                    description="the message can't be read: it is damaged or nested too deeply",
                )
            ]
        )


class Calls:
    """Wraps handlers; `under_way` counts the calls that are being answered."""

    def __init__(self, meter: Meter, *, limit: timedelta = CALL_TIMEOUT) -> None:
        """`limit`: what a unary call may take."""
        self._limit_s = limit.total_seconds()
        self._latencies = Latencies(meter)
        meter.create_observable_gauge(
            "tocsin.scheduler.calls_under_way",
            callbacks=[self._observe],
            description="Calls being answered.",
        )
        self.under_way = 0
        self._closed = False
        self._idle = asyncio.Event()
        self._idle.set()

    def close(self) -> None:
        """From now on new calls are refused with `Draining`."""
        self._closed = True

    async def idle(self) -> None:
        """Returns once no call is under way."""
        await self._idle.wait()

    def wrap(
        self, method: str, behaviour: Behaviour[Request, Response], *, streams: bool = False
    ) -> Behaviour[Request, Response]:
        """The handler of a method, within all that this module does. `streams`: its calls last as
        long as their callers like.
        """
        limit_s = None if streams or method in UNLIMITED else self._limit_s

        async def call(request: Request, context: Context) -> Response:
            started = perf_counter()
            outcome = "CANCELLED"
            self._begin()
            try:
                if _too_late(context):
                    outcome = "DEADLINE_EXCEEDED"
                    await _abort(context, grpc.StatusCode.DEADLINE_EXCEEDED, "not begun in time")
                self._refuse(method, request)
                response = await in_time(method, behaviour(request, context), context, limit_s)
                outcome = "OK"
            except TocsinError as error:
                status = status_of(error)
                outcome = CODES[status.code].name
                await _abort_with(context, status)
            except (asyncio.CancelledError, grpc.aio.AbortError):
                raise
            except Exception as error:
                if context.cancelled():
                    raise asyncio.CancelledError from error
                outcome = "INTERNAL"
                await _abort_with(context, status_of(unexpected(method, error)))
            else:
                return response
            finally:
                self._end(method, outcome, perf_counter() - started)

        return call

    def _refuse(self, method: str, request: object) -> None:
        if self._closed:
            raise Draining(operation=method)
        refuse_unreadable(request)

    def _begin(self) -> None:
        self.under_way += 1
        if self.under_way == 1:
            self._idle.clear()

    def _end(self, method: str, outcome: str, seconds: float) -> None:
        self.under_way -= 1
        if not self.under_way:
            self._idle.set()
        self._latencies.add(method, outcome, seconds)

    def _observe(self, options: CallbackOptions) -> Iterable[Observation]:
        del options
        self._latencies.flush()
        yield Observation(self.under_way)


class Latencies:
    """A histogram that is fed by the dozen.

    One `record` costs 5 µs in a loop, but several times that between other work, whose code and
    data it pushes out of the processor's caches: a tenth of what a create costs in all.
    """

    def __init__(self, meter: Meter) -> None:
        self._histogram = meter.create_histogram(
            "rpc.server.call.duration",
            unit="s",
            description="Calls by method and outcome, without the time on the wire.",
            explicit_bucket_boundaries_advisory=LATENCY_BOUNDS_S,
        )
        self._waiting: dict[tuple[str, str], list[float]] = {}

    def add(self, method: str, outcome: str, seconds: float) -> None:
        """Notes one call."""
        waiting = self._waiting.setdefault((method, outcome), [])
        waiting.append(seconds)
        if len(waiting) >= RECORDED_AT_ONCE:
            self._record(method, outcome, waiting)

    def flush(self) -> None:
        """Records all; called when metrics are read."""
        for (method, outcome), waiting in tuple(self._waiting.items()):
            self._record(method, outcome, waiting)

    def _record(self, method: str, outcome: str, waiting: list[float]) -> None:
        labels = {"rpc.method": method, "rpc.response.status_code": outcome}
        for seconds in waiting:
            self._histogram.record(seconds, labels)
        waiting.clear()


def _too_late(context: Context) -> bool:
    remaining = remaining_s(context)
    return remaining is not None and remaining <= 0


async def _abort_with(context: Context, status: Status) -> NoReturn:
    details = ((DETAILS_KEY, status.SerializeToString()),)
    await _abort(context, CODES[status.code], status.message, details)


async def _abort(
    context: Context, code: grpc.StatusCode, said: str, details: tuple[tuple[str, bytes], ...] = ()
) -> NoReturn:
    """As a cancelled call where nobody waits any more: that is no failure of ours."""
    try:
        await context.abort(code, said, details)
    except grpc.aio.InternalError as error:
        raise asyncio.CancelledError from error

"""The service on a port, from start to drain."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

import grpc
import structlog
from google.protobuf.descriptor import FileDescriptor, MethodDescriptor, ServiceDescriptor
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health, health_pb2_grpc
from grpc_reflection.v1alpha import reflection
from opentelemetry import metrics
from tocsin.v1 import (
    delivery_service_pb2,
    recipient_service_pb2,
    reminder_service_pb2,
    topic_service_pb2,
)

from reminders.lifecycle import Reminders
from reminders.ports import Clock
from scheduler.calls import Calls, reading
from scheduler.deliveries import DeliveryService
from scheduler.health import Health
from scheduler.recipients import RecipientService
from scheduler.service import ReminderService
from scheduler.settings import SchedulerSettings
from scheduler.topics import TopicService


def _only_service(file: FileDescriptor) -> ServiceDescriptor:
    (found,) = file.services_by_name.values()
    return found


SERVICE: Final[str] = _only_service(reminder_service_pb2.DESCRIPTOR).full_name

LARGEST_MESSAGE_BYTES: Final = 40 * 1024 * 1024
"""A full batch of the largest reminders has 31.4 MiB. The rest lets a batch with some that are too
large fail one by one instead of as a whole; gRPC refuses anything larger without reading it."""

STREAM_WINDOW_BYTES: Final = 1024 * 1024

FLUSH_S: Final = 1.0
"""How long answers that are given may take to leave."""

_OPTIONS: Final = (
    ("grpc.max_receive_message_length", LARGEST_MESSAGE_BYTES),
    ("grpc.max_send_message_length", -1),  # pages are bounded by page_size, and clients have limits
    # What a stream may have sent ahead of our reading. gRPC's own estimate grew it to tens of MB.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", STREAM_WINDOW_BYTES),
    ("grpc.keepalive_time_ms", 60_000),  # find clients that vanished without a word
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),  # let clients do the same
)

Problems = Callable[[], Sequence[str]]

log = structlog.get_logger()


def no_problems() -> Sequence[str]:
    """For a service whose stores are not watched."""
    return ()


class Scheduler:
    """One gRPC server. `run` is what `reminders.process` calls: `start`, wait, `stop`."""

    def __init__(
        self,
        reminders: Reminders,
        clock: Clock,
        settings: SchedulerSettings,
        *,
        stores: Problems = no_problems,
    ) -> None:
        """`stores`: why stores can't be used now; cheap, no I/O."""
        self._clock = clock
        self._settings = settings
        self._stores = stores
        meter = metrics.get_meter("tocsin.scheduler")
        self._calls = Calls(meter, limit=settings.call_timeout)
        self._service = ReminderService(reminders, clock, settings, meter)
        self._topics = TopicService(reminders, clock, settings)
        self._servicers: Mapping[ServiceDescriptor, object] = {
            _only_service(reminder_service_pb2.DESCRIPTOR): self._service,
            _only_service(recipient_service_pb2.DESCRIPTOR): RecipientService(reminders, clock),
            _only_service(topic_service_pb2.DESCRIPTOR): self._topics,
            _only_service(delivery_service_pb2.DESCRIPTOR): DeliveryService(reminders, clock),
        }
        self._names = [service.full_name for service in self._servicers]
        self._health = Health(self._names)
        self._server: grpc.aio.Server | None = None
        self._port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._stopping = False

    def problems(self) -> Sequence[str]:
        """Why it must not be given work now; empty if it may."""
        if self._stopping:
            return ["stopping"]
        if self._server is None:
            return ["not started"]
        drift = [] if self._clock.in_bounds() else ["the clock is out of bounds"]
        return [*drift, *self._stores()]

    async def run(self, stop: asyncio.Event) -> None:
        """Serves until `stop`, then drains."""
        await self.start()
        try:
            async with asyncio.TaskGroup() as group:
                watch = group.create_task(self._follow_readiness(), name="scheduler-readiness")
                await stop.wait()
                watch.cancel()
        finally:
            await self.stop(self._settings.drain_grace)

    async def port(self) -> int:
        """The port that it listens on, as soon as it does."""
        return await asyncio.shield(self._port)

    async def start(self) -> int:
        """Listens, and answers the port. Once. Raises `OSError` if the address can't be bound."""
        if self._server is not None:
            raise RuntimeError("started already")
        server = grpc.aio.server(
            options=(*_OPTIONS, ("grpc.so_reuseport", int(self._settings.reuse_port))),
            maximum_concurrent_rpcs=self._settings.max_calls,
        )
        self._register(server)
        try:
            port = server.add_insecure_port(self._settings.address)
        except RuntimeError as error:
            raise OSError(f"can't listen on {self._settings.address}: {error}") from error
        await server.start()
        self._server = server
        self._port.set_result(port)
        self.update_health()
        log.info("grpc.listening", address=self._settings.address, port=port)
        return port

    async def stop(self, grace: timedelta) -> None:
        """Drains, for at most `grace`, and then closes; what is left by then is cancelled.

        Health says so first; streams end behind what they have read; other calls under way go on;
        new ones are refused with UNAVAILABLE. That lasts for `drain_lead` at least, so that callers
        turn away: gRPC answers CANCELLED to what arrives at the moment of closing.
        """
        if self._server is None or self._stopping:
            return
        self._stopping = True
        self._health.close()
        self._calls.close()
        self._service.drain()
        self._topics.drain()
        log.info("grpc.draining", calls=self._calls.under_way)
        lead = min(self._settings.drain_lead, grace)
        flush: float | None = None
        with suppress(TimeoutError):
            async with asyncio.timeout(grace.total_seconds()):
                await asyncio.gather(self._calls.idle(), asyncio.sleep(lead.total_seconds()))
            flush = FLUSH_S
        await self._server.stop(flush)
        log.info("grpc.stopped", cancelled=self._calls.under_way)

    def update_health(self) -> None:
        """Lets health say what `problems` says now."""
        problems = self.problems()
        if self._health.set(serving=not problems):
            log.info("readiness.changed", ready=not problems, problems=list(problems))

    async def _follow_readiness(self) -> None:
        while True:
            self.update_health()
            await self._clock.sleep_until(self._clock.now() + self._settings.readiness_interval)

    def _register(self, server: grpc.aio.Server) -> None:
        """Not by `add_registered_method_handlers`: for each call grpc.aio would then wait over all
        methods, a µs each.
        """
        for service, servicer in self._servicers.items():
            handlers = {each.name: self._handler(each, servicer) for each in service.methods}
            found = grpc.method_handlers_generic_handler(service.full_name, handlers)
            server.add_generic_rpc_handlers((found,))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        names = (*self._names, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, server)

    def _handler(
        self, method: MethodDescriptor, servicer: object
    ) -> "grpc.RpcMethodHandler[Any, Any]":
        """As the generated `add_ReminderServiceServicer_to_server` makes it, but wrapped."""
        make = (
            grpc.stream_stream_rpc_method_handler
            if method.server_streaming
            else grpc.unary_unary_rpc_method_handler
        )
        return make(
            self._calls.wrap(
                method.name, getattr(servicer, method.name), streams=method.server_streaming
            ),
            request_deserializer=reading(GetMessageClass(method.input_type).FromString),
            response_serializer=GetMessageClass(method.output_type).SerializeToString,
        )

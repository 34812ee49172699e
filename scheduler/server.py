"""The service on a port, from start to drain."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from types import SimpleNamespace
from typing import Final, cast

import grpc
import structlog
from grpc_health.v1 import health, health_pb2_grpc
from grpc_reflection.v1alpha import reflection
from opentelemetry import metrics
from tocsin.v1 import reminder_service_pb2, reminder_service_pb2_grpc

from reminders.lifecycle import Reminders
from reminders.ports import Clock
from scheduler.calls import Calls
from scheduler.health import Health
from scheduler.service import ReminderService
from scheduler.settings import SchedulerSettings

SERVICE: Final = reminder_service_pb2.DESCRIPTOR.services_by_name["ReminderService"].full_name

LARGEST_MESSAGE_BYTES: Final = 40 * 1024 * 1024
"""A full batch of the largest reminders has 31.4 MiB. The rest lets a batch with some that are too
large fail one by one instead of as a whole; gRPC refuses anything larger without reading it."""

_OPTIONS: Final = (
    ("grpc.max_receive_message_length", LARGEST_MESSAGE_BYTES),
    ("grpc.max_send_message_length", -1),  # pages are bounded by page_size, and clients have limits
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
        self._calls = Calls(meter)
        self._service = ReminderService(reminders, clock, settings, meter)
        self._health = Health([SERVICE])
        self._server: grpc.aio.Server | None = None
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

    async def start(self) -> int:
        """Listens, and answers the port. Raises `OSError` if the address can't be bound."""
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
        self.update_health()
        log.info("grpc_listening", address=self._settings.address, port=port)
        return port

    async def stop(self, grace: timedelta) -> None:
        """Drains, for at most `grace`; returns as soon as no call is left.

        Health says so first; new calls are refused; streams end behind what they have read; calls
        under way go on. What is left after `grace` is cancelled.
        """
        if self._server is None or self._stopping:
            return
        self._stopping = True
        self._health.close()
        self._service.drain()
        log.info("grpc_draining", calls=self._calls.under_way)
        await self._server.stop(grace.total_seconds())
        log.info("grpc_stopped")

    def update_health(self) -> None:
        """Lets health say what `problems` says now."""
        problems = self.problems()
        if self._health.set(serving=not problems):
            log.info("readiness_changed", ready=not problems, problems=list(problems))

    async def _follow_readiness(self) -> None:
        while True:
            self.update_health()
            await self._clock.sleep_until(self._clock.now() + self._settings.readiness_interval)

    def _register(self, server: grpc.aio.Server) -> None:
        methods = reminder_service_pb2.DESCRIPTOR.services_by_name["ReminderService"].methods
        wrapped = SimpleNamespace(
            **{
                method.name: self._calls.wrap(method.name, getattr(self._service, method.name))
                for method in methods
            }
        )
        reminder_service_pb2_grpc.add_ReminderServiceServicer_to_server(
            cast("ReminderService", wrapped), server
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        names = (SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, server)

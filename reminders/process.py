"""How every service runs: `python -m scanner` is `run_service("scanner", build)` and nothing else.

    start ──▶ settings, logs, metrics, HTTP ──▶ build ──▶ run ──▶ (stop) ──▶ drained ──▶ 0
                    │                             │        │         │
                    ▼ wrong value: 1              ▼        ▼         ▼ second signal: at once
                                            failed: 1, with the cause

/live answers from the start; /ready only while the service runs, has no problems and is not
stopping. SIGTERM and SIGINT set `stop`; during `build` they cancel it, since there is nothing to
drain yet. `run` has to return after `stop`, drained; if it returns before, that is a failure.
"""

import asyncio
import os
import signal
import sys
import uuid
import zoneinfo
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

import structlog
import uvloop

from reminders.config.problems import ConfigError, unknown_variables
from reminders.config.settings import Service as ServiceName
from reminders.config.settings import Settings, load_settings
from reminders.config.sources import variable
from reminders.errors import TocsinError
from reminders.runtime import allow_files, calm_collector, take_short_turns
from reminders.telemetry.endpoint import endpoint
from reminders.telemetry.logs import configure_logging
from reminders.telemetry.metrics import configure_metrics

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_EXPECTED = (TocsinError, ConfigError, OSError)
"""Failures whose message says enough; of others the log shows the traceback."""

log = structlog.get_logger()


class Service(Protocol):
    """What `build` gives."""

    async def run(self, stop: asyncio.Event) -> None:
        """Works until `stop` is set, then drains and returns. Raises when it can't go on."""

    def problems(self) -> Sequence[str]:
        """Why it must not be given work now, for a person; empty if it may. Cheap, no I/O."""


Build = Callable[[Settings, asyncio.Event], AbstractAsyncContextManager[Service]]
"""Wires adapters and the service; leaving the context closes them, after the drain."""


def run_service(name: ServiceName, build: Build) -> NoReturn:
    """Runs the service until a signal or a failure, and exits the process."""
    use_packaged_zones()
    try:
        settings = load_settings()
    except ConfigError as error:
        sys.stderr.write(f"{name}: wrong configuration\n{error}\n")
        sys.exit(1)
    sys.exit(run(name, build, settings, http_port=settings.http_port(name)))


def run(name: str, build: Build, settings: Settings, *, http_port: int) -> int:
    """The same for settings at hand; the exit code. Once in a process."""
    instance = str(uuid.uuid4())
    configure_logging(
        service=name, instance=instance, level=settings.log_level, style=settings.log_format
    )
    provider = configure_metrics(service=name, instance=instance)
    for warning in unknown_variables(os.environ, Settings.model_fields):
        log.warning("setting.unknown", message=warning)
    try:
        return uvloop.run(_Run(name, build, settings, http_port).main())
    finally:
        provider.shutdown()


def use_packaged_zones() -> None:
    """Makes zoneinfo read the tzdata package only, in this process and its children."""
    os.environ["PYTHONTZPATH"] = ""
    zoneinfo.reset_tzpath(to=())
    zoneinfo.ZoneInfo.clear_cache()


@dataclass(slots=True)
class _Run:
    """One life of a service."""

    name: str
    build: Build
    settings: Settings
    http_port: int
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    service: Service | None = None
    building: asyncio.Task[None] | None = None

    async def main(self) -> int:
        """The exit code."""
        prompt = take_short_turns()  # before there are threads, which inherit it
        files = allow_files()
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self.signalled, number)
        try:
            async with AsyncExitStack() as stack:
                port = await self.answer(stack)
                log.info(
                    "service.starting",
                    http_port=port,
                    pid=os.getpid(),
                    short_turns=prompt,
                    open_files=files,
                )
                await self.live()
        except asyncio.CancelledError:
            if not self.stop.is_set():
                raise
            log.info("service.stopped", while_starting=True)
        except Exception as failure:  # noqa: BLE001 - the last place that can tell the cause
            report_failure(failure)
            return 1
        return 0

    async def answer(self, stack: AsyncExitStack) -> int:
        """Opens the HTTP endpoint, and gives its port."""
        host, port = self.settings.http_host, self.http_port
        try:
            return await stack.enter_async_context(endpoint(host, port, self.problems))
        except OSError as error:
            name = variable(f"{self.name}_http_port")
            raise ConfigError(
                [f"{name}={port}: {error.strerror}; give a port that is free on {host}, or 0"]
            ) from error

    async def live(self) -> None:
        """Build, run, close."""
        self.building = asyncio.current_task()
        async with self.build(self.settings, self.stop) as service:
            self.building = None
            if self.stop.is_set():
                return
            self.service = service
            calm_collector()
            log.info("service.running")
            await service.run(self.stop)
            if not self.stop.is_set():
                raise RuntimeError(f"{self.name} ended by itself")
            log.info("service.drained")
        log.info("service.stopped")

    def problems(self) -> Sequence[str]:
        """What /ready answers."""
        if self.stop.is_set():
            return ["stopping"]
        if self.service is None:
            return ["starting"]
        return self.service.problems()

    def signalled(self, number: int) -> None:
        """The first one drains, the second one ends the process where it stands."""
        name = signal.Signals(number).name
        if self.stop.is_set():
            log.warning("service.killed", signal=name)
            os._exit(128 + number)
        log.info("service.stopping", signal=name)
        self.stop.set()
        if self.building is not None:
            self.building.cancel()


def report_failure(failure: Exception) -> None:
    """Logs the cause, each of them in a group."""
    if isinstance(failure, ExceptionGroup):
        for each in failure.exceptions:
            report_failure(each)
        return
    expected = isinstance(failure, _EXPECTED)
    cause = f"{type(failure).__name__}: {failure}"
    log.error("service.failed", cause=cause, exc_info=None if expected else failure)

"""Everything on this machine for the length of a block: servers, schema, services.

Cassandra and Redis are those that the configuration names, else local processes (`localstack`).
What was started is stopped in reverse order; what was there already is left alone.
"""

import os
import shlex
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reminders.cli import children
from reminders.cli.children import Child
from reminders.cli.failure import CommandError
from reminders.config.problems import ConfigError
from reminders.config.settings import Service, Settings, given_values, load_settings
from reminders.config.sources import variable
from reminders.localstack import Endpoints, StepFailedError, provide
from reminders.localstack.datadir import Ports

LOCAL_SHARDS = 4
"""Enough for one machine; each shard costs its scanner a little all the time."""

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """What runs."""

    grpc_address: str
    services: Sequence[Child]
    servers: str
    """What a shell is told so that commands which work on the servers find them."""

    def ensure_alive(self) -> None:
        """Raises CommandError if a service has ended."""
        for child in self.services:
            child.ensure_alive()


@contextmanager
def local_stack(data_dir: Path, progress: Progress) -> Iterator[Stack]:
    """All of it, ready.

    Raises:
        CommandError: A step failed; says which, why, and what to do.
    """
    settings = checked_settings(allow_loopback_http=True)
    ensure_free(settings.grpc_address)
    given = given_values()
    for name, value in (
        ("cassandra_hosts", ",".join(settings.cassandra_hosts)),
        ("redis_url", settings.redis_url),
    ):
        if name in given:  # perhaps by the file, which `provide` does not read
            os.environ[variable(name)] = value
    with _sigterm_as_interrupt(), _servers(data_dir, progress) as endpoints:
        http_ports = _http_ports(settings, remembered_ports(data_dir), set(given))
        environment = _environment(endpoints, settings, set(given))
        migrate(environment, progress)
        logs = data_dir / "logs"
        progress("starting scheduler, scanner, expander and dispatcher …")
        with children.running(environment, http_ports, logs, progress) as services:
            yield Stack(
                grpc_address=settings.grpc_address, services=services, servers=_exports(environment)
            )


def remembered_ports(data_dir: Path) -> Ports:
    """The ports of this data folder's processes: those of the last run, while they are free."""
    data_dir.mkdir(parents=True, exist_ok=True)
    return Ports(data_dir / "services.json")


def checked_settings(**told: Any) -> Settings:
    """The settings, or a failure that a person can act on. `told`: as in `load_settings`."""
    try:
        return load_settings(**told)
    except ConfigError as error:
        raise CommandError("wrong configuration", *error.problems) from None


def migrate(environment: dict[str, str], progress: Progress) -> None:
    """Brings the schema up to date, in a process of its own, so that no driver lives on here."""
    progress("bringing the schema up to date …")
    done = subprocess.run(
        children.module_command("reminders.cli", "migrate"),
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        before, _, said = done.stderr.rpartition("error: ")
        lines = (said or before or done.stdout).strip().splitlines()
        raise CommandError("the schema could not be brought up to date", *lines[-15:])


@contextmanager
def _servers(data_dir: Path, progress: Progress) -> Iterator[Endpoints]:
    """`provide`, with its failures as ours. Only its own: those of the block pass untouched."""
    try:
        with provide(data_dir, progress=progress) as endpoints:
            yield endpoints
    except StepFailedError as error:
        raise CommandError(
            f"could not {error.step}", f"why: {error.why}", f"what to do: {error.remedy}"
        ) from error


@contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """SIGTERM ends the block as Ctrl-C does, and both do in a shell's background job too, which is
    started with SIGINT ignored.
    """
    signals = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, signal.default_int_handler) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)


def _environment(endpoints: Endpoints, settings: Settings, given: set[str]) -> dict[str, str]:
    """What the services are told on top of what this process was told."""
    told = {
        "cassandra_hosts": endpoints.cassandra_hosts,
        "redis_url": endpoints.redis_url,
        "http_host": children.HOST,
        "allow_loopback_http": "true",
        "shards": str(settings.shards if "shards" in given else LOCAL_SHARDS),
    }
    return {"PYTHONTZPATH": "", **{variable(name): value for name, value in told.items()}}


def _exports(environment: Mapping[str, str]) -> str:
    told = ("cassandra_hosts", "redis_url", "shards", "allow_loopback_http")
    names = map(variable, told)
    return "export " + " ".join(f"{name}={shlex.quote(environment[name])}" for name in names)


def _http_ports(settings: Settings, ports: Ports, given: set[str]) -> dict[str, int]:
    """Those that were configured, else free ones, so that two stacks do not meet."""
    names: tuple[Service, ...] = ("scheduler", "scanner", "expander", "dispatcher")
    chosen: dict[str, int] = {}
    for service in names:
        configured = settings.http_port(service) if f"{service}_http_port" in given else 0
        chosen[service] = configured or ports.choose(service, children.HOST)
    return chosen


def ensure_free(address: str) -> None:
    """Fails if somebody listens there: gRPC would share the port without a word."""
    host, _, port = address.rpartition(":")
    family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host.strip("[]"), int(port)))
        except OSError as error:
            raise CommandError(
                f"gRPC can't listen on {address}: {error.strerror}",
                "perhaps another `make run` or `tocsin up` runs: stop it, or choose another port, "
                f"such as {variable('grpc_address')}={host}:{int(port) + 1}",
            ) from error

"""Where Cassandra and Redis come from: the one place that chooses.

Each of the two separately: its address in the environment, else a local process. A third way (a
container engine) belongs into `provide`, as a sibling of `_Local`.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from reminders.localstack import cassandra, redis, runtime
from reminders.localstack.datadir import Ports, hold
from reminders.localstack.failure import StepFailedError
from reminders.localstack.probe import cassandra_answers, redis_answers, split_host_port
from reminders.localstack.process import ServerProcess

CASSANDRA_VARIABLE: Final = "TOCSIN_CASSANDRA_HOSTS"
REDIS_VARIABLE: Final = "TOCSIN_REDIS_URL"
SENTINEL_SCHEME: Final = "redis+sentinel"
LOOPBACK: Final = "127.0.0.1"
START_TIMEOUT_S: Final = 240.0
GIVEN_TIMEOUT_S: Final = 30.0
POLL_S: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """Addresses of servers that answer.

    Attributes:
        cassandra_hosts: "host:port[,host:port]".
        redis_url: "redis://host:port/0", or "redis+sentinel://host:port[,host:port]/service".
    """

    cassandra_hosts: str
    redis_url: str


@contextmanager
def provide(
    data_dir: Path,
    *,
    progress: Callable[[str], None],
    fresh: bool = False,
    cassandra_port: int | None = None,
    redis_port: int | None = None,
) -> Iterator[Endpoints]:
    """Servers that answer, for the length of a `with` block.

    What was started here is stopped at the end, also when this process is killed (see `process`);
    servers given by address are left alone.

    Args:
        data_dir: holds the data of local servers, kept from run to run. One run at a time.
        progress: gets a line for each step that takes time.
        fresh: begin with empty local servers. Servers given by address keep their data.
        cassandra_port: port of a local Cassandra; None: the last run's if free, else a free one.
        redis_port: the same for Redis.

    Raises:
        StepFailedError: names the step, why, and what to do.
    """
    data_dir = data_dir.expanduser().resolve()
    given_cassandra = given_hosts(os.environ.get(CASSANDRA_VARIABLE))
    given_redis = given_url(os.environ.get(REDIS_VARIABLE))
    with ExitStack() as stack:
        local = None
        if given_cassandra is None or given_redis is None:
            lock = stack.enter_context(hold(data_dir, progress))
            local = _Local(data_dir, progress, lock, stack)
            if fresh:
                local.erase()
        cassandra_started = (
            local.start_cassandra(cassandra_port) if local and given_cassandra is None else None
        )
        redis_started = local.start_redis(redis_port) if local and given_redis is None else None
        endpoints = Endpoints(
            cassandra_hosts=given_cassandra or cassandra_started or "",
            redis_url=given_redis or redis_started or "",
        )
        if local:
            local.wait_until_all_answer()
        _wait_for_given(given_cassandra, given_redis, progress)
        yield endpoints


def given_hosts(value: str | None) -> str | None:
    """The addresses of a Cassandra that runs already, checked; None if there are none.

    Raises:
        StepFailedError: it is not "host:port[,host:port]".
    """
    if not value or not value.strip():
        return None
    try:
        for part in value.split(","):
            split_host_port(part)
    except ValueError as error:
        raise StepFailedError(
            step=f"read {CASSANDRA_VARIABLE}",
            why=str(error),
            remedy="write it like 10.0.0.1:9042,10.0.0.2:9042",
        ) from None
    return ",".join(part.strip() for part in value.split(","))


def given_url(value: str | None) -> str | None:
    """The URL of a Redis that runs already, checked; None if there is none.

    Raises:
        StepFailedError: it is no URL of a Redis or of sentinels.
    """
    if not value or not value.strip():
        return None
    parts = urlsplit(value.strip())
    sentinels = parts.scheme == SENTINEL_SCHEME and parts.netloc and len(parts.path) > 1
    if not sentinels and (parts.scheme not in ("redis", "rediss") or not parts.hostname):
        raise StepFailedError(
            step=f"read {REDIS_VARIABLE}",
            # The value is not shown: it may hold a password.
            why="it is no redis:// or rediss:// URL with a host, nor one of sentinels",
            remedy="write it like redis://localhost:6379/0, or "
            "redis+sentinel://localhost:26379/service",
        )
    return value.strip()


class _Local:
    """The servers of one run in one data folder."""

    def __init__(
        self, data_dir: Path, progress: Callable[[str], None], lock: int, stack: ExitStack
    ) -> None:
        self._cassandra_dir = data_dir / "cassandra"
        self._redis_dir = data_dir / "redis"
        self._ports = Ports(data_dir / "ports.json")
        self._progress = progress
        self._lock = lock
        self._waiting: list[tuple[ServerProcess, Callable[[], bool]]] = []
        stack.callback(self._stop)

    def erase(self) -> None:
        """Remove the data of earlier runs."""
        for directory in (self._cassandra_dir, self._redis_dir):
            shutil.rmtree(directory, ignore_errors=True)

    def start_redis(self, port: int | None) -> str:
        """Start it; its URL."""
        server = redis.find(runtime.cache_dir(), self._progress)
        chosen = self._ports.choose("Redis", LOOPBACK, port)
        settings = redis.RedisSettings(directory=self._redis_dir, host=LOOPBACK, port=chosen)
        url = f"redis://{LOOPBACK}:{chosen}/0"
        process = redis.launch(server, settings, keep_open=[self._lock])
        self._waiting.append((process, lambda: redis_answers(url)))
        return url

    def start_cassandra(self, port: int | None) -> str:
        """Start it, fetching it first if need be; its address."""
        heap, commitlog_sync = cassandra.tuning_from_environment()
        java = runtime.find_java()
        jars = runtime.cassandra_jars(self._progress)
        settings = cassandra.CassandraSettings(
            directory=self._cassandra_dir,
            address=LOOPBACK,
            cql_port=self._ports.choose("Cassandra", LOOPBACK, port),
            storage_port=self._ports.choose("Cassandra's peers", LOOPBACK),
            heap=heap,
            commitlog_sync=commitlog_sync,
        )
        process = cassandra.launch(java, jars, settings, keep_open=[self._lock])
        self._waiting.append((process, lambda: cassandra_answers(LOOPBACK, settings.cql_port)))
        return f"{LOOPBACK}:{settings.cql_port}"

    def wait_until_all_answer(self) -> None:
        """Block until each server started here answers."""
        for process, answers in reversed(self._waiting):  # the slowest last
            process.wait_until(answers, timeout_s=START_TIMEOUT_S, progress=self._progress)

    def _stop(self) -> None:
        for process, _ in self._waiting:
            process.ask_to_stop()
        for process, _ in self._waiting:
            process.stop()


def _wait_for_given(hosts: str | None, url: str | None, progress: Callable[[str], None]) -> None:
    """Block until the servers given by address answer: they may be starting as well."""
    if hosts is not None:
        addresses = [split_host_port(part) for part in hosts.split(",")]
        _wait(
            CASSANDRA_VARIABLE,
            lambda: any(cassandra_answers(*each) for each in addresses),
            progress,
        )
    if url is not None:
        _wait(REDIS_VARIABLE, lambda: redis_answers(url), progress)


def _wait(variable: str, answers: Callable[[], bool], progress: Callable[[str], None]) -> None:
    started = time.monotonic()
    announced = False
    while not answers():
        if time.monotonic() - started > GIVEN_TIMEOUT_S:
            raise StepFailedError(
                step=f"reach the server that {variable} names",
                why=f"no answer within {GIVEN_TIMEOUT_S:.0f} s",
                remedy=f"start it, correct {variable}, or unset it to have a local server started",
            )
        if not announced:
            progress(f"waiting for the server that {variable} names …")
            announced = True
        time.sleep(POLL_S)

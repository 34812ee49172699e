"""Connecting, and the policies that every request follows.

Consistency     LOCAL_QUORUM; LWTs at LOCAL_SERIAL, and reads where a statement says so.
Time-out        `request_timeout` (5 s) for a request, longer than the server's own; 2.5 s for LWTs.
Driver retries  Once, on another host: where the coordinator had too few replicas (nothing was
                done), or broke while an idempotent statement (a read, a stamped write) was under
                way. Once, on the same: a read whose replicas answered but not the one with data.
                Never an LWT, never a write that timed out.
Second asking   A read or stamped write that is not answered in `ASK_ANOTHER_AFTER_S` is asked of
                another node as well, once: a coordinator that hangs is not known to be down for
                up to a minute. Never an LWT.
Our retries     `writer` sends stamped rows again once, each alone; `changes` and `dedup` find out
                what a lost LWT did.
Stamps          None by the driver: every plain statement has its own.
Sockets         TCP_NODELAY: with Nagle, one batch at a time took 45 ms instead of 1.2.
"""

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog
from cassandra import ConsistencyLevel, InvalidRequest, OperationTimedOut
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import (
    EXEC_PROFILE_DEFAULT,
    Cluster,
    ExecutionProfile,
    NoHostAvailable,
    Session,
)
from cassandra.connection import Connection, ConnectionException
from cassandra.io.libevreactor import LibevConnection
from cassandra.policies import (
    ConstantSpeculativeExecutionPolicy,
    DCAwareRoundRobinPolicy,
    ExponentialReconnectionPolicy,
    RetryPolicy,
    TokenAwarePolicy,
)
from cassandra.query import tuple_factory
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    stop_after_delay,
    wait_exponential,
)

from reminders.errors import StoreUnavailable
from reminders.storage.refusal import KeyspaceRefused
from reminders.storage.settings import StorageSettings

log = structlog.get_logger(__name__)

SOCKET_OPTIONS = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]
PROTOCOL_VERSION = 4
"""Version 5 sums every segment in Python and gives up the GIL to do so: grouped writes then cost 27
instead of 21 µs of CPU a create, at two thirds of the rate. What it adds is of no use here: results
of named columns don't change."""
ASK_ANOTHER_AFTER_S = 1.0
"""Far beyond what a node under load takes: asking twice must not be what overloads it."""
RECONNECT_FIRST_S = 0.5
RECONNECT_MAX_S = 5.0

NOT_THERE_YET = (NoHostAvailable, ConnectionException, OperationTimedOut, OSError)
"""What connecting raises while Cassandra starts."""


class StatedRetryPolicy(RetryPolicy):  # type: ignore[misc]
    """The driver's part of the retries, as the module says.

    Inherited: `on_unavailable` goes to the next host once, `on_read_timeout` asks again once where
    only the data was late.
    """

    def on_write_timeout(self, *_args: Any, **_kwargs: Any) -> tuple[int, Any]:
        """Never here."""
        return self.RETHROW, None

    def on_request_error(self, query: Any, *_args: Any, retry_num: int, **_kwargs: Any) -> Any:
        """Another host, once, if doing it twice is harmless."""
        if retry_num == 0 and query is not None and query.is_idempotent:
            return self.RETRY_NEXT_HOST, None
        return self.RETHROW, None


def make_cluster(
    settings: StorageSettings, connection_class: type[Connection] = LibevConnection
) -> Cluster:
    """A cluster that is not connected. One a process, made after any fork."""
    auth = None
    if settings.username is not None:
        auth = PlainTextAuthProvider(settings.username, settings.password)
    profile = ExecutionProfile(
        load_balancing_policy=TokenAwarePolicy(
            DCAwareRoundRobinPolicy(local_dc=settings.datacenter or "")
        ),
        retry_policy=StatedRetryPolicy(),
        speculative_execution_policy=ConstantSpeculativeExecutionPolicy(ASK_ANOTHER_AFTER_S, 1),
        consistency_level=ConsistencyLevel.LOCAL_QUORUM,
        serial_consistency_level=ConsistencyLevel.LOCAL_SERIAL,
        request_timeout=settings.request_timeout.total_seconds(),
        row_factory=tuple_factory,
    )
    return Cluster(
        contact_points=[_endpoint(host) for host in settings.hosts],
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        auth_provider=auth,
        connection_class=connection_class,  # never AsyncioConnection: it broke under load (FACTS)
        sockopts=SOCKET_OPTIONS,
        compression=False,
        protocol_version=PROTOCOL_VERSION,
        reconnection_policy=ExponentialReconnectionPolicy(RECONNECT_FIRST_S, RECONNECT_MAX_S),
        monitor_reporting_enabled=False,
    )


def _endpoint(host: str) -> tuple[str, int]:
    name, _, port = host.rpartition(":")
    return name.strip("[]"), int(port)


def connect(
    settings: StorageSettings,
    keyspace: str | None,
    connection_class: type[Connection] = LibevConnection,
) -> tuple[Cluster, Session]:
    """Connects, waiting with patience for a Cassandra that is still starting. Blocks: run it in a
    thread. `connection_class`: `reactor`'s where a loop runs meanwhile; the driver's own does
    without.

    Raises:
        StoreUnavailable: It did not answer in `settings.connect_patience`.
        KeyspaceRefused: There is no such keyspace.
    """
    patiently = Retrying(
        retry=retry_if_exception_type(NOT_THERE_YET),
        wait=wait_exponential(multiplier=0.2, max=5),
        stop=stop_after_delay(settings.connect_patience.total_seconds()),
        before_sleep=_report,
        reraise=True,
    )
    try:
        with _silent_driver():
            return patiently(_connect_once, settings, keyspace, connection_class)
    except NOT_THERE_YET as error:
        raise StoreUnavailable(operation="connect") from error
    except InvalidRequest as error:
        raise KeyspaceRefused(
            keyspace=settings.keyspace, problem="does not exist: run `tocsin migrate`"
        ) from error


@contextmanager
def _silent_driver() -> Iterator[None]:
    """It would log two stack traces for each try; what came of it is said by us, or raised."""
    logger = logging.getLogger("cassandra")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def _connect_once(
    settings: StorageSettings, keyspace: str | None, connection_class: type[Connection]
) -> tuple[Cluster, Session]:
    cluster = make_cluster(settings, connection_class)
    try:
        session = cluster.connect()
        if keyspace is not None:
            session.set_keyspace(keyspace)  # apart from connect, which hides that there is none
    except BaseException:
        cluster.shutdown()
        raise
    session.use_client_timestamp = False
    session.default_fetch_size = None  # every read has its limit
    return cluster, session


def _report(state: RetryCallState) -> None:
    """Start-up is not silent about what it waits for."""
    error = state.outcome.exception() if state.outcome is not None else None
    log.warning(
        "cassandra.awaited",
        attempt=state.attempt_number,
        waited_s=round(state.seconds_since_start or 0.0, 1),
        error=str(error),
    )

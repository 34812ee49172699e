"""Connections with stated time-outs and no hidden repeats; the one translation of Redis errors."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from redis.asyncio import BlockingConnectionPool, ConnectionPool, Redis
from redis.asyncio.connection import AbstractConnection, Connection, parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    BusyLoadingError,
    MasterDownError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from reminders.coordination.masters import MasterConnection, Masters, as_it_is
from reminders.coordination.prompt import PROMPT
from reminders.errors import CoordinationUnavailable
from reminders.sentinel_url import is_sentinel_url, parse_sentinel_url

Value = str | bytes | int | float
"""What a command may carry."""

REFUSALS = (
    "LOADING",
    "READONLY",
    "MASTERDOWN",
    "NOREPLICAS",
    "MISCONF",
    "OOM ",
    "BUSY ",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "max number of clients",
)
"""Words of a server that can't serve now. Any other error is a bug of ours and stays what it is."""

MOST_BLOCKED = 1000
"""Blocking reads at once: far more than a process has, as one more is an error."""

REFUSAL_TYPES = (BusyLoadingError, MasterDownError, OutOfMemoryError, ReadOnlyError)
"""The client's own classes for some of them; it strips the code from their message."""

RAW_REPLIES = ("XREADGROUP", "XREAD", "XREVRANGE", "XCLAIM")
"""Their replies are taken apart here: the client's dictionaries would cost more than the reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """How long to wait for Redis. Bounds a stuck renewal, too: well below a lease's life."""

    connect: timedelta = timedelta(seconds=1)
    operation: timedelta = timedelta(milliseconds=1500)
    block: timedelta = timedelta(seconds=5)
    """Longest single blocking read; a longer wait is made of several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lives:
    """How long things live in Redis."""

    lease: timedelta = timedelta(seconds=3)
    fired: timedelta = timedelta(hours=6)
    """A minute's dedupe hash, from its last claim."""
    hints: timedelta = timedelta(seconds=60)
    consumer: timedelta = timedelta(hours=1)
    """A consumer that holds nothing and was not seen, before it is forgotten."""


class Lines:
    """Connections for the few calls that are made all the time.

    Sends bytes that were packed beforehand. A pool's locks and counters, and packing the names of
    64 streams, cost more than such a call itself.
    """

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self._idle: list[AbstractConnection] = []
        self._made: list[AbstractConnection] = []

    async def call(self, packed: bytes, *, within: timedelta) -> Any:
        """The reply as it is; an error reply is raised. One caller has one connection."""
        connection = self._idle.pop() if self._idle else self._make()
        try:
            async with asyncio.timeout(within.total_seconds()):
                await connection.connect()  # type: ignore[no-untyped-call]
                await connection.send_packed_command(packed, check_health=False)
                return await connection.read_response(disable_decoding=True)
        finally:
            self._idle.append(connection)  # one that failed has disconnected itself

    async def close(self) -> None:
        """Close every connection. Who waits on one gets an error; the next call connects anew."""
        for connection in self._made:
            await connection.disconnect(nowait=True)

    def _make(self) -> AbstractConnection:
        options = {**self._pool.connection_kwargs, "socket_timeout": None}
        made: AbstractConnection = self._pool.connection_class(**options)
        self._made.append(made)
        return made


def packed(*arguments: bytes) -> bytes:
    """Arguments as RESP carries them; a whole command is `*<count>` and these."""
    return b"".join(b"$%d\r\n%b\r\n" % (len(each), each) for each in arguments)


def command(*arguments: bytes) -> bytes:
    """A whole command, ready to be sent."""
    return b"*%d\r\n" % len(arguments) + packed(*arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """Two pools: a blocked read must neither hold up a claim nor share its time-out."""

    commands: Redis
    blocking: Redis
    lines: Lines
    masters: Masters | None
    """None: the URL names the server itself."""

    async def start(self) -> None:
        """Find the master, where there are sentinels to ask."""
        if self.masters is not None:
            await self.masters.start(self._disconnect)

    async def _disconnect(self) -> None:
        """The server is another now: whoever waits for the old one's answer gets an error."""
        for close in (
            self.commands.connection_pool.disconnect,
            self.blocking.connection_pool.disconnect,
            self.lines.close,
        ):
            with suppress(RedisError, OSError):  # it did not end well, but it is closed
                await close()

    async def close(self) -> None:
        """Close every connection."""
        if self.masters is not None:
            await self.masters.close()
        await self.commands.aclose()
        await self.blocking.aclose()
        await self.lines.close()


def open_clients(url: str, timeouts: Timeouts, *, connections: int = 32) -> Clients:
    """Make the pools; nothing is connected yet.

    `url`: of a server, or of sentinels. `connections`: so many commands at once, others queue for
    up to a time-out.
    """
    masters, address = _address(url)
    operation = timeouts.operation.total_seconds()
    options = {
        "socket_connect_timeout": timeouts.connect.total_seconds(),
        "retry_on_error": [],
        "protocol": 2,  # replies as lists on every version
    }
    commands = BlockingConnectionPool(
        max_connections=connections,
        timeout=operation,
        retry=Retry(NoBackoff(), 0),
        **{**options, "socket_timeout": operation, **address},
    )
    longest = (timeouts.block + timeouts.operation).total_seconds()
    blocking = ConnectionPool(
        max_connections=MOST_BLOCKED,
        retry=Retry(NoBackoff(), 0),
        **{**options, "socket_timeout": longest, **address},
    )
    return Clients(
        commands=_client(commands),
        blocking=_client(blocking),
        lines=Lines(blocking),
        masters=masters,
    )


def _address(url: str) -> tuple[Masters | None, dict[str, Any]]:
    """Who knows the server, and what connections to it are made with."""
    if not is_sentinel_url(url):
        told_by_url: dict[str, Any] = dict(parse_url(url))
        kind = told_by_url.get("connection_class", Connection)
        return None, {**told_by_url, "connection_class": PROMPT[kind]}
    told = parse_sentinel_url(url)
    masters = Masters(told)
    return masters, {
        "connection_class": MasterConnection,
        "masters": masters,
        "db": told.database,
        "username": told.username,
        "password": told.password,
    }


def _client(pool: ConnectionPool) -> Redis:
    client = Redis.from_pool(pool)
    for command in RAW_REPLIES:
        client.set_response_callback(command, as_it_is)
    return client


@contextmanager
def translated(operation: str) -> Iterator[None]:
    """Turns "down, slow or short of replicas" into `CoordinationUnavailable`."""
    try:
        yield
    except (RedisConnectionError, RedisTimeoutError, OSError) as error:
        raise CoordinationUnavailable(operation=operation) from error
    except RedisError as error:
        if refused(error):
            raise CoordinationUnavailable(operation=operation) from error
        raise


def refused(error: RedisError) -> bool:
    """Whether the server can't serve now. Redis 6.2 hides the word inside a script's message."""
    return isinstance(error, REFUSAL_TYPES) or any(word in str(error) for word in REFUSALS)


async def send(client: Redis, *command: Value) -> Any:
    """One command, its reply as the client gives it."""
    return await client.execute_command(*command)  # type: ignore[no-untyped-call]

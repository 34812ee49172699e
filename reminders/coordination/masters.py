"""The master of a replicated Redis, by asking its sentinels, and connections that follow it.

    watch ──every half second──▶ all sentinels: who is master, since which epoch?
      │ another than before
      ▼
    address changes, `on_move`: every connection is closed, whoever waits on it gets an error
      ▼
    the next command connects to the new master

Of several answers the one with the highest configuration epoch counts: a sentinel that is cut off
from the others goes on naming the old master. That master may still answer us: it takes no claims
(`min-replicas-to-write`), and closing what is connected to it keeps us from waiting for it. Between
two looks at most half a second passes; a sentinel that is silent costs another.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import structlog
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from reminders.coordination.prompt import PromptConnection
from reminders.sentinel_url import SentinelUrl

log = structlog.get_logger(__name__)

LOOK_EVERY = timedelta(milliseconds=500)
ASK_AT_MOST = timedelta(milliseconds=500)
"""How long a sentinel may take to answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MasterView:
    """What a sentinel says of the service; the newest of several."""

    address: tuple[str, int]
    epoch: int
    """Grows with each fail-over."""
    replicas: int
    """That it knows, those that are down included."""
    sentinels: int
    """That it knows, itself included."""
    down_after: timedelta
    """So long a master must be silent before it may be replaced."""


class Masters:
    """Knows where the master is."""

    def __init__(self, url: SentinelUrl) -> None:
        self._service = url.service
        self._asked = [_sentinel(host, port) for host, port in url.sentinels]
        self._on_move: Callable[[], Awaitable[None]] | None = None
        self._watching: asyncio.Task[None] | None = None
        self.view: MasterView | None = None
        """As last heard; kept while no sentinel answers."""

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of the master.

        Raises:
            RedisConnectionError: no sentinel has named it yet.

        And what ended the watching, if something did.
        """
        if self._watching is not None and self._watching.done() and not self._watching.cancelled():
            self._watching.result()
        if self.view is None:
            raise RedisConnectionError(f"no sentinel names a master for {self._service!r}")
        return self.view.address

    async def start(self, on_move: Callable[[], Awaitable[None]]) -> None:
        """Ask once, then go on in the background; `on_move` is called when the address changes."""
        self._on_move = on_move
        await self.look()
        self._watching = asyncio.create_task(self._watch(), name="redis-master")

    async def close(self) -> None:
        """Stop looking."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        await asyncio.gather(*(client.aclose() for client in self._asked), return_exceptions=True)

    async def look(self) -> None:
        """Ask all of them at once."""
        heard = await asyncio.gather(*map(self._ask, self._asked))
        newest = max((view for view in heard if view), key=lambda view: view.epoch, default=None)
        before = self.view
        if newest is None or (before is not None and newest.epoch < before.epoch):
            return
        self.view = newest
        if before is not None and before.address != newest.address:
            log.warning("redis.moved", service=self._service, epoch=newest.epoch)
            if self._on_move is not None:
                await self._on_move()

    async def _ask(self, sentinel: Redis) -> MasterView | None:
        try:
            asked = sentinel.execute_command("SENTINEL MASTER", self._service)  # type: ignore[no-untyped-call]
            return _view(await asked)
        except (RedisError, OSError):
            return None  # silent, or does not know the service yet

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY.total_seconds())
            await self.look()


class MasterConnection(PromptConnection):
    """Connects to whoever is the master at that time."""

    def __init__(self, *, masters: Masters, **options: Any) -> None:
        super().__init__(**options)
        self._masters = masters

    async def _connect(self) -> None:
        self.host, self.port = self._masters.address
        await super()._connect()  # type: ignore[no-untyped-call]


def _sentinel(host: str, port: int) -> Redis:
    longest = ASK_AT_MOST.total_seconds()
    client = Redis(
        host=host,
        port=port,
        socket_timeout=longest,
        socket_connect_timeout=longest,
        retry=Retry(NoBackoff(), 0),
        protocol=2,
    )
    client.set_response_callback("SENTINEL MASTER", as_it_is)
    return client


def as_it_is(response: Any, **kwargs: Any) -> Any:  # noqa: ARG001 (the client's protocol)
    """A callback for replies that are taken apart here."""
    return response


def _view(reply: Sequence[bytes]) -> MasterView:
    """Of names and values in turn."""
    fields = {
        name.decode(): value.decode() for name, value in zip(reply[::2], reply[1::2], strict=True)
    }
    return MasterView(
        address=(fields["ip"], int(fields["port"])),
        epoch=int(fields["config-epoch"]),
        replicas=int(fields["num-slaves"]),
        sentinels=int(fields["num-other-sentinels"]) + 1,
        down_after=timedelta(milliseconds=int(fields["down-after-milliseconds"])),
    )

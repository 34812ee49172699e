"""The driver's connections on our loop: messages whole, in order, from any thread; clean ends."""

import asyncio
import gc
import socket
import weakref
from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio
from cassandra.connection import ConnectionShutdown

from reminders.storage.reactor import LoopConnection

LARGE = 4 * 1024 * 1024
"""Bytes; no socket buffer takes as much at once."""


class Wired(LoopConnection):
    """Joined to a socket of the test instead of a server; notes what arrives."""

    def __init__(self, ours: socket.socket) -> None:
        self._ours = ours
        self.arrived = bytearray()
        self.news = asyncio.Event()
        super().__init__("127.0.0.1", 1)

    def _connect_socket(self) -> None:
        self._socket = self._ours

    def _send_options_message(self) -> None:
        """Nobody there to answer it."""

    def process_io_buffer(self) -> None:
        """Instead of the protocol."""
        self.arrived += self._iobuf.getvalue()
        self._io_buffer.reset_io_buffer()
        self._iobuf.seek(0)
        self._iobuf.truncate()
        self.news.set()


class Pair:
    """A connection and the server's end of it."""

    def __init__(self) -> None:
        ours, self.server = socket.socketpair()
        self.server.setblocking(False)
        self.connection: Any = type("Bound", (Wired, LoopConnection.on_running_loop()), {})(ours)
        self.loop = asyncio.get_running_loop()

    async def read(self, size: int) -> bytes:
        """So many bytes, as the server gets them."""
        found = bytearray()
        while len(found) < size:
            found += await self.loop.sock_recv(self.server, size - len(found))
        return bytes(found)


@pytest_asyncio.fixture
async def pair() -> AsyncIterator[Pair]:
    """Connected; closed at the end."""
    made = Pair()
    await asyncio.sleep(0)
    yield made
    made.connection.close()
    await asyncio.sleep(0)
    made.server.close()


async def test_what_the_server_sends_reaches_the_driver(pair: Pair) -> None:
    """On the loop, without another thread."""
    pair.server.send(b"frame")
    await pair.connection.news.wait()
    assert pair.connection.arrived == b"frame"


async def test_a_message_leaves_at_once(pair: Pair) -> None:
    """Not in a later turn of the loop."""
    pair.connection.push(b"frame")
    assert pair.server.recv(16) == b"frame"


async def test_messages_stay_whole_and_in_order_when_the_socket_is_full(pair: Pair) -> None:
    """What does not fit goes on when there is room, before what was pushed later."""
    pair.connection.push(b"a" * LARGE)
    pair.connection.push(b"b" * LARGE)
    await asyncio.to_thread(pair.connection.push, b"c")
    assert await pair.read(2 * LARGE + 1) == b"a" * LARGE + b"b" * LARGE + b"c"
    pair.connection.push(b"d")  # nothing waits any more
    assert pair.server.recv(16) == b"d"


async def test_another_thread_may_push(pair: Pair) -> None:
    """The driver's own threads prepare statements and send heartbeats."""
    await asyncio.to_thread(pair.connection.push, b"frame")
    assert await pair.read(5) == b"frame"


async def test_a_server_that_hangs_up_ends_the_requests(pair: Pair) -> None:
    """Each under way hears of it, and the connection is closed."""
    heard: asyncio.Future[object] = pair.loop.create_future()
    pair.connection._requests[7] = (heard.set_result, None, None)
    pair.server.close()
    assert isinstance(await heard, ConnectionShutdown)
    assert pair.connection.is_closed
    await asyncio.sleep(0)
    assert pair.connection._socket.fileno() < 0


async def test_a_send_that_fails_is_heard_of_after_the_push(pair: Pair) -> None:
    """The driver is in the middle of a request then, and must not find it failed already."""
    heard: list[object] = []
    pair.connection._requests[7] = (heard.append, None, None)
    pair.loop.remove_reader(pair.connection._socket)
    pair.server.close()
    pair.connection.push(b"frame")
    assert heard == []
    await asyncio.sleep(0)
    assert len(heard) == 1
    assert pair.connection.is_defunct


async def test_any_thread_may_close_and_more_than_once(pair: Pair) -> None:
    """The socket is closed by the loop, which watches it."""
    await asyncio.to_thread(pair.connection.close)
    await asyncio.to_thread(pair.connection.close)
    await asyncio.sleep(0)
    assert pair.connection._socket.fileno() < 0
    pair.connection.push(b"late")  # nothing happens


async def test_a_timer_fires_unless_it_is_cancelled(pair: Pair) -> None:
    """Made on the loop's thread or on another."""
    fired: list[str] = []
    end = asyncio.Event()
    cancelled = pair.connection.create_timer(0.0, lambda: fired.append("cancelled"))
    await asyncio.sleep(0)
    cancelled.cancel()
    early = await asyncio.to_thread(
        pair.connection.create_timer, 0.0, lambda: fired.append("early")
    )
    await asyncio.to_thread(pair.connection.create_timer, 0.0, end.set)
    await end.wait()
    early.cancel()
    assert fired == ["early"]


async def test_a_cancelled_timer_holds_nothing(pair: Pair) -> None:
    """Each request has one of seconds, and is answered in milliseconds."""

    class Request:
        def expire(self) -> None:
            raise AssertionError

    request = Request()
    timer = pair.connection.create_timer(60.0, request.expire)
    timer.cancel()
    gone = weakref.ref(request)
    del request
    gc.collect()
    assert gone() is None

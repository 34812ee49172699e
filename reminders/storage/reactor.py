"""The driver's connections on the service's own event loop.

The driver reads and writes on a thread of its own. In a service whose loop is busy the two threads
wake each other for every request and every answer, and most of the time only to find that the
other one holds the GIL: a unary create cost the scheduler 61 µs on that thread and 30 more in the
kernel on its own (docs/performance.md). Here the loop reads, and writes what it asks for at once.

    the loop's thread    push ──▶ socket          readable ──▶ the driver's callbacks
    any other thread     push ──▶ call_soon_threadsafe ──▶ the same

Connecting, closing and preparing block, and are answered by the loop: run them in a thread while
the loop runs. The driver opens and replaces connections on threads of its own anyway, and holds no
lock while it waits for an answer.

Not for TLS: a readable TLS socket may still have nothing, or hide what it has.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from threading import get_ident
from typing import Any, ClassVar

from cassandra.connection import Connection, ConnectionShutdown

RECEIVED_AT_ONCE = 64 * 1024
"""Bytes."""


class LoopTimer:
    """One of the driver's timers. May be made and cancelled on any thread."""

    __slots__ = ("_callback", "_handle", "_thread")

    def __init__(self, callback: Callable[[], Any], thread: int) -> None:
        self._callback: Callable[[], Any] | None = callback
        self._handle: asyncio.TimerHandle | None = None
        self._thread = thread

    def start(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        """On the loop's thread."""
        if self._callback is not None:
            self._handle = loop.call_later(max(seconds, 0.0), self._expire)

    def cancel(self) -> None:
        """Lets go of the request at once: most timers of 5 s are cancelled after milliseconds."""
        self._callback = None
        if self._handle is not None and get_ident() == self._thread:
            self._handle.cancel()

    def _expire(self) -> None:
        if self._callback is not None:
            self._callback()


class LoopConnection(Connection):  # type: ignore[misc]
    """One connection. `on_running_loop` gives the class to use."""

    loop: ClassVar[asyncio.AbstractEventLoop]
    thread: ClassVar[int]
    """Of the loop."""
    is_closed: bool

    @classmethod
    def on_running_loop(cls) -> type["LoopConnection"]:
        """What to give the driver as its connection class."""
        loop = asyncio.get_running_loop()
        return type(cls.__name__, (cls,), {"loop": loop, "thread": get_ident()})

    @classmethod
    def create_timer(cls, timeout: float, callback: Callable[[], Any]) -> LoopTimer:
        """The driver's: `timeout` in seconds."""
        timer = LoopTimer(callback, cls.thread)
        if get_ident() == cls.thread:
            timer.start(cls.loop, timeout)
        else:
            cls.loop.call_soon_threadsafe(timer.start, cls.loop, timeout)
        return timer

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._unsent: deque[memoryview] = deque()
        self._connect_socket()
        self._socket.setblocking(0)
        self.loop.call_soon_threadsafe(self._listen)
        self._send_options_message()

    def push(self, data: bytes) -> None:
        """The driver's: sends a message, whole and in order; never blocks."""
        if get_ident() == self.thread:
            self._send(data)
        else:
            self.loop.call_soon_threadsafe(self._send, data)

    def close(self) -> None:
        """The driver's: on any thread, any number of times."""
        with self.lock:
            if self.is_closed:
                return
            self.is_closed = True
        try:
            self.loop.call_soon_threadsafe(self._close)
        except RuntimeError:  # the loop has ended, and watches nothing any more
            self._socket.close()
        if not self.is_defunct:
            self.error_all_requests(ConnectionShutdown(f"Connection to {self.endpoint} was closed"))
            self.connected_event.set()

    # on the loop's thread

    def _listen(self) -> None:
        if not self.is_closed:
            self.loop.add_reader(self._socket, self._receive)

    def _send(self, data: bytes) -> None:
        if self.is_closed:
            return
        if self._unsent:
            self._unsent.append(memoryview(data))
            return
        try:
            sent = self._socket.send(data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            self.loop.call_soon(self.defunct, error)  # the driver is still busy with this request
            return
        if sent < len(data):
            self._unsent.append(memoryview(data)[sent:])
            self.loop.add_writer(self._socket, self._send_more)

    def _send_more(self) -> None:
        try:
            while self._unsent:
                data = self._unsent[0]
                sent = self._socket.send(data)
                if sent < len(data):
                    self._unsent[0] = data[sent:]
                    return
                self._unsent.popleft()
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.defunct(error)
            return
        self.loop.remove_writer(self._socket)

    def _receive(self) -> None:
        try:
            data = self._socket.recv(RECEIVED_AT_ONCE)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.defunct(error)
            return
        if data:
            self._iobuf.write(data)
            self.process_io_buffer()
        else:
            self.close()

    def _close(self) -> None:
        self._unsent.clear()
        if self._socket.fileno() >= 0:
            self.loop.remove_reader(self._socket)
            self.loop.remove_writer(self._socket)
            self._socket.close()

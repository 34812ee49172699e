"""One connection: an exchange, and perhaps another one.

    idle ──exchange──▶ waiting ──status──▶ reading ──end of the answer──▶ idle
      │                   │                   │
      │ bytes, end        │ time, end,        │ time, end, nonsense, too long: the status stands
      ▼                   ▼ nonsense          ▼
    closed             failed, closed      answered, closed

It goes back to idle only where the answer ended as it said it would, nothing came after it, all of
the request was written, and neither side wants to close: whatever is left over in either direction
could be taken for part of the next exchange.
"""

import asyncio
from typing import cast

import httptools
from msgspec import Struct

from dispatcher.http1.failures import ConnectFailed, Disconnected, HttpFailure, NotHttp, TimedOut

MOST_BYTES = 64 * 1024
"""Of an answer, head and all, are read; of a longer one the connection is closed."""
KEPT_BYTES = 4096
"""Of its body."""
SWITCHING = 101
"""The one 1xx that no other answer follows. Nobody here asks for it."""


class Answer(Struct, frozen=True, gc=False):
    """What came back."""

    status: int
    start: bytes
    """Of the body, undecoded; at most `KEPT_BYTES`."""
    retry_after: str | None
    """The header, if there was one."""


class Connection(asyncio.Protocol):
    """Used by one task at a time; `usable` tells whether for another exchange."""

    __slots__ = (
        "_came",
        "_complete",
        "_loop",
        "_parser",
        "_retry_after",
        "_start",
        "_status",
        "_stays",
        "_surplus",
        "_transport",
        "_waiter",
        "idle_since",
        "usable",
    )

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._waiter: asyncio.Future[None] | None = None
        self.usable = True
        self.idle_since = 0.0
        """By the loop's clock; whoever keeps it sets it."""
        self._begin()

    def _begin(self) -> None:
        self._status: int | None = None
        self._retry_after: str | None = None
        self._start = b""
        self._came = 0
        self._complete = self._stays = self._surplus = False

    async def exchange(self, request: bytes, deadline: float) -> Answer:
        """Writes the request and waits for the answer, until then by the loop's clock.

        Raises `HttpFailure`. Cancelling closes the connection.
        """
        if self._transport is None or not self.usable:
            raise ConnectFailed("closed before anything was sent")
        self._begin()
        waiter = self._waiter = self._loop.create_future()
        timer = self._loop.call_at(deadline, self._expire)
        try:
            self._transport.write(request)
            await waiter
        finally:
            timer.cancel()
            self._waiter = None
            del waiter  # its error has this frame: a cycle, which the collector would have to find
            if not self._clean():
                self.close()
        assert self._status is not None
        return Answer(self._status, self._start, self._retry_after)

    def _clean(self) -> bool:
        """Whether nothing of this exchange can be taken for part of another."""
        return (
            self._complete
            and self.usable
            and self._stays
            and not self._surplus
            and self._came <= MOST_BYTES
            and not cast("asyncio.Transport", self._transport).get_write_buffer_size()
        )

    def close(self) -> None:
        """At once; nothing that is still to be written is worth waiting for."""
        self.usable = False
        if self._transport is not None:
            self._transport.abort()

    def _expire(self) -> None:
        self._fail(TimedOut("no answer in time"))

    def _fail(self, failure: HttpFailure) -> None:
        """Ends the exchange. What a status said stands, whatever becomes of the rest."""
        if self._waiter is None or self._waiter.done():
            return
        if self._status is not None:
            self._waiter.set_result(None)
        else:
            self._waiter.set_exception(failure)

    # --- what the transport says ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is open. Only from now on it and its parser have each other (`connection_lost`)."""
        self._transport = cast("asyncio.Transport", transport)
        self._parser = httptools.HttpResponseParser(self)
        # As aiohttp reads: what answers in a sloppy way has taken the request all the same.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )

    def data_received(self, data: bytes) -> None:
        """Some of the answer, or something that nobody asked for."""
        if self._parser is None or self._waiter is None or self._waiter.done():
            self._surplus = True
            self.close()
            return
        self._came += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._surplus = True
        except httptools.HttpParserError as error:
            self._surplus = True
            self._fail(NotHttp(str(error)))
        if self._complete and not self._waiter.done():
            self._waiter.set_result(None)
        elif self._came > MOST_BYTES:
            self._fail(NotHttp("the head of the answer does not end"))

    def eof_received(self) -> None:
        """It closes; so do we."""
        self.usable = False
        self._fail(Disconnected("closed without an answer"))

    def connection_lost(self, exc: Exception | None) -> None:
        """It is closed. So that nothing is left for the collector, it lets go of those that have
        it, too.
        """
        self.usable = False
        self._fail(Disconnected(str(exc) if exc else "closed without an answer"))
        self._transport = None
        self._parser = None

    # --- what the parser says ---------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """The answer, or one of those that announce it, or something after it."""
        if self._complete:
            self._surplus = True
        else:
            self._retry_after = None

    def on_header(self, name: bytes, value: bytes) -> None:
        """Of the head; what follows the body says nothing."""
        if self._status is None and name.lower() == b"retry-after":
            self._retry_after = value.decode("latin-1").strip()

    def on_headers_complete(self) -> None:
        """The status is known, if this is the answer itself."""
        assert self._parser is not None
        status = self._parser.get_status_code()
        if self._status is None and (status == SWITCHING or not 100 <= status < 200):
            self._status = status

    def on_body(self, body: bytes) -> None:
        """Some of it."""
        if len(self._start) < KEPT_BYTES and not self._complete:
            self._start += body[: KEPT_BYTES - len(self._start)]

    def on_message_complete(self) -> None:
        """Its end, if this was the answer itself."""
        if self._status is not None and not self._complete:
            assert self._parser is not None
            self._complete = True
            self._stays = self._parser.should_keep_alive()  # it forgets

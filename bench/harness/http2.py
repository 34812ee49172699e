"""Just enough HTTP/2 (RFC 9113) to call one unary gRPC method again and again at little cost.

A load generator must not be what is measured: grpc.aio costs some 400 µs of CPU a call, ghz some
100, this some 30. Requests are bytes made before; their headers are one constant block, without
the dynamic table (RFC 7541), so nothing is encoded for a call. Of an answer only the framing is
read: one that has a DATA frame went well, since gRPC answers errors by trailers alone.
"""

import asyncio
import time
from collections.abc import Callable
from typing import cast

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS = 0x1, 0x1, 0x4
FRAME_HEAD_BYTES = 9
LARGEST_WINDOW = 2**31 - 1
FIRST_WINDOW = 65_535
REFILL_BYTES = 2**24

Answered = Callable[[bool, float], None]
"""Whether a call went well, and its seconds."""


class CallLoop(asyncio.Protocol):
    """One connection on which `callers` calls are always under way."""

    def __init__(
        self,
        method: str,
        authority: str,
        callers: int,
        message: Callable[[], bytes],
        done: Answered,
    ) -> None:
        self._block = _header_block(method, authority)
        self._callers = callers
        self._message = message
        self._done = done
        self._transport: asyncio.Transport | None = None
        self._rest = b""
        self._next_stream = 1
        self._started: dict[int, float] = {}
        self._with_data: set[int] = set()
        self._send_window = FIRST_WINDOW
        self._blocked = 0
        """Callers that wait for room in the connection's window."""
        self._received = 0
        self.closed = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Says the preface and begins."""
        self._transport = cast("asyncio.Transport", transport)
        windows = (4).to_bytes(2) + LARGEST_WINDOW.to_bytes(4)  # SETTINGS_INITIAL_WINDOW_SIZE
        no_table = (1).to_bytes(2) + bytes(4)  # SETTINGS_HEADER_TABLE_SIZE
        grow = (LARGEST_WINDOW - FIRST_WINDOW).to_bytes(4)
        self._transport.write(
            PREFACE + _frame(SETTINGS, 0, 0, no_table + windows) + _frame(WINDOW_UPDATE, 0, 0, grow)
        )
        for _ in range(self._callers):
            self._call()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tells whoever waits."""
        if not self.closed.done():
            self.closed.set_exception(exc or ConnectionError("closed by the server"))

    def data_received(self, data: bytes) -> None:
        """Takes frames apart."""
        buffer = self._rest + data
        at = 0
        while len(buffer) - at >= FRAME_HEAD_BYTES:
            end = at + FRAME_HEAD_BYTES + int.from_bytes(buffer[at : at + 3])
            if end > len(buffer):
                break
            stream = int.from_bytes(buffer[at + 5 : at + 9])
            self._frame(buffer[at + 3], buffer[at + 4], stream, buffer[at + FRAME_HEAD_BYTES : end])
            at = end
        self._rest = buffer[at:]

    def _frame(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == DATA:
            self._with_data.add(stream)
            self._refill(len(payload))
        elif kind == HEADERS and flags & END_STREAM:
            self._end(stream, went_well=stream in self._with_data)
        elif kind == RESET:
            self._end(stream, went_well=False)
        elif kind == WINDOW_UPDATE and stream == 0:
            self._send_window += int.from_bytes(payload)
            blocked, self._blocked = self._blocked, 0
            for _ in range(blocked):
                self._call()
        elif kind in {SETTINGS, PING} and not flags & ACK:
            self._write(_frame(kind, ACK, 0, payload if kind == PING else b""))
        elif kind == GOAWAY:
            self._write(b"")

    def _call(self) -> None:
        message = self._message()
        size = len(message) + 5
        if size > self._send_window:
            self._blocked += 1
            return
        self._send_window -= size
        stream = self._next_stream
        self._next_stream += 2
        self._started[stream] = time.perf_counter()
        prefixed = b"\0" + len(message).to_bytes(4) + message
        self._write(
            _frame(HEADERS, END_HEADERS, stream, self._block)
            + _frame(DATA, END_STREAM, stream, prefixed)
        )

    def _end(self, stream: int, *, went_well: bool) -> None:
        self._with_data.discard(stream)
        self._done(went_well, time.perf_counter() - self._started.pop(stream))
        self._call()

    def _refill(self, size: int) -> None:
        self._received += size
        if self._received > REFILL_BYTES:
            self._write(_frame(WINDOW_UPDATE, 0, 0, self._received.to_bytes(4)))
            self._received = 0

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3) + bytes((kind, flags)) + stream.to_bytes(4) + payload


def _header_block(method: str, authority: str) -> bytes:
    """Static table entries and literals that are not indexed (RFC 7541, 6.1 and 6.2.2)."""
    post, http = b"\x83", b"\x86"
    path = b"\x04" + _text(method)
    host = b"\x01" + _text(authority)
    content_type = b"\x0f\x10" + _text("application/grpc")
    trailers = b"\x00" + _text("te") + _text("trailers")
    return post + http + path + host + content_type + trailers


def _text(value: str) -> bytes:
    return bytes((len(value),)) + value.encode()

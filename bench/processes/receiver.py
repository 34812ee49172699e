"""The HTTP receiver: notes path and arrival of each request, answers 204, and no more.

Events: `port` {port}. Words: `count` → {count}; `take` → {arrivals: [[path, ns since 1970], …]},
and starts anew.
"""

import asyncio
import time
from typing import Any, cast

import uvloop

from bench.harness.child import listen

ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"
LENGTH = b"content-length:"

arrivals: list[tuple[bytes, int]] = []


class Receiver(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps it alive until the client closes it."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """A request counts as received with its last byte."""
        self._buffer += data
        while (head := self._buffer.find(b"\r\n\r\n")) >= 0:
            lowered = self._buffer[:head].lower()
            at = lowered.find(LENGTH)
            end = lowered.find(b"\r", at) if at >= 0 else -1
            length = int(lowered[at + len(LENGTH) : None if end < 0 else end]) if at >= 0 else 0
            if len(self._buffer) < head + 4 + length:
                return
            arrivals.append((self._buffer[: self._buffer.index(b" HTTP")], time.time_ns()))
            self._buffer = self._buffer[head + 4 + length :]
            if self._transport is not None:
                self._transport.write(ANSWER)


def take() -> dict[str, Any]:
    """All that arrived since the last time."""
    found = [(path.decode().split(" /", 1)[1], at) for path, at in arrivals]
    arrivals.clear()
    return {"arrivals": found}


if __name__ == "__main__":
    words = {"count": lambda: {"count": len(arrivals)}, "take": take}
    uvloop.run(listen(Receiver, "127.0.0.1", words))

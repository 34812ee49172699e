"""The HTTP receiver: notes path and arrival of each request, answers 204, and no more.

Events: `port` {port}. Words: `count` → {count}; `take` → {arrivals: [[path, ns since 1970], …]},
and starts anew.
"""

import asyncio
import sys
import time
from typing import cast

import uvloop

from bench.harness.child import say

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


def obey(stop: asyncio.Event) -> None:
    """One word of the parent."""
    word = sys.stdin.readline().strip()
    if word == "count":
        say("count", count=len(arrivals))
    elif word == "take":
        say("take", arrivals=[(path.decode().split(" /", 1)[1], at) for path, at in arrivals])
        arrivals.clear()
    else:
        stop.set()


async def main() -> None:
    """Until the parent is done."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    server = await loop.create_server(Receiver, "127.0.0.1", 0, backlog=1024)
    loop.add_reader(sys.stdin, obey, stop)
    say("port", port=server.sockets[0].getsockname()[1])
    await stop.wait()
    server.close()


if __name__ == "__main__":
    uvloop.run(main())

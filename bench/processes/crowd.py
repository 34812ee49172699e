"""A crowd of endpoints: one listener that is reached at every address of 127.0.0.0/8.

So each address is a host of its own. `answers`: each request gets its 204; else what connects is
kept, and never answered. Events: `port` {port}. Words: `count` → {count} of connections so far.
"""

import asyncio
import resource
import sys
from collections.abc import Callable

import uvloop

from bench.harness.child import arguments, say
from bench.processes.receiver import Receiver

BACKLOG = 4096

connections = 0


class Silent(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Counts it."""
        del transport
        global connections  # noqa: PLW0603 - one number of one process
        connections += 1


def obey(stop: asyncio.Event) -> None:
    """One word of the parent."""
    if sys.stdin.readline().strip() == "count":
        say("count", count=connections)
    else:
        stop.set()


async def main() -> None:
    """Until the parent is done."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    kind: Callable[[], asyncio.Protocol] = Receiver if arguments()["answers"] else Silent
    server = await loop.create_server(kind, "0.0.0.0", 0, backlog=BACKLOG)  # noqa: S104
    loop.add_reader(sys.stdin, obey, stop)
    say("port", port=server.sockets[0].getsockname()[1])
    await stop.wait()
    server.close()


if __name__ == "__main__":
    uvloop.run(main())

"""A crowd of endpoints: one listener that is reached at every address of 127.0.0.0/8.

So each address is a host of its own. `answers`: each request gets its 204; else what connects is
kept, and never answered. Events: `port` {port}. Words: `count` → {count} of connections so far.
"""

import asyncio
import resource

import uvloop

from bench.harness.child import arguments, listen
from bench.processes.receiver import Receiver

connections = 0


class Silent(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Counts it."""
        del transport
        global connections  # noqa: PLW0603 - one number of one process
        connections += 1


if __name__ == "__main__":
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    kind = Receiver if arguments()["answers"] else Silent
    words = {"count": lambda: {"count": connections}}
    uvloop.run(listen(kind, "0.0.0.0", words))  # noqa: S104

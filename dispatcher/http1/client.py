"""Posts over connections that are kept for a moment."""

import asyncio
from collections import deque
from datetime import timedelta

from dispatcher.http1.connection import Answer, Connection
from dispatcher.http1.dialing import Dialer
from dispatcher.http1.failures import ConnectTimedOut
from dispatcher.http1.request import Origin

IDLE_S = 4.0
"""Shorter than the 5 s after which common servers close an idle connection under our feet."""
MOST_IDLE = 2048
"""Connections; one more is closed instead of kept."""


class Client:
    """Make it inside the running loop. How many posts are under way is the caller's business."""

    def __init__(self, dialer: Dialer, *, within: timedelta, connect_share: float) -> None:
        """`within`: of a whole post. `connect_share`: of that, for the connection: a failure to
        connect can be told from a lost answer.
        """
        self._loop = asyncio.get_running_loop()
        self._dialer = dialer
        self._within_s = within.total_seconds()
        self._connect_s = self._within_s * connect_share
        self._idle: dict[str, deque[Connection]] = {}
        """By origin; who came last is used first."""
        self._count = 0
        self._sweeping: asyncio.TimerHandle | None = None
        self._closed = False

    async def post(self, origin: Origin, request: bytes) -> Answer:
        """One exchange. Raises `HttpFailure`, or what the dialer's gate raises."""
        begun = self._loop.time()
        connection = self._take(origin)
        if connection is None:
            connection = await self._dial(origin, begun + self._connect_s)
        answer = await connection.exchange(request, begun + self._within_s)
        if connection.usable:
            self._keep(origin, connection)
        return answer

    async def close(self) -> None:
        """Closes what is idle; what is under way ends by itself, and is not kept."""
        self._closed = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        for idle in self._idle.values():
            for connection in idle:
                connection.close()
        self._idle.clear()
        await self._dialer.close()

    async def _dial(self, origin: Origin, deadline: float) -> Connection:
        try:
            async with asyncio.timeout_at(deadline):
                return await self._dialer.dial(origin)
        except TimeoutError as error:
            raise ConnectTimedOut("no connection in time") from error

    # --- keeping ----------------------------------------------------------------------------------

    def _take(self, origin: Origin) -> Connection | None:
        """The one that was used last. One that was closed meanwhile, or may be by now, is not."""
        idle = self._idle.get(origin.name)
        oldest = self._loop.time() - IDLE_S
        while idle:
            connection = idle.pop()
            self._count -= 1
            if connection.usable and connection.idle_since > oldest:
                return connection
            connection.close()
        return None

    def _keep(self, origin: Origin, connection: Connection) -> None:
        if self._closed or self._count >= MOST_IDLE:
            connection.close()
            return
        connection.idle_since = self._loop.time()
        idle = self._idle.get(origin.name)
        if idle is None:
            idle = self._idle[origin.name] = deque()
        idle.append(connection)
        self._count += 1
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(IDLE_S / 4, self._sweep)

    def _sweep(self) -> None:
        """Closes what is too old."""
        oldest = self._loop.time() - IDLE_S
        for name, idle in list(self._idle.items()):
            while idle and (not idle[0].usable or idle[0].idle_since <= oldest):
                idle.popleft().close()
                self._count -= 1
            if not idle:
                del self._idle[name]
        self._sweeping = self._loop.call_later(IDLE_S / 4, self._sweep) if self._idle else None

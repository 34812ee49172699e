"""All of the adapter in one object."""

from datetime import timedelta
from typing import Self

from reminders.coordination.checks import inspect_server
from reminders.coordination.claims import RedisClaims
from reminders.coordination.clock import RedisClock
from reminders.coordination.connection import Clients, Lives, Timeouts, open_clients, translated
from reminders.coordination.hints import RedisHints
from reminders.coordination.leases import RedisLeases
from reminders.coordination.streams import RedisJobStream
from reminders.findings import Finding


class RedisCoordination:
    """Implements `ports.Coordination`, and keeps the reference clock. Made by `connect`."""

    def __init__(
        self,
        clients: Clients,
        *,
        lookahead: timedelta,
        margin: timedelta,
        lives: Lives,
        timeouts: Timeouts,
    ) -> None:
        self._clients = clients
        self.clock = RedisClock(clients.commands)
        self.leases = RedisLeases(clients.commands, lives.lease)
        self.claims = RedisClaims(
            clients, timeouts, lookahead=lookahead, margin=margin, fired_life=lives.fired
        )
        self.jobs = RedisJobStream("jobs", clients, lives, timeouts)
        self.fires = RedisJobStream("fires", clients, lives, timeouts)
        self.hints = RedisHints(clients, lives.hints, timeouts)

    @classmethod
    async def connect(
        cls,
        url: str,
        *,
        lookahead: timedelta,
        margin: timedelta,
        lives: Lives | None = None,
        timeouts: Timeouts | None = None,
    ) -> Self:
        """Connect and read the time. `lookahead` and `margin` must be the same in every service.

        `url`: `redis://…` names the server, `redis+sentinel://…` those who know it (`masters`).

        Raises:
            CoordinationUnavailable: no answer; trying again is the caller's business.
        """
        timeouts = timeouts or Timeouts()
        coordination = cls(
            open_clients(url, timeouts),
            lookahead=lookahead,
            margin=margin,
            lives=lives or Lives(),
            timeouts=timeouts,
        )
        try:
            await coordination._clients.start()
            await coordination.clock.start()
        except BaseException:
            await coordination.close()
            raise
        return coordination

    async def ping(self) -> None:
        """Raise `CoordinationUnavailable` if the server does not answer."""
        with translated("ping"):
            await self._clients.commands.ping()

    async def inspect(self) -> list[Finding]:
        """The start-up checks."""
        masters = self._clients.masters
        return await inspect_server(self._clients.commands, masters.view if masters else None)

    async def close(self) -> None:
        """Stop the clock and close every connection."""
        await self.clock.close()
        await self._clients.close()

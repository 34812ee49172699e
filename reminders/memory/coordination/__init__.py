"""Coordination in memory: the answers of the Redis adapter, on whatever clock it is given.

Each call is one step of the event loop, so it is atomic: what Redis does by scripts. Tests hook the
points before and after the step to lose a request (`claim.before`) or its answer (`claim.after`),
or to let others go first. `lose_everything`, `replica` and `fail_over` are what servers go through.
Any part may import it for its in-memory mode and tests. Start at `server`.
"""

from datetime import timedelta

from reminders.memory.coordination.claims import MemoryClaims
from reminders.memory.coordination.leases import MemoryLeases
from reminders.memory.coordination.server import Data, Hook, Server
from reminders.memory.coordination.streams import MemoryHints, MemoryJobStream
from reminders.ports import Clock

__all__ = ["Data", "MemoryCoordination"]


class MemoryCoordination:
    """Implements `ports.Coordination` for one process."""

    def __init__(
        self,
        clock: Clock,
        *,
        lookahead: timedelta,
        margin: timedelta,
        lease_life: timedelta = timedelta(seconds=3),
        on_point: Hook | None = None,
    ) -> None:
        self.server = Server(clock, on_point)
        self.clock = clock
        self.leases = MemoryLeases(self.server, lease_life)
        self.claims = MemoryClaims(
            self.server, lookahead=lookahead, margin=margin, fired_life=timedelta(hours=6)
        )
        self.jobs = MemoryJobStream("jobs", self.server)
        self.fires = MemoryJobStream("fires", self.server)
        self.hints = MemoryHints(self.server, timedelta(seconds=60))

    async def ping(self) -> None:
        """As alive as this process."""
        await self.server.step("ping", lambda: None)

    async def close(self) -> None:
        """Nothing to close."""

    def lose_everything(self) -> None:
        """FLUSHALL: the same server, without data."""
        self.server.data = Data()

    def replica(self) -> Data:
        """A copy of the data as it is now, for a later `fail_over`."""
        return self.server.copy_data()

    def fail_over(self, replica: Data) -> None:
        """Another server, with what had been replicated to it."""
        self.server.data = replica
        self.server.identity += 1

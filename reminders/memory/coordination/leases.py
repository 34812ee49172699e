"""Leases and members, in memory."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from reminders.memory.coordination.server import Server
from reminders.ports import LeaseAnswer


class MemoryLeases:
    """Implements `ports.Leases`."""

    def __init__(self, server: Server, life: timedelta) -> None:
        self._server = server
        self._life = life

    async def acquire(self, shard: int, token: str) -> LeaseAnswer:
        """Take a free lease; one under another home counts as free."""

        def work() -> LeaseAnswer:
            server, now = self._server, self._server.clock.now()
            taken = server.holder(shard) not in (None, token)
            if taken and server.home_since(shard) is not None:
                return LeaseAnswer.LOST
            server.data.leases[shard] = (token, now + self._life)
            server.settle_in(shard)
            return LeaseAnswer.HELD

        return await self._server.step("acquire", work)

    async def renew(self, tokens: Mapping[int, str]) -> Mapping[int, LeaseAnswer]:
        """Prolong each."""

        def work() -> Mapping[int, LeaseAnswer]:
            server = self._server
            answers = {shard: server.standing(shard, token) for shard, token in tokens.items()}
            for shard, token in tokens.items():
                if answers[shard] is LeaseAnswer.HELD:
                    server.data.leases[shard] = (token, server.clock.now() + self._life)
            return answers

        return await self._server.step("renew", work)

    async def release(self, shard: int, token: str) -> None:
        """Give it up if it is ours."""

        def work() -> None:
            if self._server.holder(shard) == token:
                del self._server.data.leases[shard]

        await self._server.step("release", work)

    async def holder(self, shard: int) -> str | None:
        """The token that holds the lease."""
        return await self._server.step("holder", lambda: self._server.holder(shard))

    async def beat(self, member: str) -> Sequence[str]:
        """Live for another lease's life; answers who does."""

        def work() -> Sequence[str]:
            members, now = self._server.data.members, self._server.clock.now()
            members[member] = now
            for name in [name for name, beat in members.items() if beat <= now - self._life]:
                del members[name]
            return sorted(members)

        return await self._server.step("beat", work)

    async def leave(self, member: str) -> None:
        """Be no member any more."""
        await self._server.step("leave", lambda: self._server.data.members.pop(member, None))

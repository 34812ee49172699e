"""Leases on shards and the members who want them."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from redis.asyncio import Redis

from reminders.coordination import keys
from reminders.coordination.connection import send, translated
from reminders.coordination.instants import to_ms
from reminders.coordination.scripts import Script
from reminders.ports import LeaseAnswer


class RedisLeases:
    """Implements `ports.Leases`."""

    def __init__(self, client: Redis, life: timedelta) -> None:
        self._client = client
        self._life_ms = to_ms(life)
        self._acquire = Script("acquire")
        self._renew = Script("renew")
        self._release = Script("release")
        self._beat = Script("beat")

    async def acquire(self, shard: int, token: str) -> LeaseAnswer:
        """Take a free lease; see the port."""
        with translated("acquire"):
            reply = await self._acquire.run(
                self._client, (keys.lease(shard), keys.home(shard)), (token, self._life_ms)
            )
        return LeaseAnswer(reply)

    async def renew(self, tokens: Mapping[int, str]) -> Mapping[int, LeaseAnswer]:
        """Prolong all of a holder's leases in one round trip."""
        calls = [
            ((keys.lease(shard), keys.home(shard)), (token, self._life_ms))
            for shard, token in tokens.items()
        ]
        with translated("renew"):
            replies = await self._renew.run_each(self._client, calls)
        return {shard: LeaseAnswer(reply) for shard, reply in zip(tokens, replies, strict=True)}

    async def release(self, shard: int, token: str) -> None:
        """Give it up if it is ours."""
        with translated("release"):
            await self._release.run(self._client, (keys.lease(shard), keys.home(shard)), (token,))

    async def holder(self, shard: int) -> str | None:
        """The token that holds the lease."""
        with translated("holder"):
            token: Any = await send(self._client, "GET", keys.lease(shard))
        return None if token is None else token.decode()

    async def beat(self, member: str) -> Sequence[str]:
        """Live for another lease's life; answers who does."""
        with translated("beat"):
            members = await self._beat.run(self._client, (keys.MEMBERS,), (member, self._life_ms))
        return sorted(name.decode() for name in members)

    async def leave(self, member: str) -> None:
        """Be no member any more."""
        with translated("leave"):
            await self._client.zrem(keys.MEMBERS, member)

"""Dedup keys and the progress of shards."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from reminders.memory.store.points import Hook, Points
from reminders.model.record import DedupClaim


class MemoryDedupKeys(Points):
    """`reminders.ports.DedupKeys`."""

    def __init__(self, hook: Hook | None) -> None:
        super().__init__(hook)
        self._claims: dict[tuple[str, str], DedupClaim] = {}

    async def claim(self, claims: Sequence[DedupClaim]) -> list[DedupClaim]:
        """In order."""
        await self._point("dedup.claim")
        standing = [self._claims.setdefault((c.namespace, c.key), c) for c in claims]
        await self._point("dedup.claim.done")
        return standing

    async def find(self, namespace: str, key: str) -> DedupClaim | None:
        """Looks."""
        await self._point("dedup.find")
        return self._claims.get((namespace, key))


class MemoryProgress(Points):
    """`reminders.ports.Progress`."""

    def __init__(self, shards: int, started: datetime, hook: Hook | None) -> None:
        super().__init__(hook)
        self._settled = dict.fromkeys(range(shards), started)

    async def read(self) -> Mapping[int, datetime]:
        """A copy."""
        await self._point("progress.read")
        return dict(self._settled)

    async def advance(self, shard: int, settled_through: datetime) -> None:
        """Takes the larger."""
        await self._point("progress.advance")
        self._settled[shard] = max(self._settled[shard], settled_through)
        await self._point("progress.advance.done")

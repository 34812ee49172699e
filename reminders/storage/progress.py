"""How far each shard is settled."""

from collections.abc import Mapping
from datetime import datetime

from reminders.storage.access import Access
from reminders.storage.bridge import translated
from reminders.storage.expiry import from_us
from reminders.storage.refusal import KeyspaceRefused


class CassandraProgress:
    """`reminders.ports.Progress`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def read(self) -> Mapping[int, datetime]:
        """All shards.

        Raises:
            KeyspaceRefused: A row is missing. To begin at "now" instead would skip what is open
            before it.
        """
        settings = self._access.settings
        shards = list(range(settings.shards))
        with translated("progress.read"):
            rows = await self._access.bridge.run(
                self._access.prepared["progress_read"].bind(shards)
            )
        found = {shard: from_us(us) for shard, us in rows if us is not None}
        missing = [shard for shard in shards if shard not in found]
        if missing:
            raise KeyspaceRefused(
                keyspace=settings.keyspace, problem=f"has no progress row for shards {missing}"
            )
        return found

    async def advance(self, shard: int, settled_through: datetime) -> None:
        """Stamped with the value itself."""
        row = self._access.rows.progress(shard, settled_through)
        await self._access.steps.write((row,), "progress.advance")

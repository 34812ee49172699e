"""The store, put together."""

from datetime import datetime

from reminders.buckets import minute_of
from reminders.memory.store.due import MemoryDueEntries
from reminders.memory.store.ended import MemoryEnded
from reminders.memory.store.endpoints import MemoryEndpoints
from reminders.memory.store.fanouts import MemoryFanouts
from reminders.memory.store.fences import MemoryFences
from reminders.memory.store.keys import MemoryDedupKeys, MemoryProgress
from reminders.memory.store.ledger import MemoryLedger
from reminders.memory.store.points import Hook, Points
from reminders.memory.store.recipients import MemoryRecipients
from reminders.memory.store.records import MemoryRecords
from reminders.memory.store.subscribers import MemorySubscribers
from reminders.memory.store.sweeps import MemorySweeps
from reminders.memory.store.users import MemoryUserIndex


class MemoryStore(Points):
    """`reminders.ports.Store`, in this process only.

    `started_at` is where the progress of every shard begins, as a migration's time does in the real
    one. `hook`: see the package.
    """

    def __init__(self, *, shards: int, started_at: datetime, hook: Hook | None = None) -> None:
        super().__init__(hook)
        self.due = MemoryDueEntries(hook)
        self.users = MemoryUserIndex(hook)
        self.records = MemoryRecords(self.due, self.users, hook)
        self.fanouts = MemoryFanouts(hook)
        self.ledger = MemoryLedger(self.fanouts, hook)
        self.ended = MemoryEnded(hook)
        self.endpoints = MemoryEndpoints(hook)
        self.dedup = MemoryDedupKeys(hook)
        self.progress = MemoryProgress(shards, minute_of(started_at), hook)
        self.fences = MemoryFences(hook)
        self.sweeps = MemorySweeps(hook)
        self.recipients = MemoryRecipients(hook)
        self.subscribers = MemorySubscribers(hook)

    async def ping(self) -> None:
        """Always there, unless the hook says otherwise."""
        await self._point("ping")

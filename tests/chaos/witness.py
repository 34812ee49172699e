"""Looks at what is stored: is everything settled, and does the watermark tell the truth?"""

from collections.abc import Iterator
from datetime import UTC, datetime

from reminders.buckets import MINUTE, minute_of
from reminders.model.entry import EntryState, Fate, Kind
from reminders.storage.settings import StorageSettings
from reminders.storage.store import CassandraStore

A_SLICE = 2000


class Witness:
    """Reads Cassandra as the services do, at LOCAL_QUORUM. Lives in `Backstage`."""

    def __init__(self, store: CassandraStore, shards: int) -> None:
        self._store = store
        self._shards = shards
        self._since = minute_of(datetime.now(UTC))

    @classmethod
    async def connect(cls, hosts: str, keyspace: str, shards: int) -> "Witness":
        """Of a keyspace that was made just now: what rings before is nothing."""
        settings = StorageSettings(hosts=tuple(hosts.split(",")), keyspace=keyspace, shards=shards)
        return cls(await CassandraStore.connect(settings), shards)

    async def close(self) -> None:
        """Ends the connections."""
        await self._store.close()

    async def open_entries(self, since: datetime, before: datetime) -> list[EntryState]:
        """Due in this time, and something is left to do for them."""
        found = []
        for minute in _minutes(since, before):
            for shard in range(self._shards):
                found += [
                    state
                    for state in await self._partition(minute, shard)
                    if since <= state.entry.key.ring_at < before and await self._is_open(state)
                ]
        return found

    async def passed_open(self) -> list[str]:
        """Entries that the watermark passed though something is left to do for them."""
        watermarks = dict(await self._store.progress.read())
        found = []
        for shard, through in watermarks.items():
            for minute in _minutes(self._since, through):
                found += [
                    f"shard {shard}, settled through {through}: {told(state)}"
                    for state in await self._partition(minute, shard)
                    if await self._is_open(state)
                ]
        return found

    async def settled_through(self) -> datetime:
        """Of the shard that is furthest behind."""
        return min((await self._store.progress.read()).values())

    async def _partition(self, minute: datetime, shard: int) -> list[EntryState]:
        found: list[EntryState] = []
        while True:
            after = found[-1].entry.key if found else None
            page = await self._store.due.slice(minute, shard, after=after, limit=A_SLICE)
            found += page
            if len(page) < A_SLICE:
                return found

    async def _is_open(self, state: EntryState) -> bool:
        """As DESIGN §6 says it; of a `finish` whose change is over, nothing is left to do."""
        if state.settled:
            return False
        if state.fate is not Fate.VOID and state.entry.kind is not Kind.FINISH:
            return True
        stored = await self._store.records.read(state.entry.reminder_id)
        return stored is not None and stored.change is not None


def told(state: EntryState) -> str:
    """For a person."""
    done = [
        name
        for name, value in (("handled", state.handled_at), ("expanded", state.expanded_at))
        if value
    ]
    fate = state.fate or "no fate"
    return f"{state.entry.key.entry_id} at {state.entry.key.ring_at}: {fate}, {done or 'untouched'}"


def _minutes(since: datetime, before: datetime) -> Iterator[datetime]:
    minute = minute_of(since)
    while minute < before:
        yield minute
        minute += MINUTE

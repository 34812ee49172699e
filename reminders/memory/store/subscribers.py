"""Subscribers of topics."""

from bisect import bisect_right, insort
from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from reminders.memory.store.cells import Cell
from reminders.memory.store.points import Hook, Points
from reminders.model.codec import encode
from reminders.model.subscriber import (
    SUBSCRIBER_BUCKETS,
    Secret,
    Subscriber,
    bucket_of,
    newest_first,
)


class _Row:
    """One subscriber: its definition, its pause and each of its secrets are cells of their own."""

    __slots__ = ("pause", "secrets", "subscriber")

    def __init__(self) -> None:
        self.subscriber: Cell[Subscriber] = Cell()
        self.pause: Cell[int] = Cell()
        """Its stamp; minus that where it was ended."""
        self.secrets: dict[str, Cell[Secret]] = {}

    def state(self) -> Subscriber | None:
        if self.subscriber.value is None:
            return None
        found = [cell.value for cell in self.secrets.values() if cell.value is not None]
        pause = self.pause.value or 0
        return replace(
            self.subscriber.value,
            secrets=newest_first(found),
            paused=pause > 0,
            pause_stamp=abs(pause),
        )


class _Partition:
    """A bucket of a topic."""

    __slots__ = ("ids", "rows")

    def __init__(self) -> None:
        self.rows: dict[str, _Row] = {}
        self.ids: list[str] = []

    def row(self, subscriber_id: str) -> _Row:
        row = self.rows.get(subscriber_id)
        if row is None:
            row = self.rows[subscriber_id] = _Row()
            insort(self.ids, subscriber_id)
        return row


class MemorySubscribers(Points):
    """`reminders.ports.Subscribers`."""

    def __init__(self, hook: Hook | None) -> None:
        super().__init__(hook)
        self._partitions: dict[tuple[str, str, int], _Partition] = {}

    def _row(self, namespace: str, topic_id: str, subscriber_id: str) -> _Row:
        place = namespace, topic_id, bucket_of(subscriber_id)
        partition = self._partitions.get(place)
        if partition is None:
            partition = self._partitions[place] = _Partition()
        return partition.row(subscriber_id)

    async def put(self, subscribers: Sequence[Subscriber]) -> None:
        """At once."""
        await self._point("subscribers.put")
        for one in subscribers:
            row = self._row(one.namespace, one.topic_id, one.subscriber_id)
            bare = replace(one, secrets=(), paused=False, pause_stamp=0)
            row.subscriber.put(bare, one.stamp, encode(bare))
            self._add(row, one.secrets)
        await self._point("subscribers.put.done")

    def _add(self, row: _Row, secrets: Sequence[Secret]) -> None:
        for secret in secrets:
            cell = row.secrets.setdefault(secret.secret_id, Cell())
            cell.put(secret, secret.stamp, encode(secret))

    async def add_secret(
        self, subscriber: Subscriber, secret: Secret, *, gone: Sequence[Secret] = ()
    ) -> None:
        """At once."""
        await self._point("subscribers.add_secret")
        row = self._row(subscriber.namespace, subscriber.topic_id, subscriber.subscriber_id)
        for old in gone:
            row.secrets.setdefault(old.secret_id, Cell()).delete(secret.stamp)
        self._add(row, (secret,))
        await self._point("subscribers.add_secret.done")

    async def pause(self, subscriber: Subscriber, *, paused: bool, stamp: int) -> None:
        """At once."""
        await self._point("subscribers.pause")
        row = self._row(subscriber.namespace, subscriber.topic_id, subscriber.subscriber_id)
        row.pause.put(stamp if paused else -stamp, stamp, paused)
        await self._point("subscribers.pause.done")

    async def delete(
        self, namespace: str, topic_id: str, subscriber_id: str, *, stamp: int
    ) -> None:
        """At once."""
        await self._point("subscribers.delete")
        row = self._row(namespace, topic_id, subscriber_id)
        row.subscriber.delete(stamp)
        row.pause.delete(stamp)
        for cell in row.secrets.values():
            cell.delete(stamp)
        await self._point("subscribers.delete.done")

    async def read(self, namespace: str, topic_id: str, subscriber_id: str) -> Subscriber | None:
        """One row."""
        await self._point("subscribers.read")
        return self._state(namespace, topic_id, subscriber_id)

    async def read_many(
        self, namespace: str, topic_id: str, subscriber_ids: Collection[str]
    ) -> Mapping[str, Subscriber]:
        """One by one."""
        await self._point("subscribers.read_many")
        found = ((each, self._state(namespace, topic_id, each)) for each in subscriber_ids)
        return {each: state for each, state in found if state is not None}

    def _state(self, namespace: str, topic_id: str, subscriber_id: str) -> Subscriber | None:
        partition = self._partitions.get((namespace, topic_id, bucket_of(subscriber_id)))
        row = partition.rows.get(subscriber_id) if partition else None
        return row.state() if row else None

    async def page(
        self, namespace: str, topic_id: str, bucket: int, *, after: str | None = None, limit: int
    ) -> list[Subscriber]:
        """By bisection."""
        await self._point("subscribers.page")
        partition = self._partitions.get((namespace, topic_id, bucket))
        found: list[Subscriber] = []
        if partition is None:
            return found
        first = 0 if after is None else bisect_right(partition.ids, after)
        for subscriber_id in partition.ids[first:]:
            if len(found) == limit:
                break
            state = partition.rows[subscriber_id].state()
            if state is not None:
                found.append(state)
        return found

    async def count(self, namespace: str, topic_id: str) -> int:
        """Looks at each."""
        await self._point("subscribers.count")
        partitions = (
            self._partitions.get((namespace, topic_id, bucket))
            for bucket in range(SUBSCRIBER_BUCKETS)
        )
        rows = (row for one in partitions if one is not None for row in one.rows.values())
        return sum(row.state() is not None for row in rows)

"""Subscribers of topics."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec.structs import replace

from reminders.model.codec import decode_secret, decode_subscriber, encode
from reminders.model.subscriber import (
    SUBSCRIBER_BUCKETS,
    Secret,
    Subscriber,
    bucket_of,
    newest_first,
)
from reminders.storage.access import Access
from reminders.storage.bridge import Row, together, translated
from reminders.storage.wire import Mutation, bigint, framed, integer, text

READ_AT_ONCE = 100
"""Subscribers of a bucket in one query."""


class CassandraSubscribers:
    """`reminders.ports.Subscribers`."""

    def __init__(self, access: Access) -> None:
        self._access = access
        prepared = access.prepared
        self._put = prepared["subscriber_put"].row
        self._secret_put = prepared["subscriber_secret_put"].row
        self._secret_delete = prepared["subscriber_secret_delete"].row
        self._pause = prepared["subscriber_pause"].row
        self._delete = prepared["subscriber_delete"].row

    async def put(self, subscribers: Sequence[Subscriber]) -> None:
        """Grouped with what others write: each with its secrets at once."""
        rows = (self._rows_of(one) for one in subscribers)
        await self._access.steps.write(rows, "subscribers.put")

    def _rows_of(self, subscriber: Subscriber) -> Mutation:
        place = _place_of(subscriber)
        bare = encode(replace(subscriber, secrets=(), paused=False, pause_stamp=0))
        rows = [self._put(place, framed(bare), bigint(subscriber.stamp))]
        rows += [self._secret_row(place, secret) for secret in subscriber.secrets]
        return Mutation(b"".join(rows), len(rows))

    def _secret_row(self, place: bytes, secret: Secret) -> bytes:
        value = framed(encode(secret))
        return self._secret_put(bigint(secret.stamp), text(secret.secret_id), value, place)

    async def add_secret(
        self, subscriber: Subscriber, secret: Secret, *, gone: Sequence[Secret] = ()
    ) -> None:
        """One mutation of one row."""
        place, stamp = _place_of(subscriber), bigint(secret.stamp)
        rows = [self._secret_delete(text(old.secret_id), stamp, place) for old in gone]
        rows.append(self._secret_row(place, secret))
        mutation = Mutation(b"".join(rows), len(rows))
        await self._access.steps.write((mutation,), "subscribers.add_secret")

    async def pause(self, subscriber: Subscriber, *, paused: bool, stamp: int) -> None:
        """A cell of its own."""
        value = bigint(stamp if paused else -stamp)
        row = self._pause(bigint(stamp), value, _place_of(subscriber))
        await self._access.steps.write((Mutation(row, 1),), "subscribers.pause")

    async def delete(
        self, namespace: str, topic_id: str, subscriber_id: str, *, stamp: int
    ) -> None:
        """The whole row, with a stamp."""
        row = self._delete(bigint(stamp), _place(namespace, topic_id, subscriber_id))
        await self._access.steps.write((Mutation(row, 1),), "subscribers.delete")

    async def read(self, namespace: str, topic_id: str, subscriber_id: str) -> Subscriber | None:
        """One query."""
        found = await self.read_many(namespace, topic_id, (subscriber_id,))
        return found.get(subscriber_id)

    async def read_many(
        self, namespace: str, topic_id: str, subscriber_ids: Collection[str]
    ) -> Mapping[str, Subscriber]:
        """One query for each bucket and `READ_AT_ONCE` of them."""
        buckets: dict[int, set[str]] = defaultdict(set)
        for subscriber_id in subscriber_ids:
            buckets[bucket_of(subscriber_id)].add(subscriber_id)
        if not buckets:
            return {}
        with translated("subscribers.read"):
            found = await together(
                [
                    self._some(namespace, topic_id, bucket, ids[first : first + READ_AT_ONCE])
                    for bucket, ids in ((each, sorted(names)) for each, names in buckets.items())
                    for first in range(0, len(ids), READ_AT_ONCE)
                ]
            )
        return {one.subscriber_id: one for some in found for one in some}

    async def _some(
        self, namespace: str, topic_id: str, bucket: int, ids: list[str]
    ) -> list[Subscriber]:
        statement = self._access.prepared["subscribers_read"]
        rows = await self._access.bridge.run(statement.bind(namespace, topic_id, bucket, ids))
        return list(_decoded(rows))

    async def page(
        self, namespace: str, topic_id: str, bucket: int, *, after: str | None = None, limit: int
    ) -> list[Subscriber]:
        """One query, unless rows without a definition are among the first `limit`."""
        statement = self._access.prepared["subscribers_page"]
        found: list[Subscriber] = []
        after = after or ""  # every id is greater than the empty one
        with translated("subscribers.page"):
            while len(found) < limit:
                wanted = limit - len(found)
                bound = statement.bind(namespace, topic_id, bucket, after, wanted)
                rows = await self._access.bridge.run(bound)
                found += _decoded(rows)
                if len(rows) < wanted:
                    break
                after = rows[-1][0]
        return found

    async def count(self, namespace: str, topic_id: str) -> int:
        """Counted by the server, a query for each bucket."""
        statement = self._access.prepared["subscribers_count"]
        with translated("subscribers.count"):
            found = await together(
                [
                    self._access.bridge.run(statement.bind(namespace, topic_id, bucket))
                    for bucket in range(SUBSCRIBER_BUCKETS)
                ]
            )
        return sum(rows[0][0] for rows in found)


def _place_of(subscriber: Subscriber) -> bytes:
    return _place(subscriber.namespace, subscriber.topic_id, subscriber.subscriber_id)


def _place(namespace: str, topic_id: str, subscriber_id: str) -> bytes:
    """The primary key."""
    bucket = integer(bucket_of(subscriber_id))
    return text(namespace) + text(topic_id) + bucket + text(subscriber_id)


def _decoded(rows: Sequence[Row]) -> Iterator[Subscriber]:
    for _, subscriber, pause, secrets in rows:
        if subscriber is not None:
            found = [decode_secret(value) for value in (secrets or {}).values()]
            yield replace(
                decode_subscriber(subscriber),
                secrets=newest_first(found),
                paused=(pause or 0) > 0,
                pause_stamp=abs(pause or 0),
            )

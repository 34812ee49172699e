"""Who owns a caller's key.

Conditional batches of one partition: all keys of a batch are inserted, or none and the existing
rows come back; then those are answered and the rest is sent again. Each bucket is one partition
with one batch under way from this process (LWTs of one partition exclude each other anyway), and
whoever's turn it is takes along what others brought meanwhile. After a lost answer the batch is
sent again: finding our own claim is success.
"""

import asyncio
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from zlib import crc32

import msgspec

from reminders.model.record import DedupClaim
from reminders.storage.access import Access
from reminders.storage.bridge import UNAVAILABLE, together, translated
from reminders.storage.wire import Mutation, framed, integer, text

BUCKETS = 64
"""Fixed for the life of a keyspace. Few, so that a call of 500 keys makes batches; ten million keys
make partitions of some 25 MB."""
MAX_KEYS = 20
"""A batch."""
MAX_IN_FLIGHT = 16
"""Batches, over all buckets."""
ATTEMPTS = 5
BACKOFF_S = 0.05


class _Stored(msgspec.Struct, frozen=True, array_like=True):
    """The one cell of a claim; its key is the row's."""

    reminder_id: str
    content_hash: bytes
    created_at: datetime
    stamp: int
    expires_at: datetime | None = None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Stored).decode


class _Pending:
    """A claim on its way."""

    __slots__ = ("answer", "claim")

    def __init__(self, claim: DedupClaim) -> None:
        self.claim = claim
        self.answer: DedupClaim | None = None

    @property
    def name(self) -> tuple[str, str]:
        return self.claim.namespace, self.claim.key


class _Bucket:
    """One partition's queue."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self.waiting: list[_Pending] = []

    def take(self) -> list[_Pending]:
        """The first of each key, in order, up to a batch: the same key twice would be accepted
        silently.
        """
        taken: dict[tuple[str, str], _Pending] = {}
        for pending in self.waiting:
            if len(taken) == MAX_KEYS:
                break
            taken.setdefault(pending.name, pending)
        return list(taken.values())

    @contextmanager
    def brought(self, own: list[_Pending]) -> Iterator[None]:
        """However it ends, none of `own` is left behind: nobody would wait for it."""
        self.waiting += own
        try:
            yield
        finally:
            gone = set(map(id, own))
            self.waiting = [p for p in self.waiting if id(p) not in gone]


class CassandraDedupKeys:
    """`reminders.ports.DedupKeys`."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._row = access.prepared["dedup_claim"].row
        self._buckets = [_Bucket() for _ in range(BUCKETS)]
        self._in_flight = asyncio.Semaphore(MAX_IN_FLIGHT)

    async def claim(self, claims: Sequence[DedupClaim]) -> list[DedupClaim]:
        """All buckets at once."""
        pending = [_Pending(claim) for claim in claims]
        by_bucket: dict[int, list[_Pending]] = {}
        for one in pending:
            by_bucket.setdefault(bucket_of(*one.name), []).append(one)
        with translated("dedup.claim"):
            await together([self._settle(b, own) for b, own in by_bucket.items()])
        return [one.answer or one.claim for one in pending]

    async def find(self, namespace: str, key: str) -> DedupClaim | None:
        """One query: LWTs commit at LOCAL_QUORUM, which is how this reads."""
        found = self._access.prepared["dedup_find"].bind(bucket_of(namespace, key), namespace, key)
        with translated("dedup.find"):
            rows = await self._access.bridge.run(found)
        if not rows:
            return None
        namespace, key, claim = rows[0]
        return _standing({"namespace": namespace, "key": key, "claim": claim})[1]

    async def _settle(self, number: int, own: list[_Pending]) -> None:
        bucket = self._buckets[number]
        with bucket.brought(own):
            while any(one.answer is None for one in own):
                async with bucket.turn:
                    if any(one.answer is None for one in own):
                        await self._send(number, bucket)

    async def _send(self, number: int, bucket: _Bucket) -> None:
        group = bucket.take()
        standing = await self._insert(number, group)
        if standing is None:
            for one in group:
                one.answer = one.claim
        else:
            for one in group:
                one.answer = standing.get(one.name)
        bucket.waiting = [one for one in bucket.waiting if one.answer is None]

    async def _insert(
        self, number: int, group: list[_Pending]
    ) -> dict[tuple[str, str], DedupClaim] | None:
        """None: all are inserted. Else nothing is, and these stand."""
        batch = [self._mutation(number, one.claim) for one in group]
        for attempt in range(ATTEMPTS):
            try:
                async with self._in_flight:
                    rows = await self._access.bridge.run_conditional(batch)
            except UNAVAILABLE:
                if attempt == ATTEMPTS - 1:
                    raise
                await asyncio.sleep(BACKOFF_S * 2**attempt * random.random())  # noqa: S311
            else:
                return None if rows[0]["[applied]"] else dict(map(_standing, rows))
        raise AssertionError

    def _mutation(self, bucket: int, claim: DedupClaim) -> Mutation:
        stored = _Stored(
            claim.reminder_id, claim.content_hash, claim.created_at, claim.stamp, claim.expires_at
        )
        row = self._row(
            integer(bucket),
            text(claim.namespace),
            text(claim.key),
            framed(_encode(stored)),
            integer(self._access.expiry.dedup(claim.expires_at)),
        )
        return Mutation(row, 1)


def bucket_of(namespace: str, key: str) -> int:
    """Stable hash of the key."""
    return crc32(f"{namespace}\0{key}".encode()) % BUCKETS


def _standing(row: dict[str, Any]) -> tuple[tuple[str, str], DedupClaim]:
    stored = _decode(row["claim"])
    claim = DedupClaim(
        namespace=row["namespace"],
        key=row["key"],
        reminder_id=stored.reminder_id,
        content_hash=stored.content_hash,
        created_at=stored.created_at,
        stamp=stored.stamp,
        expires_at=stored.expires_at,
    )
    return (claim.namespace, claim.key), claim

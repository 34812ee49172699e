"""Subscribers of topics: put, get, list, remove, pause, and new secrets for their webhooks.

All writes are plain, stamped, and of cells of their own, so that a million subscribers come in as
fast as rows do, and no call undoes another's: a put leaves pause and secrets alone, a secret is
only ever added. Of two secrets that are made at once, both are valid until the overlap of the newer
one is over.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from reminders.errors import (
    NotReady,
    RotationUnderWay,
    SubscriberNotFound,
    TocsinError,
)
from reminders.lifecycle.problems import Reason
from reminders.lifecycle.requests import Page
from reminders.lifecycle.subscriber_puts import Asked, Key, Place, Put, key_of, later, planned
from reminders.lifecycle.subscriber_secrets import (
    answerable,
    call_of,
    made,
    next_stamp,
    of_call,
    refused,
)
from reminders.model.definition import Webhook
from reminders.model.subscriber import SUBSCRIBER_BUCKETS, Secret, Subscriber
from reminders.platform import Platform
from reminders.signing_secrets import SecretText

LOOKED_AT = 5_000
"""Subscribers that one page of a filtered list looks at, at most."""
LEAST_READ = 200
"""Subscribers in one read of a filtered list."""
OUTRUN = timedelta(seconds=1)
"""More than any two processes' clocks differ: a put is stamped behind every delete before it."""


class Rotated(Struct, frozen=True, kw_only=True):
    """A subscriber with its new secret."""

    subscriber: Subscriber
    shown: Secret | None
    """To hand over; None where the caller brought it, or repeats a call of long ago."""
    others_end_at: datetime


class Subscribing:
    """The use cases."""

    def __init__(self, platform: Platform) -> None:
        self._store = platform.store
        self._clock = platform.clock

    async def put(self, asked: Sequence[Asked]) -> list[Put | TocsinError]:
        """One result for each, in order; each succeeds or fails by itself."""
        try:
            now = self._now("put a subscriber")
            known = await self._known(asked)
            results = [planned(one, known, now) for one in asked]
            puts = [one for one in results if isinstance(one, Put)]
            await self._store.subscribers.put(
                [replace(one.subscriber, secrets=one.adds) for one in puts]
            )
            new = {key_of(one.subscriber) for one in puts if not one.replaced}
            await self._outrun([known[key] for key in sorted(new)])
        except TocsinError as error:
            return [error] * len(asked)
        return results

    async def _known(self, asked: Sequence[Asked]) -> dict[Key, Subscriber]:
        wanted: Mapping[Place, set[str]] = defaultdict(set)
        for one in asked:
            wanted[one.place].add(one.subscriber_id)
        found = {}
        for place, ids in wanted.items():
            there = await self._store.subscribers.read_many(*place, ids)
            found.update({key_of(one): one for one in there.values()})
        return found

    async def _outrun(self, new: Sequence[Subscriber]) -> None:
        """A delete by a process whose clock is ahead may stand over a put that came after it: look,
        and stamp that one behind any such.
        """
        places: Mapping[Place, dict[str, Subscriber]] = defaultdict(dict)
        for one in new:
            places[one.namespace, one.topic_id][one.subscriber_id] = one
        for place, wanted in places.items():
            there = await self._store.subscribers.read_many(*place, wanted.keys())
            ahead = OUTRUN // timedelta(microseconds=1)
            lost = [later(one, ahead) for name, one in wanted.items() if name not in there]
            if lost:
                await self._store.subscribers.put(lost)

    async def get(self, namespace: str, topic_id: str, subscriber_id: str) -> Subscriber:
        """Raises `SubscriberNotFound`."""
        found = await self._store.subscribers.read(namespace, topic_id, subscriber_id)
        if found is None:
            raise SubscriberNotFound(topic_id=topic_id, subscriber_id=subscriber_id)
        return found

    async def page(
        self,
        namespace: str,
        topic_id: str,
        *,
        labels: Mapping[str, str],
        paused: bool | None,
        limit: int,
        position: str,
    ) -> Page[Subscriber]:
        """Bucket by bucket, in each by id. With a filter a page may be short, even empty, and yet
        not the last.
        """
        bucket, after = _decoded(position)
        filtered = bool(labels) or paused is not None
        found: list[Subscriber] = []
        looked_at = 0
        while bucket < SUBSCRIBER_BUCKETS:
            size = max(limit - len(found), LEAST_READ if filtered else 0)
            rows = await self._store.subscribers.page(
                namespace, topic_id, bucket, after=after, limit=size
            )
            for row in rows:
                after = row.subscriber_id
                if labels.items() <= row.labels.items() and paused in (None, row.paused):
                    found.append(row)
                    if len(found) == limit:
                        return Page(items=tuple(found), next_token=_encoded(bucket, after))
            looked_at += len(rows)
            if len(rows) < size:
                bucket, after = bucket + 1, ""
            if looked_at >= LOOKED_AT and bucket < SUBSCRIBER_BUCKETS:
                return Page(items=tuple(found), next_token=_encoded(bucket, after))
        return Page(items=tuple(found))

    async def delete(self, namespace: str, topic_id: str, subscriber_id: str) -> bool:
        """Whether it was there."""
        now = self._now("delete a subscriber")
        found = await self._store.subscribers.read(namespace, topic_id, subscriber_id)
        if found is None:
            return False
        await self._store.subscribers.delete(
            namespace, topic_id, subscriber_id, stamp=next_stamp(found, now)
        )
        return True

    async def set_paused(
        self, namespace: str, topic_id: str, subscriber_id: str, *, paused: bool
    ) -> Subscriber:
        """As it is then. Raises `SubscriberNotFound`."""
        now = self._now("pause a subscriber")
        found = await self.get(namespace, topic_id, subscriber_id)
        stamp = next_stamp(found, now)
        await self._store.subscribers.pause(found, paused=paused, stamp=stamp)
        return replace(found, paused=paused, pause_stamp=stamp)

    async def rotate(
        self,
        namespace: str,
        topic_id: str,
        subscriber_id: str,
        *,
        overlap: timedelta,
        secret: SecretText | None,
        request_id: str | None,
    ) -> Rotated:
        """Raises `SubscriberNotFound`, `InvalidRequest`, `RotationUnderWay`."""
        now = self._now("rotate a secret")
        found = await self.get(namespace, topic_id, subscriber_id)
        if not isinstance(found.channel.target, Webhook):
            raise refused("subscriber_id", Reason.SECRET_INVALID, "is no webhook: it signs nothing")
        call = call_of("rotate", request_id)
        earlier = of_call(found, call)
        if earlier is not None:
            shown = answerable(earlier, now) if secret is None else None
            return _rotated(found, earlier, shown)
        valid = found.valid_secrets(now)
        if len(valid) > 1 and overlap > timedelta(0):
            raise RotationUnderWay(until=found.valid_until(valid[1]))
        new = made(found, now, secret=secret, call=call, overlap=overlap)
        kept = valid if overlap else ()
        gone = [one for one in found.secrets if one not in kept]
        await self._store.subscribers.add_secret(found, new, gone=gone)
        turned = replace(found, secrets=(new, *kept))
        return _rotated(turned, new, new if secret is None else None)

    def _now(self, operation: str) -> datetime:
        """What stamps are made of. Raises `NotReady` where the clock is not to be trusted."""
        if not self._clock.in_bounds():
            raise NotReady(operation=operation)
        return self._clock.now()


def _rotated(subscriber: Subscriber, secret: Secret, shown: Secret | None) -> Rotated:
    ends = secret.made_at + secret.overlap
    return Rotated(subscriber=subscriber, shown=shown, others_end_at=ends)


def _encoded(bucket: int, after: str) -> str:
    return f"{bucket:02}{after}"


def _decoded(position: str) -> tuple[int, str]:
    if not position:
        return 0, ""
    bucket = int(position[:2]) if position[:2].isdecimal() else SUBSCRIBER_BUCKETS
    if bucket >= SUBSCRIBER_BUCKETS:
        said = "is not of this list; leave it empty for the first page"
        raise refused("page_token", Reason.VALUE_INVALID, said)
    return bucket, position[2:]

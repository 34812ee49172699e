"""Subscribers of topics: pages in order, and writes that undo nothing of each other."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from reminders.model.definition import Channel, Log, Webhook
from reminders.model.subscriber import (
    SUBSCRIBER_BUCKETS,
    Secret,
    Subscriber,
    bucket_of,
)
from reminders.ports import Store
from tests.contract.store.samples import NAMESPACE, stamp_now, unique

pytestmark = pytest.mark.asyncio(loop_scope="session")

AT = datetime(2026, 12, 1, 9, 0, 0, 123_457, tzinfo=UTC)


def subscriber(topic_id: str, subscriber_id: str | None = None, **fields: Any) -> Subscriber:
    """One with everything set that can be."""
    values: dict[str, Any] = {
        "namespace": NAMESPACE,
        "topic_id": topic_id,
        "subscriber_id": subscriber_id or unique("s"),
        "channel": Channel(channel_id="webhook", target=Webhook(url="https://example.com/é")),
        "labels": {"plan": "gold"},
        "filter": {"kind": "news"},
        "time_zone": "Asia/Tokyo",
        "created_at": AT,
        "updated_at": AT + timedelta(seconds=1),
        "stamp": stamp_now(),
    }
    return Subscriber(**{**values, **fields})


def secret(number: int, stamp: int, **fields: Any) -> Secret:
    """The n-th of a subscriber, a minute after the one before."""
    values = {"made_at": AT + timedelta(minutes=number), "stamp": stamp}
    return Secret(secret_id=f"s{number}", value=f"whsec_{number}", **{**values, **fields})


def named(one: Subscriber) -> tuple[str, str, str]:
    """How the port names it."""
    return one.namespace, one.topic_id, one.subscriber_id


async def test_a_subscriber_reads_back_as_it_was_put(store: Store) -> None:
    """Secrets newest first; a pause is not written by a put."""
    topic = unique("t")
    one = subscriber(topic)
    both = (secret(2, one.stamp), secret(1, one.stamp))
    await store.subscribers.put([replace(one, secrets=both[::-1], paused=True)])
    assert await store.subscribers.read(*named(one)) == replace(one, secrets=both)
    assert await store.subscribers.read(NAMESPACE, topic, "another") is None
    assert await store.subscribers.read(NAMESPACE, unique("t"), one.subscriber_id) is None


async def test_a_put_replaces_the_definition_and_nothing_else(store: Store) -> None:
    """Pause and secrets stay; a late put with a smaller stamp changes nothing."""
    one = subscriber(unique("t"))
    first = secret(1, one.stamp)
    await store.subscribers.put([replace(one, secrets=(first,))])
    await store.subscribers.pause(one, paused=True, stamp=one.stamp + 1)
    log = Channel(channel_id="log", target=Log())
    changed = replace(one, channel=log, labels={}, filter={}, time_zone="", stamp=one.stamp + 2)
    await store.subscribers.put([changed])
    await store.subscribers.put([one])
    expected = replace(changed, secrets=(first,), paused=True, pause_stamp=one.stamp + 1)
    assert await store.subscribers.read(*named(one)) == expected
    await store.subscribers.pause(one, paused=False, stamp=one.stamp + 3)
    await store.subscribers.pause(one, paused=True, stamp=one.stamp + 1)
    resumed = replace(expected, paused=False, pause_stamp=one.stamp + 3)
    assert await store.subscribers.read(*named(one)) == resumed


async def test_secrets_are_added_and_taken_away_one_by_one(store: Store) -> None:
    """Two that are added at once are both there, whichever definition was put meanwhile."""
    one = subscriber(unique("t"))
    old, new, other = (secret(n, one.stamp + n) for n in (1, 2, 3))
    await store.subscribers.put([replace(one, secrets=(old,))])
    await store.subscribers.add_secret(one, new)
    await store.subscribers.put([replace(one, stamp=one.stamp + 9)])
    await store.subscribers.add_secret(one, other)
    found = await store.subscribers.read(*named(one))
    assert found is not None
    assert found.secrets == (other, new, old)
    last = secret(4, one.stamp + 4, overlap=timedelta(hours=1))
    await store.subscribers.add_secret(one, last, gone=(old, new))
    await store.subscribers.add_secret(one, old)
    found = await store.subscribers.read(*named(one))
    assert found is not None
    assert found.secrets == (last, other)


async def test_what_is_deleted_is_gone_with_its_secrets_until_it_is_put_again(
    store: Store,
) -> None:
    """The new one has nothing of the old one."""
    one = subscriber(unique("t"))
    await store.subscribers.put([replace(one, secrets=(secret(1, one.stamp),))])
    await store.subscribers.pause(one, paused=True, stamp=one.stamp)
    await store.subscribers.delete(*named(one), stamp=one.stamp + 1)
    await store.subscribers.put([one])
    assert await store.subscribers.read(*named(one)) is None
    bucket = bucket_of(one.subscriber_id)
    assert await store.subscribers.page(NAMESPACE, one.topic_id, bucket, limit=5) == []
    again = replace(one, stamp=one.stamp + 2)
    await store.subscribers.put([again])
    assert await store.subscribers.read(*named(one)) == again


async def test_a_secret_without_a_definition_is_no_subscriber(store: Store) -> None:
    """A rotation that crossed a removal: neither read nor page shows it, nor does it end a page."""
    topic = unique("t")
    ghosts = [subscriber(topic, f"a{number}") for number in range(40)]
    real = [subscriber(topic, f"b{number}") for number in range(40)]
    for one in ghosts:
        await store.subscribers.add_secret(one, secret(1, one.stamp))
    await store.subscribers.put(real)
    assert await store.subscribers.read(*named(ghosts[0])) is None
    assert await store.subscribers.count(NAMESPACE, topic) == len(real)
    for bucket in {bucket_of(one.subscriber_id) for one in real}:
        mine = [one for one in real if bucket_of(one.subscriber_id) == bucket]
        expected = sorted(mine, key=lambda one: one.subscriber_id)
        found = await store.subscribers.page(NAMESPACE, topic, bucket, limit=len(mine))
        assert found == expected


async def test_pages_give_each_once_in_order(store: Store) -> None:
    """Bucket by bucket, paused ones included; other topics' stay out."""
    topic = unique("t")
    all_of_them = [subscriber(topic, f"s{number:03}") for number in range(300)]
    await store.subscribers.put([*all_of_them, subscriber(unique("t"), "s000")])
    paused = all_of_them[7]
    await store.subscribers.pause(paused, paused=True, stamp=paused.stamp)
    seen: list[Subscriber] = []
    for bucket in range(SUBSCRIBER_BUCKETS):
        after = None
        while page := await store.subscribers.page(NAMESPACE, topic, bucket, after=after, limit=7):
            assert len(page) <= 7
            ids = [one.subscriber_id for one in page]
            assert ids == sorted(ids)
            assert after is None or ids[0] > after
            assert {bucket_of(each) for each in ids} == {bucket}
            after = ids[-1]
            seen += page
    assert sorted(seen, key=lambda one: one.subscriber_id) == [
        replace(one, paused=True, pause_stamp=one.stamp) if one is paused else one
        for one in all_of_them
    ]


async def test_many_are_read_at_once(store: Store) -> None:
    """More than one query takes; those that are not there are left out."""
    topic = unique("t")
    put = [subscriber(topic, f"s{number}") for number in range(2_000)]
    await store.subscribers.put(put)
    asked = [one.subscriber_id for one in put] + ["another"]
    assert await store.subscribers.read_many(NAMESPACE, topic, asked) == {
        one.subscriber_id: one for one in put
    }
    assert await store.subscribers.read_many(NAMESPACE, topic, []) == {}

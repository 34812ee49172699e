"""What ended without having arrived, and endpoints in trouble."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from reminders.buckets import hour_of
from reminders.model.ended import Ended, EndedPlace
from reminders.model.endpoint import ENDPOINT_BUCKETS, Endpoint, Why, endpoint_bucket
from reminders.ports import Store
from tests.contract.store.samples import US, unique

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOUR = hour_of(datetime.now(UTC)) - timedelta(hours=1)


def ended(namespace: str, at: datetime, **changes: str) -> Ended:
    """One delivery of one reminder each."""
    values = {"reminder_id": unique("r"), "occurrence_id": "o", "channel_id": "hook"} | changes
    return Ended(
        namespace=namespace,
        ended_at=at,
        status="failed",
        reason="http_4xx",
        kind="webhook",
        endpoint_id="ep_1",
        **values,
    )


def endpoint(namespace: str, endpoint_id: str = "ep_1", **changes: object) -> Endpoint:
    """At version 1, failing."""
    values: dict[str, object] = {"version": 1, "stamp": 1, "failing_since": HOUR} | changes
    return Endpoint(
        namespace=namespace,
        endpoint_id=endpoint_id,
        kind="webhook",
        address="https://example.com/hook",
        **values,  # type: ignore[arg-type]
    )


async def test_what_ended_is_listed_by_hour_oldest_first(store: Store) -> None:
    """Whichever bucket it is in; the next hour and other namespaces have their own."""
    namespace = unique("ns")
    rows = [ended(namespace, HOUR + number * US) for number in range(40)]
    others = [ended(namespace, HOUR + timedelta(hours=1)), ended(unique("ns"), HOUR)]
    await store.ended.add([*reversed(rows), *others])
    await store.ended.add(rows[:3])
    assert await store.ended.page(namespace, HOUR, limit=99) == rows
    assert await store.ended.page(namespace, HOUR, limit=7) == rows[:7]
    assert await store.ended.page(namespace, HOUR, after=rows[6].place, limit=7) == rows[7:14]
    assert await store.ended.page(namespace, HOUR, after=rows[-1].place, limit=7) == []
    assert await store.ended.page(namespace, HOUR - timedelta(hours=1), limit=7) == []


async def test_of_one_instant_they_come_in_order_of_their_names(store: Store) -> None:
    """A page may end between any two."""
    namespace = unique("ns")
    rows = sorted(
        (
            ended(namespace, HOUR, reminder_id=r, occurrence_id=o, channel_id=c, target=t)
            for r in ("r", "s")
            for o in ("o", "p")
            for c in ("", "c")
            for t in ("", "t")
        ),
        key=lambda one: one.place,
    )
    await store.ended.add(rows)
    found: list[Ended] = []
    after: EndedPlace | None = None
    while page := await store.ended.page(namespace, HOUR, after=after, limit=3):
        found += page
        after = page[-1].place
    assert found == rows


async def test_an_endpoint_is_replaced_only_at_the_version_that_was_read(store: Store) -> None:
    """Of many at once one is saved."""
    namespace = unique("ns")
    first = endpoint(namespace)
    assert await store.endpoints.read(namespace, "ep_1") is None
    assert not await store.endpoints.save(replace(first, version=2))
    saved = await asyncio.gather(*(store.endpoints.save(first) for _ in range(3)))
    assert sorted(saved) == [False, False, True]
    assert await store.endpoints.read(namespace, "ep_1") == first
    disabled = replace(first, version=2, disabled_at=HOUR, why=Why.GONE)
    assert await store.endpoints.save(disabled)
    assert not await store.endpoints.save(disabled)
    assert not await store.endpoints.save(first)
    assert await store.endpoints.read(namespace, "ep_1") == disabled
    assert await store.endpoints.read(namespace, "ep_2") is None


async def test_those_in_trouble_are_listed_by_bucket(store: Store) -> None:
    """In order of their names, of all namespaces or of one."""
    names = sorted(unique("ns") for _ in range(2))
    every = [endpoint(name, f"ep_{number}") for name in names for number in range(30)]
    bucket = endpoint_bucket(names[0], "ep_0")
    mine = [one for one in every if endpoint_bucket(one.namespace, one.endpoint_id) == bucket]
    mine.sort(key=lambda one: (one.namespace, one.endpoint_id))
    for one in every:
        await store.endpoints.show(one)
    own = [one for one in mine if one.namespace == names[0]]
    page = store.endpoints.page
    assert await page(bucket, namespace=names[0], limit=99) == own
    first = await page(bucket, namespace=names[0], limit=1)
    place = first[0].namespace, first[0].endpoint_id
    assert await page(bucket, namespace=names[0], after=place, limit=99) == own[1:]
    found = [one for one in await page(bucket, limit=999) if one.namespace in names]
    assert found == mine
    place = found[0].namespace, found[0].endpoint_id
    assert (await page(bucket, after=place, limit=1))[0] != found[0]
    assert 0 <= bucket < ENDPOINT_BUCKETS


async def test_the_list_follows_the_versions_whoever_writes_last(store: Store) -> None:
    """A late write of an older version changes nothing."""
    namespace = unique("ns")
    old, new = endpoint(namespace, stamp=10), endpoint(namespace, version=2, stamp=11)
    bucket = endpoint_bucket(namespace, "ep_1")
    await store.endpoints.show(new)
    await store.endpoints.show(old)
    assert await store.endpoints.page(bucket, namespace=namespace, limit=9) == [new]
    await store.endpoints.hide(old)
    assert await store.endpoints.page(bucket, namespace=namespace, limit=9) == [new]
    await store.endpoints.hide(replace(new, stamp=12))
    await store.endpoints.show(new)
    assert await store.endpoints.page(bucket, namespace=namespace, limit=9) == []

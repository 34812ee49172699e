"""Who owns a caller's key."""

import asyncio
import random
from datetime import UTC, datetime, timedelta

import pytest

from reminders.model.record import DedupClaim
from reminders.ports import Store
from tests.contract.store.samples import NAMESPACE, stamp_now, unique

pytestmark = pytest.mark.asyncio(loop_scope="session")


def claim(key: str, **more: object) -> DedupClaim:
    """By a new reminder."""
    values: dict[str, object] = {
        "namespace": NAMESPACE,
        "key": key,
        "reminder_id": unique("r"),
        "content_hash": b"h" * 16,
        "created_at": datetime.now(UTC),
        "stamp": stamp_now(),
        "expires_at": datetime.now(UTC) + timedelta(days=1),
    }
    return DedupClaim(**(values | more))  # type: ignore[arg-type]


async def test_the_first_claim_stands(store: Store) -> None:
    """Whole, with all that a repeat is answered from."""
    first = claim(unique("key:"), expires_at=None)
    assert await store.dedup.claim([first]) == [first]
    assert await store.dedup.claim([claim(first.key)]) == [first]
    assert await store.dedup.claim([first]) == [first]


async def test_claims_are_answered_in_order(store: Store) -> None:
    """New and standing ones mixed, over all buckets."""
    standing = [claim(unique("key:")) for _ in range(40)]
    assert await store.dedup.claim(standing) == standing
    fresh = [claim(unique("key:")) for _ in range(200)]
    mixed = [*fresh[:100], *(claim(s.key) for s in standing), *fresh[100:]]
    assert await store.dedup.claim(mixed) == [*fresh[:100], *standing, *fresh[100:]]


async def test_the_same_key_twice_in_a_call(store: Store) -> None:
    """The first wins, also for many pairs at once."""
    firsts = [claim(unique("key:")) for _ in range(30)]
    again = [claim(first.key) for first in firsts]
    assert await store.dedup.claim([*firsts, *again]) == [*firsts, *firsts]


async def test_namespaces_are_apart(store: Store) -> None:
    """One key in two namespaces is two keys."""
    key = unique("key:")
    mine, theirs = claim(key), claim(key, namespace=unique("ns"))
    assert await store.dedup.claim([mine, theirs]) == [mine, theirs]


async def test_nothing_to_claim(store: Store) -> None:
    """An empty call is no error."""
    assert await store.dedup.claim([]) == []


async def test_concurrent_claims_agree(store: Store) -> None:
    """Each of fifty keys, claimed by twenty callers at once, has one owner whom all are told."""
    keys = [unique("key:") for _ in range(50)]
    dice = random.Random(3)
    calls = [[claim(key) for key in dice.sample(keys, 50)] for _ in range(20)]
    answers = await asyncio.gather(*(store.dedup.claim(call) for call in calls))
    owners: dict[str, set[str]] = {}
    for answer in answers:
        for standing in answer:
            owners.setdefault(standing.key, set()).add(standing.reminder_id)
    assert set(owners) == set(keys)
    assert all(len(owner) == 1 for owner in owners.values())
    claimed = {one.reminder_id for call in calls for one in call}
    assert all(owner <= claimed for owner in owners.values())


async def test_a_cancelled_caller_leaves_others_alone(store: Store) -> None:
    """Who shared a batch with it is still answered."""
    keys = [unique("key:") for _ in range(10)]
    calls = [
        asyncio.create_task(store.dedup.claim([claim(key) for key in keys]), name=f"call {n}")
        for n in range(6)
    ]
    await asyncio.sleep(0)
    calls[0].cancel()
    calls[3].cancel()
    answers = await asyncio.gather(*calls, return_exceptions=True)
    told = {
        tuple(one.reminder_id for one in answer)
        for answer in answers
        if not isinstance(answer, BaseException)
    }
    assert len(told) == 1


async def test_a_standing_claim_is_found_without_making_one(store: Store) -> None:
    """Whole; looking for what nobody claimed leaves it free, and namespaces are apart."""
    first = claim(unique("key:"))
    assert await store.dedup.find(NAMESPACE, first.key) is None
    assert await store.dedup.claim([first]) == [first]
    assert await store.dedup.find(NAMESPACE, first.key) == first
    assert await store.dedup.find(unique("ns"), first.key) is None

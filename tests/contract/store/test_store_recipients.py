"""Recipients: one row, replaced by whoever saw it last."""

import asyncio
from datetime import UTC, datetime, time
from typing import Any
from uuid import uuid4

import pytest

from reminders.model.definition import PushProvider
from reminders.model.recipient import OptOut, PushAddress, QuietHours, QuietRule, Recipient
from reminders.ports import Store

pytestmark = pytest.mark.asyncio(loop_scope="session")

AT = datetime(2026, 6, 1, 12, tzinfo=UTC)


def recipient(user_id: str, version: int = 1, **changes: Any) -> Recipient:
    """With something in every field."""
    given: dict[str, Any] = {
        "namespace": "ns",
        "email": "ada@example.com",
        "sms": "+33123456789",
        "push": (
            PushAddress(token="t1", provider=PushProvider.FCM),
            PushAddress(token="ab" * 32, provider=PushProvider.APNS),
        ),
        "time_zone": "Europe/Paris",
        "locale": "fr-CA",
        "opt_outs": (OptOut.EMAIL, OptOut.SMS),
        "quiet_hours": QuietHours(start=time(22), end=time(7, 30), rule=QuietRule.DROP),
        "created_at": AT,
        "updated_at": AT,
    }
    return Recipient(user_id=user_id, version=version, **{**given, **changes})


async def test_what_was_put_is_read_and_belongs_to_its_namespace(store: Store) -> None:
    """Whole; another namespace has nobody of that name."""
    user = f"u-{uuid4()}"
    assert await store.recipients.read("ns", user) is None
    assert await store.recipients.put(recipient(user), expected=None)
    assert await store.recipients.read("ns", user) == recipient(user)
    assert await store.recipients.read("other", user) is None


async def test_only_the_version_that_was_seen_is_replaced(store: Store) -> None:
    """And a repeat of a put whose answer was lost is told that it was made."""
    user = f"u-{uuid4()}"
    old, new = recipient(user), recipient(user, 5, email="", quiet_hours=None, push=())
    assert not await store.recipients.put(new, expected=1)
    assert await store.recipients.put(old, expected=None)
    assert not await store.recipients.put(new, expected=None)
    assert not await store.recipients.put(new, expected=4)
    assert await store.recipients.read("ns", user) == old
    assert await store.recipients.put(new, expected=1)
    assert await store.recipients.put(new, expected=1)
    assert not await store.recipients.put(recipient(user, 5), expected=1)
    assert await store.recipients.read("ns", user) == new


async def test_of_two_at_once_one_is_written(store: Store) -> None:
    """The other one is told so."""
    user = f"u-{uuid4()}"
    both = [recipient(user, version) for version in (2, 3)]
    done = await asyncio.gather(*(store.recipients.put(one, expected=None) for one in both))
    assert sorted(done) == [False, True]
    assert await store.recipients.read("ns", user) == both[done.index(True)]


async def test_only_the_version_that_was_seen_is_deleted(store: Store) -> None:
    """Nothing of it is left, a repeat is harmless, and the name can be used again."""
    user = f"u-{uuid4()}"
    await store.recipients.put(recipient(user, 2), expected=None)
    assert not await store.recipients.delete("ns", user, expected=1)
    assert await store.recipients.read("ns", user) is not None
    assert await store.recipients.delete("ns", user, expected=2)
    assert await store.recipients.read("ns", user) is None
    assert await store.recipients.delete("ns", user, expected=2)
    assert not await store.recipients.put(recipient(user, 3), expected=2)
    assert await store.recipients.put(recipient(user, 3), expected=None)
    assert await store.recipients.read("ns", user) == recipient(user, 3)

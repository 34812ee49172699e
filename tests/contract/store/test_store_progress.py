"""How far each shard is settled, and whether the store answers."""

from datetime import UTC, datetime, timedelta

import pytest

from reminders.buckets import minute_of
from reminders.ports import Store
from tests.contract.store.samples import SHARDS

pytestmark = pytest.mark.asyncio(loop_scope="session")

MINUTE = timedelta(minutes=1)


async def test_all_shards_begin_at_a_minute_of_the_past(store: Store) -> None:
    """From the first day on, a missing row is no state that can occur."""
    progress = await store.progress.read()
    assert sorted(progress) == list(range(SHARDS))
    assert all(at == minute_of(at) <= datetime.now(UTC) for at in list(progress.values())[2:])


async def test_progress_only_grows(store: Store) -> None:
    """A smaller value changes nothing, whoever writes it and when; other shards stay."""
    before = await store.progress.read()
    start = before[1]
    await store.progress.advance(1, start + 5 * MINUTE)
    await store.progress.advance(1, start + 3 * MINUTE)
    after = await store.progress.read()
    assert after[1] == start + 5 * MINUTE
    await store.progress.advance(1, start + 5 * MINUTE)
    await store.progress.advance(1, start + 6 * MINUTE)
    after = await store.progress.read()
    assert after == {**before, 1: start + 6 * MINUTE}


async def test_ping(store: Store) -> None:
    """Answers."""
    await store.ping()

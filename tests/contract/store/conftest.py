"""The stores that the suite runs against."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
import pytest_asyncio

from reminders.localstack import Endpoints
from reminders.memory.store import MemoryStore
from reminders.ports import Store
from reminders.storage.migrate import migrate
from reminders.storage.session import connect
from reminders.storage.settings import StorageSettings
from reminders.storage.store import CassandraStore
from tests.contract.store.samples import SHARDS


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def cassandra_settings(stack: Endpoints) -> AsyncIterator[StorageSettings]:
    """A keyspace of this run, migrated."""
    settings = StorageSettings(
        hosts=tuple(stack.cassandra_hosts.split(",")),
        keyspace=f"contract_{uuid4().hex[:12]}",
        shards=SHARDS,
        request_timeout=timedelta(seconds=10),
    )
    await migrate(settings)
    yield settings
    cluster, session = connect(settings, None)
    session.execute(f"DROP KEYSPACE {settings.keyspace}", timeout=60)
    cluster.shutdown()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def cassandra_store(cassandra_settings: StorageSettings) -> AsyncIterator[CassandraStore]:
    """Connected once for the run, and never missed by the driver: the loop that answers it stands
    still between the tests of this suite.
    """
    store = await CassandraStore.connect(cassandra_settings)
    heartbeat = store._cluster._idle_heartbeat
    assert heartbeat is not None
    await asyncio.to_thread(heartbeat.stop)
    yield store
    await store.close()


@pytest.fixture(scope="session", params=["memory", "cassandra"])
def store(request: pytest.FixtureRequest) -> Store:
    """The store under test."""
    if request.param == "memory":
        return MemoryStore(shards=SHARDS, started_at=datetime.now(UTC))
    found: CassandraStore = request.getfixturevalue("cassandra_store")
    return found

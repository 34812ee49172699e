"""Keyspaces of one test each."""

from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from uuid import uuid4

import pytest
import pytest_asyncio
from cassandra.cluster import Session

from reminders.localstack import Endpoints
from reminders.storage.migrate import migrate
from reminders.storage.session import connect
from reminders.storage.settings import StorageSettings
from reminders.storage.store import CassandraStore

MakeSettings = Callable[..., StorageSettings]


@pytest.fixture(scope="session")
def admin(stack: Endpoints) -> Iterator[Session]:
    """A session without a keyspace."""
    settings = StorageSettings(hosts=tuple(stack.cassandra_hosts.split(",")))
    cluster, session = connect(settings, None)
    yield session
    cluster.shutdown()


@pytest.fixture
def make_settings(stack: Endpoints, admin: Session) -> Iterator[MakeSettings]:
    """Settings for a keyspace that does not exist yet; it is dropped afterwards."""
    made: list[str] = []

    def make(**more: object) -> StorageSettings:
        values: dict[str, object] = {
            "hosts": tuple(stack.cassandra_hosts.split(",")),
            "keyspace": f"integration_{uuid4().hex[:12]}",
            "shards": 4,
            "request_timeout": timedelta(seconds=10),
        }
        settings = StorageSettings(**(values | more))  # type: ignore[arg-type]
        made.append(settings.keyspace)
        return settings

    yield make
    for keyspace in made:
        admin.execute(f"DROP KEYSPACE IF EXISTS {keyspace}", timeout=60)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_settings(stack: Endpoints) -> AsyncIterator[StorageSettings]:
    """A migrated keyspace that tests share."""
    settings = StorageSettings(
        hosts=tuple(stack.cassandra_hosts.split(",")),
        keyspace=f"integration_{uuid4().hex[:12]}",
        shards=4,
        request_timeout=timedelta(seconds=10),
    )
    await migrate(settings)
    yield settings
    cluster, session = connect(settings, None)
    session.execute(f"DROP KEYSPACE {settings.keyspace}", timeout=60)
    cluster.shutdown()


@pytest_asyncio.fixture
async def store(shared_settings: StorageSettings) -> AsyncIterator[CassandraStore]:
    """Connected for one test, which may break it."""
    store = await CassandraStore.connect(shared_settings)
    yield store
    await store.close()

"""Making and checking a keyspace."""

import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cassandra.cluster import Session

import reminders.storage.migrate as migrating
from reminders.buckets import minute_of
from reminders.errors import StoreUnavailable
from reminders.storage.migrate import known, migrate
from reminders.storage.refusal import KeyspaceRefused
from reminders.storage.settings import StorageSettings
from reminders.storage.store import CassandraStore
from tests.integration.storage.conftest import MakeSettings

ROOT = Path(__file__).parents[3]
ALL = [migration.number for migration in known()]

MIGRATE_ELSEWHERE = """
import asyncio, sys
from reminders.storage.migrate import migrate
from reminders.storage.settings import StorageSettings
hosts, keyspace = sys.argv[1:]
settings = StorageSettings(hosts=tuple(hosts.split(",")), keyspace=keyspace, shards=4)
print("applied", asyncio.run(migrate(settings)))
"""


async def test_many_processes_at_once(make_settings: MakeSettings) -> None:
    """Each migration is applied by one of them, and all come back when the keyspace is complete."""
    settings = make_settings()
    hosts = ",".join(settings.hosts)
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable,
            *("-c", MIGRATE_ELSEWHERE, hosts, settings.keyspace),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        for _ in range(4)
    ]
    outputs = [await process.communicate() for process in processes]
    assert [errors.decode() for _, errors in outputs] == [""] * 4
    answers = sorted(answer.decode().splitlines()[-1] for answer, _ in outputs)
    assert answers == sorted(["applied []"] * 3 + [f"applied {ALL}"])
    store = await CassandraStore.connect(settings)
    assert sorted(await store.progress.read()) == [0, 1, 2, 3]
    await store.close()


async def test_again_is_no_work(make_settings: MakeSettings) -> None:
    """And progress stays where it is."""
    settings = make_settings()
    assert await migrate(settings) == ALL
    store = await CassandraStore.connect(settings)
    before = await store.progress.read()
    assert await migrate(settings) == []
    assert await store.progress.read() == before
    await store.close()


async def test_half_a_migration_is_finished(make_settings: MakeSettings, admin: Session) -> None:
    """Where a process died, another one goes on; progress begins when the first one did."""
    settings = make_settings()
    await migrate(settings)
    keyspace = settings.keyspace
    admin.execute(f"DROP TABLE {keyspace}.due", timeout=60)
    admin.execute(f"TRUNCATE {keyspace}.settings", timeout=60)
    admin.execute(f"TRUNCATE {keyspace}.shard_progress", timeout=60)
    began = datetime(2026, 1, 1, 12, 34, 56, tzinfo=UTC)
    admin.execute(
        f"UPDATE {keyspace}.migrations SET applied = false, started_us = %s WHERE number = 1"
        " IF EXISTS",
        (int(began.timestamp()) * 1_000_000,),
    )
    with pytest.raises(KeyspaceRefused):
        await CassandraStore.connect(settings)
    assert await migrate(settings) == [1]
    store = await CassandraStore.connect(settings)
    assert await store.progress.read() == dict.fromkeys(range(4), minute_of(began))
    await store.close()


async def test_a_lock_left_behind_is_waited_for(
    make_settings: MakeSettings, admin: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It expires; who has no patience for that says so."""
    settings = make_settings()
    await migrate(settings)
    admin.execute(
        f"INSERT INTO {settings.keyspace}.migrations (number, holder) VALUES (0, 'dead')"
        " IF NOT EXISTS USING TTL 3"
    )
    monkeypatch.setattr(migrating, "PATIENCE_S", 0.0)
    with pytest.raises(StoreUnavailable):
        await migrate(settings)
    monkeypatch.undo()
    assert await migrate(settings) == []


async def test_an_edited_migration_is_refused(make_settings: MakeSettings, admin: Session) -> None:
    """What is applied must be what this release holds."""
    settings = make_settings()
    await migrate(settings)
    admin.execute(
        f"UPDATE {settings.keyspace}.migrations SET checksum = 'other' WHERE number = 1 IF EXISTS"
    )
    with pytest.raises(KeyspaceRefused, match=r"another 001_main_path\.cql"):
        await migrate(settings)


async def test_another_number_of_shards_is_refused(make_settings: MakeSettings) -> None:
    """By connect and by migrate: entries would go where nobody looks."""
    settings = make_settings()
    await migrate(settings)
    other = StorageSettings(hosts=settings.hosts, keyspace=settings.keyspace, shards=8)
    with pytest.raises(KeyspaceRefused, match="made for 4 shards, and this process is set to 8"):
        await CassandraStore.connect(other)
    with pytest.raises(KeyspaceRefused, match="made for 4 shards, and this process is set to 8"):
        await migrate(other)


async def test_no_keyspace(make_settings: MakeSettings) -> None:
    """The error names the command that makes one."""
    with pytest.raises(KeyspaceRefused, match="tocsin migrate"):
        await CassandraStore.connect(make_settings())


async def test_an_empty_keyspace(make_settings: MakeSettings, admin: Session) -> None:
    """The same."""
    settings = make_settings()
    admin.execute(
        f"CREATE KEYSPACE {settings.keyspace} WITH replication ="
        " {'class': 'SimpleStrategy', 'replication_factor': 1}",
        timeout=60,
    )
    with pytest.raises(KeyspaceRefused, match="tocsin migrate"):
        await CassandraStore.connect(settings)


async def test_replication_by_data_centre(make_settings: MakeSettings, admin: Session) -> None:
    """As configured, for a keyspace that is made."""
    settings = make_settings(replication={"datacenter1": 1})
    await migrate(settings)
    row = admin.execute(
        "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = %s",
        (settings.keyspace,),
    ).one()
    replication = dict(row[0])
    assert replication.pop("class").endswith("NetworkTopologyStrategy")
    assert replication == {"datacenter1": "1"}


async def test_a_missing_progress_row_is_an_error(
    make_settings: MakeSettings, admin: Session
) -> None:
    """To begin at "now" instead would skip whatever is open before it."""
    settings = make_settings()
    await migrate(settings)
    store = await CassandraStore.connect(settings)
    admin.execute(f"DELETE FROM {settings.keyspace}.shard_progress WHERE shard = 2")
    with pytest.raises(KeyspaceRefused, match=r"no progress row for shards \[2\]"):
        await store.progress.read()
    await store.close()

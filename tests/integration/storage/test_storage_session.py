"""The policies that every request follows."""

import logging
import socket
from datetime import timedelta

import pytest
from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT

from reminders.errors import StoreUnavailable
from reminders.storage.reactor import LoopConnection
from reminders.storage.session import StatedRetryPolicy
from reminders.storage.settings import StorageSettings
from reminders.storage.store import CassandraStore


async def test_every_connection_has_tcp_nodelay(store: CassandraStore) -> None:
    """The driver leaves Nagle on: one batch at a time would take 45 ms."""
    pools = list(store._access.bridge._session._pools.values())
    connections = [connection for pool in pools for connection in pool.get_connections()]
    assert connections
    for connection in connections:
        assert isinstance(connection, LoopConnection)
        assert connection._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_consistency_and_time_out(store: CassandraStore) -> None:
    """Quorums of the local data centre, and no stamps or pages by the driver."""
    session = store._access.bridge._session
    profile = session.get_execution_profile(EXEC_PROFILE_DEFAULT)
    assert profile.consistency_level == ConsistencyLevel.LOCAL_QUORUM
    assert profile.serial_consistency_level == ConsistencyLevel.LOCAL_SERIAL
    assert profile.request_timeout == store._access.settings.request_timeout.total_seconds()
    assert isinstance(profile.retry_policy, StatedRetryPolicy)
    assert not session.use_client_timestamp
    assert session.default_fetch_size is None
    serial = store._access.prepared["change_read"].statement
    assert serial.consistency_level == ConsistencyLevel.LOCAL_SERIAL


async def test_lwts_are_not_idempotent_for_the_driver(store: CassandraStore) -> None:
    """It may try reads and stamped writes on another host, never an LWT."""
    prepared = store._access.prepared
    lwts = {name for name, one in prepared.items() if not one.statement.is_idempotent}
    assert lwts == {
        *("change_begin", "change_end", "dedup_claim", "sweep_save"),
        *("endpoint_save", "recipient_put", "recipient_delete"),
    }


async def test_nobody_there(caplog: pytest.LogCaptureFixture) -> None:
    """Start-up gives up after its patience, with the error for it, and without stack traces of the
    driver's for each try.
    """
    settings = StorageSettings(hosts=("127.0.0.1:1",), connect_patience=timedelta(milliseconds=300))
    with pytest.raises(StoreUnavailable, match="connect"):
        await CassandraStore.connect(settings)
    assert not [record for record in caplog.records if record.name.startswith("cassandra")]
    logging.getLogger("cassandra.cluster").warning("heard again")
    assert "heard again" in caplog.text


async def test_a_closed_store_is_unavailable(shared_settings: StorageSettings) -> None:
    """Reads, writes and LWTs raise the one error for it."""
    store = await CassandraStore.connect(shared_settings)
    await store.close()
    with pytest.raises(StoreUnavailable):
        await store.ping()
    with pytest.raises(StoreUnavailable):
        await store.records.drop_live("r", ["e"], stamp=1)

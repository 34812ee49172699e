"""Start-up checks of the keyspace, on a real Cassandra of one node."""

import pytest
from cassandra.cluster import Session

from reminders.findings import Severity
from reminders.storage.migrate import migrate
from reminders.storage.refusal import KeyspaceRefused
from reminders.storage.store import CassandraStore
from tests.integration.storage.conftest import MakeSettings


async def test_one_copy_on_one_node_is_possible_and_says_so(make_settings: MakeSettings) -> None:
    """A developer's machine starts, with a warning."""
    settings = make_settings()
    await migrate(settings)
    store = await CassandraStore.connect(settings)
    try:
        (finding,) = store.findings
        assert (finding.name, finding.severity) == ("replication_single", Severity.WARNING)
        assert "for development only" in finding.remedy
    finally:
        await store.close()


async def test_more_copies_than_nodes_are_refused_with_the_remedy(
    make_settings: MakeSettings, admin: Session
) -> None:
    """Instead of "unavailable" for ever: no quorum can be had."""
    settings = make_settings()
    await migrate(settings)
    admin.execute(
        f"ALTER KEYSPACE {settings.keyspace} WITH replication ="
        " {'class': 'SimpleStrategy', 'replication_factor': 3}",
        timeout=60,
    )
    with pytest.raises(KeyspaceRefused, match=r"no quorum can be had.*ALTER KEYSPACE"):
        await CassandraStore.connect(settings)


async def test_the_copies_of_the_local_centre_count(
    make_settings: MakeSettings, admin: Session
) -> None:
    """By its name, as a NetworkTopologyStrategy has it."""
    (centre,) = {host.datacenter for host in admin.cluster.metadata.all_hosts()}
    settings = make_settings(replication={centre: 1})
    await migrate(settings)
    store = await CassandraStore.connect(settings)
    await store.close()
    assert [finding.name for finding in store.findings] == ["replication_single"]

"""Start-up checks, against real servers in the states they look for."""

import pytest
from redis.asyncio import Redis

from reminders.coordination import RedisCoordination, Severity
from tests.contract.coordination.support import SECOND, RedisServer, start_server, until

REFUSE, WARNING = Severity.REFUSE, Severity.WARNING


async def found(coordination: RedisCoordination) -> dict[str, Severity]:
    """Findings by name."""
    return {finding.name: finding.severity for finding in await coordination.inspect()}


async def test_a_server_as_it_should_be_has_no_findings(
    client: Redis, coordination: RedisCoordination
) -> None:
    """Append-only file, no eviction, lazy expiry, no replicas."""
    await client.config_set("appendonly", "yes")
    await client.config_set("lazyfree-lazy-expire", "yes")
    assert await found(coordination) == {}


async def test_eviction_is_refused(client: Redis, coordination: RedisCoordination) -> None:
    """Any policy but noeviction could drop a claim, and it would ring twice."""
    await client.config_set("maxmemory-policy", "allkeys-lru")
    assert (await found(coordination))["eviction"] is REFUSE


async def test_no_persistence_is_a_warning(client: Redis, coordination: RedisCoordination) -> None:
    """Snapshots or the append-only file: one of them."""
    assert (await found(coordination))["persistence"] is WARNING
    await client.config_set("save", "3600 1")
    assert "persistence" not in await found(coordination)


async def test_slow_expiry_is_a_warning(coordination: RedisCoordination) -> None:
    """Freeing a busy minute's dedupe hash would hold up the server."""
    assert (await found(coordination))["slow_expiry"] is WARNING


async def test_a_replicated_server_must_stop_when_isolated(
    client: Redis,
    coordination: RedisCoordination,
    server: RedisServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """min-replicas-to-write 1, a lag below the fail-over time, two replicas; never a replica."""
    await client.config_set("repl-diskless-sync-delay", 0)
    directory = tmp_path_factory.mktemp("replica")

    async def connected() -> bool:
        return bool((await client.info("replication"))["connected_slaves"])

    replica = start_server(server.binary, directory, "--replicaof", "127.0.0.1", str(server.port))
    try:
        await until(connected)
        findings = await found(coordination)
        assert findings["isolation"] is REFUSE
        assert findings["replicas"] is WARNING
        await client.config_set("min-replicas-to-write", 1)
        assert (await found(coordination))["isolation_lag"] is REFUSE
        await client.config_set("min-replicas-max-lag", 5)
        assert "isolation_lag" not in await found(coordination)
        other = await RedisCoordination.connect(replica.url, lookahead=SECOND, margin=SECOND)
        try:
            assert (await found(other))["replica"] is REFUSE
        finally:
            await other.close()
    finally:
        replica.stop()

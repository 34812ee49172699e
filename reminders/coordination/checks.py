"""What a server must be before a service relies on it."""

from datetime import timedelta
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from reminders.coordination.connection import send, translated
from reminders.coordination.masters import MasterView
from reminders.findings import Finding, refuse, warn

OLDEST = (6, 2)
FAIL_OVER = timedelta(seconds=10)
"""When a replica is promoted, at the earliest, where no sentinel says so."""
FEWEST_REPLICAS = 2
FEWEST_SENTINELS = 3


async def inspect_server(client: Redis, view: MasterView | None = None) -> list[Finding]:
    """Look at version, eviction, persistence and replication. Empty: all is well.

    `view`: what the sentinels say, where they are asked. An isolated master must stop before they
    replace it.
    """
    with translated("start-up checks"):
        info: dict[str, Any] = await client.info()
        config = await _configuration(client)
    found = [*_basics(info), *_persistence(info, config), *_replication(info, config, view)]
    if view is not None:
        found += _watched(view)
    if config.get("lazyfree-lazy-expire") == "no":
        found.append(
            warn("slow_expiry", "set lazyfree-lazy-expire yes: freeing a busy minute takes 40 ms")
        )
    return found


async def _configuration(client: Redis) -> dict[str, str]:
    """Empty where the server does not tell (managed services)."""
    settings: dict[str, str] = {}
    for name in ("save", "min-replicas-to-write", "min-replicas-max-lag", "lazyfree-lazy-expire"):
        try:
            settings.update(await send(client, "CONFIG GET", name))
        except ResponseError:
            return {}
    return settings


def _basics(info: dict[str, Any]) -> list[Finding]:
    found = []
    version = str(info["redis_version"])
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        found.append(refuse("version", f"Redis {version} is too old: 6.2 or newer"))
    policy = str(info["maxmemory_policy"])
    if policy != "noeviction":
        remedy = (
            f"set maxmemory-policy noeviction (it is {policy}): evicted claims would ring twice"
        )
        found.append(refuse("eviction", remedy))
    return found


def _persistence(info: dict[str, Any], config: dict[str, str]) -> list[Finding]:
    if info["aof_enabled"] or config.get("save", "unknown"):
        return []
    return [
        warn(
            "persistence",
            "set appendonly yes: a restart now makes every shard recover from Cassandra",
        )
    ]


def _replication(
    info: dict[str, Any], config: dict[str, str], view: MasterView | None
) -> list[Finding]:
    if info["role"] != "master":
        return [refuse("replica", "point to the master: this server is a replica")]
    replicas = int(info["connected_slaves"])
    needed = int(config.get("min-replicas-to-write", 0))
    if not replicas and not needed and view is None:
        return []
    fail_over = view.down_after if view else FAIL_OVER
    found = []
    if replicas < FEWEST_REPLICAS:
        found.append(
            warn(
                "replicas", f"{replicas} replicas: with fewer than two, a promoted one stands still"
            )
        )
    if not config:
        found.append(
            warn("replicas_unknown", "see that min-replicas-to-write is 1: CONFIG GET is refused")
        )
    elif needed < 1:
        found.append(
            refuse(
                "isolation", "set min-replicas-to-write 1: an isolated master would go on claiming"
            )
        )
    elif (lag := int(config["min-replicas-max-lag"])) == 0 or timedelta(seconds=lag) >= fail_over:
        remedy = f"set min-replicas-max-lag (it is {lag} s) below the fail-over time of {fail_over}"
        found.append(refuse("isolation_lag", remedy))
    return found


def _watched(view: MasterView) -> list[Finding]:
    """A replica that is down for an hour is no reason not to start; one that never was is."""
    found = []
    if view.replicas < FEWEST_REPLICAS:
        found.append(
            refuse(
                "replicas_known",
                f"give the master {FEWEST_REPLICAS} replicas (the sentinels know {view.replicas}): "
                "one that is promoted and has none itself takes no writes",
            )
        )
    if view.sentinels < FEWEST_SENTINELS:
        found.append(
            warn(
                "sentinels",
                f"run {FEWEST_SENTINELS} sentinels (there are {view.sentinels}): fewer have no "
                "majority when one is lost",
            )
        )
    return found

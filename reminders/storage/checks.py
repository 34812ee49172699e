"""Whether the keyspace has as many copies as the promise needs.

Everything is read and written at LOCAL_QUORUM: a row is safe, and can be reached, as long as most
of its copies in the local data centre are there.

| copies in the local centre | one node down                     | verdict                    |
|----------------------------|-----------------------------------|----------------------------|
| 3 or more                  | nothing stops                     | as it should be            |
| 2                          | everything stops until it is back | a warning                  |
| 1, of a single node        | nothing works, nothing is lost    | a warning: for development |
| 1, of several nodes        | some reminders can't be reached   | refused                    |
| no quorum with all nodes   |                                   | refused                    |

SimpleStrategy knows no data centres: with more than one, a quorum of the local one means nothing.
"""

from collections import Counter
from collections.abc import Mapping

from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, Session

from reminders.findings import Finding, Severity, refuse, warn
from reminders.storage.refusal import KeyspaceRefused
from reminders.storage.settings import StorageSettings

SAFE_COPIES = 3
SIMPLE = "SimpleStrategy"


def inspect_keyspace(
    cluster: Cluster, session: Session, settings: StorageSettings
) -> list[Finding]:
    """What is not as it should be, but may be. Looks at the keyspace and the nodes that the driver
    knows. Blocks.

    Raises:
        KeyspaceRefused: It must not be used like this.
    """
    row = session.execute(
        "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = %s",
        (settings.keyspace,),
    ).one()
    replication: dict[str, str] = dict(row[0])
    nodes = Counter(host.datacenter or "" for host in cluster.metadata.all_hosts())
    policy = session.get_execution_profile(EXEC_PROFILE_DEFAULT).load_balancing_policy
    local: str = settings.datacenter or policy._child_policy.local_dc  # noqa: SLF001
    findings = judge(settings.keyspace, replication, nodes, local)
    for finding in findings:
        if finding.severity is Severity.REFUSE:
            problem = finding.remedy.removeprefix(f"keyspace {settings.keyspace} ")
            raise KeyspaceRefused(keyspace=settings.keyspace, problem=problem)
    return findings


def judge(
    keyspace: str, replication: Mapping[str, str], nodes: Mapping[str, int], local: str
) -> list[Finding]:
    """`replication`: as Cassandra's schema has it; `nodes`: how many each data centre has."""
    if replication["class"].endswith(SIMPLE):
        if len(nodes) > 1:
            return [refuse("replication_simple", _remedy(keyspace, local, "has SimpleStrategy"))]
        copies = int(replication["replication_factor"])
    else:
        copies = int(replication.get(local, "0").partition("/")[0])
    return _copies(keyspace, local, copies, nodes.get(local, 0))


def _copies(keyspace: str, local: str, copies: int, nodes: int) -> list[Finding]:
    if not copies:
        lacks = f"has no copy in {local}, where this process reads and writes"
        return [refuse("replication_elsewhere", _remedy(keyspace, local, lacks))]
    quorum = copies // 2 + 1
    if quorum > nodes:
        lacks = f"wants {copies} copies, and {local} has {nodes} nodes: no quorum can be had"
        return [refuse("replication_too_high", _remedy(keyspace, local, lacks))]
    if copies >= SAFE_COPIES:
        return []
    if copies == 1 and nodes == 1:
        alone = f"keyspace {keyspace} has one copy on one node: for development only"
        return [warn("replication_single", alone)]
    if copies == 1:
        lacks = f"has one copy on {nodes} nodes: without one of them reminders can't be reached"
        return [refuse("replication_low", _remedy(keyspace, local, lacks))]
    lacks = "has two copies: without one node everything stops"
    return [warn("replication_low", _remedy(keyspace, local, lacks))]


def _remedy(keyspace: str, local: str, lacks: str) -> str:
    return (
        f"keyspace {keyspace} {lacks}. ALTER KEYSPACE {keyspace} WITH replication = "
        f"{{'class': 'NetworkTopologyStrategy', '{local}': {SAFE_COPIES}}}, then repair it"
    )

"""The store on Cassandra, as services wire it."""

import asyncio
from collections.abc import Sequence
from typing import Self

from cassandra.cluster import Cluster, Session

from reminders.findings import Finding
from reminders.storage.access import Access
from reminders.storage.bridge import Bridge, translated
from reminders.storage.checks import inspect_keyspace
from reminders.storage.dedup import CassandraDedupKeys
from reminders.storage.due import CassandraDueEntries
from reminders.storage.ended import CassandraEnded
from reminders.storage.endpoints import CassandraEndpoints
from reminders.storage.expiry import Expiry
from reminders.storage.fanouts import CassandraFanouts
from reminders.storage.fences import CassandraFences
from reminders.storage.ledger import CassandraLedger
from reminders.storage.migrate import check
from reminders.storage.progress import CassandraProgress
from reminders.storage.reactor import LoopConnection
from reminders.storage.recipients import CassandraRecipients
from reminders.storage.records import CassandraRecords
from reminders.storage.rows import Rows
from reminders.storage.session import connect
from reminders.storage.settings import StorageSettings
from reminders.storage.statements import prepare
from reminders.storage.subscribers import CassandraSubscribers
from reminders.storage.sweeps import CassandraSweeps
from reminders.storage.users import CassandraUserIndex
from reminders.storage.wire import Prepared
from reminders.storage.writer import GroupWriter

CREATES_IN_FLIGHT = 2
"""With one, a batch that hangs would hold up all others; no figure speaks for more."""
CREATES_PACE_S = 0.005
"""A create in a batch of its own costs the driver and Cassandra 320 µs, in one of five 120. A local
Cassandra answers before the next unary create is read, however many callers there are. With 2 ms,
a third fewer were made (docs/performance.md)."""
OUTCOMES_IN_FLIGHT = 2
OUTCOMES_LINGER_S = 0.005
"""At 500 fires a second these would otherwise be written one by one."""
WRITE_PATIENCE = 2
"""Request time-outs that a row may wait for its turn."""


class CassandraStore:
    """`reminders.ports.Store`. Made by `connect`, in the event loop that will use it."""

    def __init__(self, cluster: Cluster, access: Access, findings: Sequence[Finding] = ()) -> None:
        self._cluster = cluster
        self.findings = findings
        """Of the start-up checks."""
        self._access = access
        self.records = CassandraRecords(access)
        self.due = CassandraDueEntries(access)
        self.users = CassandraUserIndex(access)
        self.ledger = CassandraLedger(access)
        self.fanouts = CassandraFanouts(access)
        self.ended = CassandraEnded(access)
        self.endpoints = CassandraEndpoints(access)
        self.dedup = CassandraDedupKeys(access)
        self.progress = CassandraProgress(access)
        self.fences = CassandraFences(access)
        self.sweeps = CassandraSweeps(access)
        self.recipients = CassandraRecipients(access)
        self.subscribers = CassandraSubscribers(access)

    @classmethod
    async def connect(cls, settings: StorageSettings) -> Self:
        """Connects, checks the keyspace and prepares all statements.

        Raises:
            StoreUnavailable: Cassandra did not answer in `settings.connect_patience`.
            KeyspaceRefused: Not migrated, or made for another number of shards.
        """
        with translated("connect"):
            cluster, prepared, session, findings = await asyncio.to_thread(
                _open, settings, LoopConnection.on_running_loop()
            )
        bridge = Bridge(session)
        expiry = Expiry(settings.retention)
        patience_s = WRITE_PATIENCE * settings.request_timeout.total_seconds()
        access = Access(
            settings=settings,
            bridge=bridge,
            prepared=prepared,
            rows=Rows(prepared, expiry),
            expiry=expiry,
            creates=GroupWriter(
                bridge,
                patience_s=patience_s,
                in_flight=CREATES_IN_FLIGHT,
                pace_s=CREATES_PACE_S,
            ),
            steps=GroupWriter(bridge, patience_s=patience_s),
            outcomes=GroupWriter(
                bridge,
                patience_s=patience_s,
                in_flight=OUTCOMES_IN_FLIGHT,
                linger_s=OUTCOMES_LINGER_S,
            ),
        )
        return cls(cluster, access, findings)

    async def close(self) -> None:
        """Closes all connections; what is under way fails. Drain first."""
        await asyncio.to_thread(self._cluster.shutdown)

    async def ping(self) -> None:
        """Returns if a quorum answers.

        Raises:
            StoreUnavailable: It does not.
        """
        with translated("ping"):
            await self._access.bridge.run(self._access.prepared["setting_read"].bind("shards"))


def _open(
    settings: StorageSettings, connection_class: type[LoopConnection]
) -> tuple[Cluster, dict[str, Prepared], Session, list[Finding]]:
    cluster, session = connect(settings, settings.keyspace, connection_class)
    try:
        findings = inspect_keyspace(cluster, session, settings)
        check(session, settings)
        return cluster, prepare(session), session, findings
    except BaseException:
        cluster.shutdown()
        raise

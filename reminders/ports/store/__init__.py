"""What Cassandra is asked for: the truth. One module for each table, named as in the adapter
(`reminders.storage`); `Store` has them all.
"""

from typing import Protocol

from reminders.ports.store.dedup import DedupKeys
from reminders.ports.store.due import Counts, DueEntries
from reminders.ports.store.ended import EndedDeliveries
from reminders.ports.store.endpoints import Endpoints
from reminders.ports.store.fanouts import Fanouts
from reminders.ports.store.fences import Fences
from reminders.ports.store.ledger import Ledger
from reminders.ports.store.progress import Progress
from reminders.ports.store.recipients import Recipients
from reminders.ports.store.records import Records, Scanned
from reminders.ports.store.subscribers import Subscribers
from reminders.ports.store.sweeps import Sweeps
from reminders.ports.store.users import IndexRow, UserIndex

__all__ = [
    "Counts",
    "DedupKeys",
    "DueEntries",
    "EndedDeliveries",
    "Endpoints",
    "Fanouts",
    "Fences",
    "IndexRow",
    "Ledger",
    "Progress",
    "Recipients",
    "Records",
    "Scanned",
    "Store",
    "Subscribers",
    "Sweeps",
    "UserIndex",
]


class Store(Protocol):
    """All tables."""

    @property
    def records(self) -> Records:
        """Records and their live entries."""

    @property
    def due(self) -> DueEntries:
        """What waits to ring."""

    @property
    def users(self) -> UserIndex:
        """Pending occurrences by user."""

    @property
    def ledger(self) -> Ledger:
        """What happened."""

    @property
    def ended(self) -> EndedDeliveries:
        """What ended without having arrived."""

    @property
    def endpoints(self) -> Endpoints:
        """Which endpoints fail or are disabled."""

    @property
    def fanouts(self) -> Fanouts:
        """Deliveries to the subscribers of topics."""

    @property
    def dedup(self) -> DedupKeys:
        """Callers' keys."""

    @property
    def progress(self) -> Progress:
        """How far each shard is settled."""

    @property
    def fences(self) -> Fences:
        """Which groups were cancelled."""

    @property
    def sweeps(self) -> Sweeps:
        """How far walks over all records have come."""

    @property
    def recipients(self) -> Recipients:
        """Where users are reached."""

    @property
    def subscribers(self) -> Subscribers:
        """Who is told what a topic says."""

    async def ping(self) -> None:
        """Returns if it answers."""

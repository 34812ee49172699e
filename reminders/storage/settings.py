"""What the adapter must be told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta


def _one_copy() -> Mapping[str, int]:
    return {"": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSettings:
    """Where Cassandra is, and what is kept for how long."""

    hosts: tuple[str, ...] = ("127.0.0.1:9042",)
    """Contact points as host:port; the rest of the cluster is found through them."""
    keyspace: str = "tocsin"
    shards: int = 64
    """Must be what the keyspace stores."""
    datacenter: str | None = None
    """The local data centre; None: that of the contact points."""
    replication: Mapping[str, int] = field(default_factory=_one_copy)
    """For a keyspace that is made: copies by data centre, or `{"": n}` for SimpleStrategy."""
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    retention: timedelta = timedelta(days=90)
    """How long ended records and ledger rows stay."""
    request_timeout: timedelta = timedelta(seconds=5)
    """Of one request. Longer than the server's own (2 s to 5 s), so that its answer, which says
    more, comes first."""
    connect_patience: timedelta = timedelta(seconds=60)
    """How long start-up waits for a Cassandra that does not answer."""

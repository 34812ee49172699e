"""What every service runs on: the adapters, the clock, and what all processes agree about."""

from dataclasses import dataclass
from datetime import timedelta

from msgspec import Struct

from reminders.ports import Clock, Coordination, Store


class Limits(Struct, frozen=True, kw_only=True):
    """What all processes of a keyspace must agree about."""

    shards: int = 64
    lookahead: timedelta = timedelta(seconds=30)
    """How far ahead scanners read; what is due sooner is announced to them as well."""
    claim_ahead: timedelta = timedelta(0)
    """How long before its time an entry is claimed and handed to a dispatcher, which holds it until
    the very instant: then the hand-over makes nothing late. A cancel that comes within it comes too
    late. At most 0.1 s: `evidence` and group cancels count on it."""
    margin: timedelta = timedelta(seconds=90)
    """Voids live for `lookahead + margin`: no copy in a scanner's hands is older."""
    grace: timedelta = timedelta(minutes=2)
    """A minute is settled no earlier than this after its end."""
    lease_life: timedelta = timedelta(seconds=3)
    """How long a shard stays with a scanner that fell silent."""
    renew_every: timedelta = timedelta(seconds=1)
    """How often scanners renew their leases and look who else is there."""
    retention: timedelta = timedelta(days=90)
    """How long ended records and the ledger are kept."""
    patience: timedelta = timedelta(seconds=5)
    """How long a create waits for the stores, all in all. Each process may have its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """The world as a service sees it."""

    store: Store
    coordination: Coordination
    clock: Clock
    limits: Limits

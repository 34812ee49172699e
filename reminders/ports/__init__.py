"""What the services need from the world, as small protocols.

`clock`         the reference time.
`store`         records, due entries, ledger and the rest: the truth; a module for each table.
`coordination`  leases, claims, streams, hints: what can be rebuilt from it.

Two sets of adapters implement them, the real ones (`reminders.storage`, `reminders.coordination`)
and `reminders.memory`; one contract suite (`tests/contract`) runs against both. The wording here is
the contract.

Store ports raise `StoreUnavailable`, coordination ports `CoordinationUnavailable`, and nothing else
for a server that is down, slow or short of replicas. After such an error a write may or may not
have been made, now or later; repeating it with the same arguments is safe. `stamp` is the write's
timestamp in µs: of two writes to one cell the larger stamp wins, at equal stamps a deletion, else
the larger value.
"""

from reminders.ports.clock import Clock
from reminders.ports.coordination import (
    ClaimAnswer,
    Claims,
    Coordination,
    Copy,
    Hints,
    Job,
    JobStream,
    LeaseAnswer,
    Leases,
    Revocation,
)
from reminders.ports.store import (
    Counts,
    DedupKeys,
    DueEntries,
    EndedDeliveries,
    Endpoints,
    Fanouts,
    Fences,
    IndexRow,
    Ledger,
    Progress,
    Recipients,
    Records,
    Scanned,
    Store,
    Subscribers,
    Sweeps,
    UserIndex,
)

__all__ = [
    "ClaimAnswer",
    "Claims",
    "Clock",
    "Coordination",
    "Copy",
    "Counts",
    "DedupKeys",
    "DueEntries",
    "EndedDeliveries",
    "Endpoints",
    "Fanouts",
    "Fences",
    "Hints",
    "IndexRow",
    "Job",
    "JobStream",
    "LeaseAnswer",
    "Leases",
    "Ledger",
    "Progress",
    "Recipients",
    "Records",
    "Revocation",
    "Scanned",
    "Store",
    "Subscribers",
    "Sweeps",
    "UserIndex",
]

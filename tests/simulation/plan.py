"""What happens in a run, a list of items: a seed makes it, a file keeps it, shrinking shortens it.

Times are ms since the run began. Processes are named `scanner-0`; where an item takes several, a
prefix such as `scanner` or `` (all) will do. Calls are named as in `link`: `due.put`,
`claims.claim`.
"""

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from tests.simulation.items import Item
from tests.simulation.wishes import (
    Backfill,
    Cancel,
    CancelGroup,
    Create,
    Get,
    NewZoneData,
    Recompute,
    Reschedule,
    Silence,
    Subscribe,
    Trigger,
    Update,
    Wake,
)

MINUTE_MS = 60_000


# --- processes ------------------------------------------------------------------------------------


class Crash(Item, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """kill -9; it starts again after a while."""

    process: str
    down: int


class Stop(Item, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """SIGTERM: it drains, ends, and starts again after a while."""

    process: str
    down: int


class Pause(Item, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """SIGSTOP, and SIGCONT after a while."""

    process: str
    for_: int = msgspec.field(name="for")


class Drift(Item, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """The machine's clock jumps, and runs fast or slow from then on."""

    process: str
    jump: int = 0
    ppm: int = 0


# --- calls ----------------------------------------------------------------------------------------


class Interference(Item, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """Something happens to one call of a port: the first that matches after `at` or a later one."""

    process: str = ""
    call: str
    """Its name, or a prefix of it."""
    skip: int = 0
    """So many matching calls pass before."""
    mode: str
    """
    lost       never arrives, the caller gets an error after its time-out
    refused    never arrives, the caller gets an error at once
    late       arrives after `span`; the caller gets an error before, if that exceeds its time-out
    unheard    takes effect, its answer is lost
    twice      takes effect, and once more after `span`
    partial    a create stops between its tables, the caller gets an error
    crash      the process dies before it goes out and starts again after `span`
    crash_after   the process dies before the answer is there and starts again after `span`
    pause      the process stands still for `span` before it goes out
    pause_after   the process stands still for `span` before the answer is there
    """
    span: int = 1000


class Cut(Item, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """A process can't reach a server for a while; for all of them: the server is away."""

    process: str = ""
    server: str
    """`redis` or `store`."""
    for_: int = msgspec.field(name="for")


class Slow(Item, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """Everything asked of a server takes up to `by` longer for a while."""

    server: str
    by: int
    for_: int = msgspec.field(name="for")


# --- servers --------------------------------------------------------------------------------------


class Flush(Item, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """Redis loses everything; `restart`: it is another server from then on."""

    restart: bool = False


class FailOver(Item, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """Another server goes on with what had been replicated to it `lag` before."""

    lag: int
    keep: tuple[str, ...] = ()
    """Parts that it has up to the last write: `leases`, `homes`, `voids`, `fired`, `streams`."""
    clock: int = 0
    """Its clock minus the old one's, ms."""


class Trim(Item, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """An operator's mistake: a stream is deleted."""

    stream: str
    shard: int


class Receiver(Item, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """A receiver behaves badly for a while."""

    fault = False
    name: str
    mode: str
    """`429`, `500`, `slow`, `never` (takes it, does not answer), `refuses` (does not take it)."""
    for_: int = msgspec.field(name="for")


AnyItem = (
    Create
    | Cancel
    | Reschedule
    | Get
    | CancelGroup
    | Silence
    | Wake
    | Update
    | Trigger
    | Backfill
    | NewZoneData
    | Recompute
    | Subscribe
    | Crash
    | Stop
    | Pause
    | Drift
    | Interference
    | Cut
    | Slow
    | Flush
    | FailOver
    | Trim
    | Receiver
)


class Plan(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A whole run."""

    seed: int
    """Also of what is not in the items: how long each call takes."""
    length: int
    """Until when things happen; then the run goes on until all is settled."""
    items: tuple[AnyItem, ...]
    shards: int = 4
    instances: int = 3
    """Of each service."""

    @property
    def faults(self) -> int:
        """How many items are faults."""
        return sum(item.fault for item in self.items)

    @property
    def echo(self) -> int:
        """Until when something sent during the run may still arrive."""
        held = [i.at + i.span for i in self.items if isinstance(i, Interference)]
        return max([self.length, *held]) + 1000

    def only(self, items: Iterable[AnyItem]) -> "Plan":
        """The same with fewer items."""
        return msgspec.structs.replace(self, items=tuple(items))


def to_json(plan: Plan) -> str:
    """To keep it."""
    return msgspec.json.format(msgspec.json.encode(plan)).decode()


def from_json(text: str | bytes) -> Plan:
    """What `to_json` gave."""
    return msgspec.json.decode(text, type=Plan)

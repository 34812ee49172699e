"""What the items of a plan do to the world."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from reminders.memory.coordination import Data
from tests.simulation.clients import Clients
from tests.simulation.link import MS
from tests.simulation.operators import Operators
from tests.simulation.plan import (
    AnyItem,
    Crash,
    Cut,
    Drift,
    FailOver,
    Flush,
    Interference,
    Pause,
    Plan,
    Receiver,
    Slow,
    Stop,
    Trim,
)
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

if TYPE_CHECKING:
    from tests.simulation.world import World

LINGERING = ("lost", "refused")
"""Traps that stay armed for processes that stand still when the rest heals."""


class Faults:
    """Carries out a plan, and heals everything at its end."""

    def __init__(self, world: "World", clients: Clients) -> None:
        operators = Operators(world, clients.ids)
        self._world = world
        self._replicas: dict[FailOver, Data] = {}
        self._does: dict[type, Callable[[Any], None]] = {
            Create: clients.do,
            Cancel: clients.do,
            Reschedule: clients.do,
            Get: clients.do,
            CancelGroup: clients.do,
            Update: clients.do,
            Trigger: operators.do,
            Backfill: operators.do,
            Recompute: operators.do,
            Subscribe: self._subscribe,
            NewZoneData: self._new_zone_data,
            Silence: clients.do,
            Wake: clients.do,
            Crash: self._crash,
            Stop: self._stop,
            Pause: self._pause,
            Drift: self._drift,
            Interference: self._interfere,
            Cut: self._cut,
            Slow: self._slow,
            Flush: self._flush,
            FailOver: self._fail_over,
            Trim: self._trim,
            Receiver: self._receiver,
        }

    def schedule(self, plan: Plan) -> None:
        """Everything at its time."""
        loop = self._world.loop
        for item in plan.items:
            if isinstance(item, FailOver):
                loop.at(max(0, item.at - item.lag) * MS, self._replicate, item)
            loop.at(item.at * MS, self._do, item)

    def heal(self) -> None:
        """From now on nothing new goes wrong."""
        network = self._world.network
        network.traps[:] = [trap for trap in network.traps if trap.mode in LINGERING]
        network.cuts.clear()
        for server in network.slow_us:
            network.slow_us[server] = 0
        self._world.receivers.modes.clear()
        for host in self._world.hosts.values():
            host.set_right(self._world.calendar_us())

    def disarm(self) -> None:
        """Nothing at all goes wrong any more."""
        self._world.network.traps.clear()

    def _do(self, item: AnyItem) -> None:
        if not isinstance(item, Interference):
            self._world.tell("PLAN", repr(item))
        self._does[type(item)](item)

    # --- processes --------------------------------------------------------------------------------

    def _crash(self, item: Crash) -> None:
        for process in self._world.named(item.process):
            self._world.crash(process, item.down * MS)

    def _stop(self, item: Stop) -> None:
        for process in self._world.named(item.process):
            self._world.trouble("stop", item.down * MS, process.name)
            process.restart_us = item.down * MS
            self._world.loop.inside(process, process.stop.set)

    def _pause(self, item: Pause) -> None:
        for process in self._world.named(item.process):
            self._world.trouble("pause", item.for_ * MS, process.name)
            process.freeze(item.for_ * MS)

    def _subscribe(self, item: Subscribe) -> None:
        """All at once, long before."""
        self._world.subscribe(item.topic, item.count)

    def _new_zone_data(self, item: NewZoneData) -> None:
        """Installed everywhere at once; each process computes with it when it has started again."""
        for host in self._world.hosts.values():
            host.zone_shift_s = item.shift_s
        self._world.trouble("new zone data", 0)

    def _drift(self, item: Drift) -> None:
        host = self._world.hosts.get(item.process)
        if host is not None:
            self._world.trouble("drift", 0, item.process)
            host.drift(jump_us=item.jump * MS, ppm=item.ppm)

    # --- calls ------------------------------------------------------------------------------------

    def _interfere(self, item: Interference) -> None:
        self._world.network.traps.append(item)

    def _cut(self, item: Cut) -> None:
        cut = (item.process, item.server)
        self._world.trouble(f"cut {item.server}", item.for_ * MS, item.process)
        self._world.network.cuts.append(cut)
        self._later(item.for_, lambda: self._uncut(cut))

    def _uncut(self, cut: tuple[str, str]) -> None:
        if cut in self._world.network.cuts:
            self._world.network.cuts.remove(cut)

    def _slow(self, item: Slow) -> None:
        slow_us = self._world.network.slow_us
        self._world.trouble(f"slow {item.server}", item.for_ * MS)
        slow_us[item.server] = item.by * MS
        self._later(item.for_, lambda: slow_us.update({item.server: 0}))

    # --- servers ----------------------------------------------------------------------------------

    def _flush(self, item: Flush) -> None:
        network = self._world.network
        self._world.trouble("flush", 0)
        network.coordination.lose_everything()
        if item.restart:
            network.coordination.server.identity += 1
            network.disconnect()

    def _replicate(self, item: FailOver) -> None:
        self._replicas[item] = self._world.network.coordination.replica()

    def _fail_over(self, item: FailOver) -> None:
        network = self._world.network
        self._world.trouble("fail over", 0)
        replica = self._replicas.pop(item)
        for part in item.keep:
            setattr(replica, part, getattr(network.coordination.server.data, part))
        network.coordination.fail_over(replica)
        network.disconnect()
        if item.clock:
            self._world.fail_over_clock(item.clock * MS)

    def _trim(self, item: Trim) -> None:
        self._world.trouble("trim", 0)
        shard = item.shard % self._world.plan.shards
        self._world.network.coordination.server.data.streams.pop((item.stream, shard), None)

    def _receiver(self, item: Receiver) -> None:
        modes = self._world.receivers.modes
        modes[item.name] = item.mode
        self._later(item.for_, lambda: modes.pop(item.name, None))

    def _later(self, after_ms: int, end: Callable[[], object]) -> None:
        loop = self._world.loop
        loop.at(loop.now_us + after_ms * MS, lambda _: end())

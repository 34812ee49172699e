"""Lateness of fires spread evenly at 50, 500 and 1,000 a second.

From the fire time to the last byte of the request at a real HTTP receiver (a process of its own),
by the reference clock: Redis TIME, whose offset to the receiver's clock is measured and corrected
for. The reminders are created by a stream before, due beyond the look-ahead, so that they are
found by the scanner's ordinary reading.

Reference: in the same run a bare timer → aiohttp loop of the same rate, with the same body, at
the same receiver. Aims: p50 and p99 at most 3 × those of the loop; p99.9 under 1 s at 500/s;
nothing early, missing or twice.
"""

import time

from bench.harness.fires import Arrivals, FireSet, Receiver, bare, create, receiving, warm, whole_ms
from bench.harness.machine import MemoryWatch, Meter
from bench.harness.report import Board, Column
from bench.harness.stack import SEPARATE_S
from bench.harness.world import World

SERVICES = True
RATES = (50, 500, 1_000)
CREATES_A_SECOND = 1_500
"""A cautious guess of how fast the sets are created."""
GAP_S = 4.0
"""Between two rates."""

COLUMNS = (
    Column(key="p50", head="p50 ms", digits=1),
    Column(key="p99", head="p99 ms", digits=1),
    Column(key="p999", head="p99.9 ms", digits=1),
    Column(key="max", head="max ms", digits=1),
    Column(key="r50", head="p50 ÷\nloop's", digits=1),
    Column(key="r99", head="p99 ÷\nloop's", digits=1),
    Column(key="early", head="early"),
    Column(key="missing", head="missing"),
    Column(key="repeats", head="repeats"),
    Column(key="elsewhere", head="other\ncores", digits=2),
)
COSTS = (
    Column(key="loop", head="bare\nloop"),
    Column(key="scanner", head="scanner"),
    Column(key="dispatcher", head="dispatcher"),
    Column(key="Cassandra", head="Cassandra"),
    Column(key="Redis", head="Redis"),
)


def measure(world: World) -> list[Board]:
    """Each run: the loops, then the service, one rate after the other."""
    seconds = world.pick(10, 30)
    late = Board(title=f"Lateness of fires spread evenly over {seconds} s", columns=COLUMNS)
    costs = Board(title="CPU µs for each fire, everything of the process included", columns=COSTS)
    memory = Board(
        title="Memory under this load, largest RSS in MiB",
        columns=[Column(key=name, head=name) for name in world.stack.processes],
    )
    with receiving(world.stack) as receiver:
        warm(world.stack, receiver)
        late.notes.append(f"Redis TIME − clock: {receiver.reference_offset_us:.0f} µs")
        for _ in world.rounds("lateness"):
            loops = _loops(world, receiver, seconds, late, costs)
            for rate, fires in _create(world, receiver, seconds):
                _rate(world, receiver, (rate, fires), loops[rate], (late, costs, memory))
    return [late, costs, memory]


def _loops(
    world: World, receiver: Receiver, seconds: int, late: Board, costs: Board
) -> dict[int, Arrivals]:
    loops: dict[int, Arrivals] = {}
    for rate in RATES:
        count = rate * seconds
        arrivals, cpu = bare(receiver, "evenly", f"loop{rate}", count, 1_000_000 // rate)
        late.add(f"{rate:,}/s bare loop", _figures(arrivals))
        costs.add(f"{rate:,}/s", {"loop": cpu})
        loops[rate] = arrivals
        world.progress(f"  bare loop {rate:,}/s: p99 {arrivals.at(0.99):.1f} ms")
    return loops


def _create(world: World, receiver: Receiver, seconds: int) -> list[tuple[int, FireSet]]:
    """All rates' reminders, one after the other in time, the first one beyond the look-ahead."""
    total = sum(RATES) * seconds
    start = time.time() + total / CREATES_A_SECOND + SEPARATE_S
    made = []
    for rate in RATES:
        fires = FireSet(
            name=f"even{rate}",
            first_us=whole_ms(start),
            step_us=1_000_000 // rate,
            count=rate * seconds,
        )
        made.append((rate, fires))
        start += seconds + GAP_S
    create(world.stack, receiver, [fires for _, fires in made])
    spare = made[0][1].first_us / 1e6 - time.time()
    world.progress(f"  {total:,} reminders created, the first is due in {spare:.0f} s")
    return made


def _rate(
    world: World,
    receiver: Receiver,
    load: tuple[int, FireSet],
    loop: Arrivals,
    boards: tuple[Board, Board, Board],
) -> None:
    (rate, fires), (late, costs, memory) = load, boards
    processes = {**world.stack.processes, "receiver": receiver.child.pid}
    meter = Meter(processes)
    time.sleep(max(0.0, fires.first_us / 1e6 - 1 - time.time()))
    with MemoryWatch(world.stack.processes) as watch:
        meter.start()
        receiver.wait(fires.count, fires.last_us)
        usage = meter.stop()
    arrivals = receiver.take(fires)
    late.add(
        f"{rate:,}/s",
        {
            **_figures(arrivals),
            "r50": arrivals.at(0.5) / loop.at(0.5),
            "r99": arrivals.at(0.99) / loop.at(0.99),
            "elsewhere": usage.elsewhere,
        },
    )
    known = {column.key for column in costs.columns}
    cpu = {name: usage.micros_each(name, fires.count) for name in usage.cpu if name in known}
    costs.add(f"{rate:,}/s", cpu)
    memory.add(f"{rate:,}/s", {name: watch.most(name) for name in world.stack.processes})
    world.progress(
        f"  {rate:,}/s: p50 {arrivals.at(0.5):.1f} ms, p99 {arrivals.at(0.99):.1f} ms, "
        f"early {arrivals.early}, missing {arrivals.missing}"
    )


def _figures(arrivals: Arrivals) -> dict[str, float | None]:
    return {
        "p50": arrivals.at(0.5),
        "p99": arrivals.at(0.99),
        "p999": arrivals.at(0.999),
        "max": arrivals.at(1.0),
        "early": arrivals.early,
        "missing": arrivals.missing,
        "repeats": arrivals.repeats,
    }

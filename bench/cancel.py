"""Cancel latency under a load of 500 fires a second, and that what was cancelled stays silent.

From the call to its answer, at a client of its own, 20 cancels a second: half of reminders that
are due hours ahead, half of some that a scanner holds in its heap already (due within the
look-ahead, so the answer takes the cancel script as well). All are answered "not fired", so none
of them may ring: the receiver is asked afterwards.

Reference: at the same time, one after the other, the two LWTs that DESIGN §5 asks of every
change, with the statements of `reminders.storage`, by the bare driver. Aim: p99 under 100 ms.
"""

import json
import time

from bench.harness.child import Child
from bench.harness.fires import FireSet, Receiver, create, receiving, warm, whole_ms
from bench.harness.machine import Meter
from bench.harness.report import Board, Column, percentile
from bench.harness.sample import AHEAD
from bench.harness.stack import SEPARATE_S
from bench.harness.world import World

SERVICES = True
RATE = 500
PAIRS_A_SECOND = 10
CREATES_A_SECOND = 1_500
WARM_PAIRS = 400
WARM_EVERY_S = 0.02
SILENCE_S = 3.0
"""After the last cancelled one would have rung."""
KINDS = {
    "lwt": "two bare LWTs",
    "far": "cancel, due hours ahead",
    "near": "cancel, in a scanner's heap",
}

COLUMNS = (
    Column(key="count", head="calls"),
    Column(key="p50", head="p50 ms", digits=1),
    Column(key="p99", head="p99 ms", digits=1),
    Column(key="max", head="max ms", digits=1),
    Column(key="r50", head="p50 ÷\nLWTs'", digits=1),
    Column(key="rang", head="rang all\nthe same"),
    Column(key="elsewhere", head="other\ncores", digits=2),
)


def measure(world: World) -> list[Board]:
    """Load and cancels together."""
    board = Board(title=f"Cancel under {RATE} fires/s", columns=COLUMNS)
    with receiving(world.stack) as receiver:
        warm(world.stack, receiver)
        _warm_cancels(world, receiver)
        for _ in world.rounds("cancel"):
            _run(world, receiver, board)
    return [board]


def _warm_cancels(world: World, receiver: Receiver) -> None:
    """Some hundred of each kind that nobody measures, and no load: Cassandra's JIT has not seen
    LWTs yet.
    """
    world.progress("  warming up: cancels …")
    far_us = whole_ms(time.time() + AHEAD.total_seconds())
    far = FireSet(name="warm-far", first_us=far_us, step_us=1_000, count=2 * WARM_PAIRS)
    ids = create(world.stack, receiver, [far])
    with _canceller(world, WARM_EVERY_S, ids[:WARM_PAIRS], ids[WARM_PAIRS:]) as child:
        child.hear("ready")
        child.tell("go")
        child.hear("end")


def _canceller(world: World, every_s: float, near: list[str], far: list[str]) -> Child:
    settings = world.stack.storage(world.stack.bare_keyspace)
    return Child(
        "canceller",
        address=world.stack.grpc_address,
        hosts=settings.hosts,
        keyspace=settings.keyspace,
        shards=settings.shards,
        every_s=every_s,
        near=near,
        far=far,
    )


def _run(world: World, receiver: Receiver, board: Board) -> None:
    seconds = world.pick(10, 25)
    pairs = seconds * PAIRS_A_SECOND
    creating_s = (RATE * seconds + 2 * pairs) / CREATES_A_SECOND
    first_us = whole_ms(time.time() + creating_s + SEPARATE_S)
    load = FireSet(name="load", first_us=first_us, step_us=1_000_000 // RATE, count=RATE * seconds)
    near = FireSet(name="near", first_us=load.last_us + 5_000_000, step_us=1_000, count=pairs)
    far_us = first_us + int(AHEAD.total_seconds()) * 1_000_000
    far = FireSet(name="far", first_us=far_us, step_us=1_000, count=pairs)
    ids = create(world.stack, receiver, [load, near, far])
    near_ids, far_ids = ids[load.count : load.count + pairs], ids[load.count + pairs :]
    with _canceller(world, 1 / PAIRS_A_SECOND, near_ids, far_ids) as child:
        child.hear("ready")
        meter = Meter({**world.stack.processes, "client": child.pid})
        time.sleep(max(0.0, load.first_us / 1e6 - time.time()))
        meter.start()
        child.tell("go")
        said = child.hear("end")
        usage = meter.stop()
    rang = _rang(receiver, load, near)
    usual = percentile(sorted(said["lwt"]), 0.5)
    for kind, name in KINDS.items():
        lasting = sorted(said[kind])
        row: dict[str, float | None] = {
            "count": len(lasting),
            "p50": percentile(lasting, 0.5),
            "p99": percentile(lasting, 0.99),
            "max": lasting[-1],
            "r50": percentile(lasting, 0.5) / usual,
        }
        if kind == "near":
            row |= {"rang": rang, "elsewhere": usage.elsewhere}
        board.add(name, row)
        world.progress(f"  {name}: p50 {row['p50']:.1f} ms, p99 {row['p99']:.1f} ms")
    if said["fired"]:
        board.notes.append(f"answered 'fired': {json.dumps(said['fired'])}")


def _rang(receiver: Receiver, load: FireSet, near: FireSet) -> int:
    """Waits until the cancelled ones' time is over; how many came all the same."""
    receiver.wait(load.count, load.last_us)
    time.sleep(max(0.0, near.last_us / 1e6 + SILENCE_S - time.time()))
    arrivals = receiver.take(load)
    assert not arrivals.missing, f"{arrivals.missing} of the load did not ring"
    return arrivals.strangers

"""Bursts: 1,000 and 10,000 reminders due at one :00. How long until the last one has arrived?

Created by a stream beyond the look-ahead, received as in `lateness`. Time to drain: from the :00
to the last byte of the last request.

Reference: in the same run a bare aiohttp loop that sends as many requests at once, over as many
connections as a dispatcher may open to one host (64); its time counts from its own start. Aim: at
most twice the loop's time.
"""

import time

from bench.harness.fires import Arrivals, FireSet, Receiver, bare, create, receiving, warm
from bench.harness.machine import Meter
from bench.harness.report import Board, Column
from bench.harness.stack import SEPARATE_S
from bench.harness.world import World

SERVICES = True
SIZES = (1_000, 10_000)
CREATES_A_SECOND = 1_500
MINUTE_S = 60

COLUMNS = (
    Column(key="drain", head="drained\nin s", digits=2),
    Column(key="ratio", head="÷ loop's", digits=1),
    Column(key="first", head="first\nafter ms", digits=1),
    Column(key="p50", head="p50 s", digits=2),
    Column(key="early", head="early"),
    Column(key="missing", head="missing"),
    Column(key="repeats", head="repeats"),
    Column(key="scanner", head="scanner\nCPU µs"),
    Column(key="dispatcher", head="dispatcher\nCPU µs"),
    Column(key="elsewhere", head="other\ncores", digits=2),
)


def measure(world: World) -> list[Board]:
    """Each size: the loop, then the service at the next :00 that is far enough."""
    board = Board(title="Bursts due at one :00", columns=COLUMNS)
    board.notes.append("CPU: for each fire, until the last one arrived.")
    with receiving(world.stack) as receiver:
        warm(world.stack, receiver)
        for _ in world.rounds("burst"):
            for size in SIZES:
                loop = _loop(receiver, size)
                board.add(f"{size:,} bare loop", _figures(loop))
                _burst(world, receiver, size, loop, board)
    return [board]


def _loop(receiver: Receiver, size: int) -> Arrivals:
    arrivals, _ = bare(receiver, "burst", f"loop{size}", size, 0)
    return arrivals


def _burst(world: World, receiver: Receiver, size: int, loop: Arrivals, board: Board) -> None:
    earliest = time.time() + size / CREATES_A_SECOND + SEPARATE_S
    due_s = -(-int(earliest) // MINUTE_S) * MINUTE_S
    fires = FireSet(name=f"burst{size}", first_us=due_s * 1_000_000, step_us=0, count=size)
    create(world.stack, receiver, [fires])
    world.progress(f"  {size:,} reminders created, due in {due_s - time.time():.0f} s")
    meter = Meter({**world.stack.processes, "receiver": receiver.child.pid})
    time.sleep(max(0.0, due_s - 0.5 - time.time()))
    meter.start()
    receiver.wait(size, fires.last_us)
    usage = meter.stop()
    arrivals = receiver.take(fires)
    figures = _figures(arrivals)
    ratio = _drain_s(arrivals) / _drain_s(loop)
    board.add(
        f"{size:,}",
        {
            **figures,
            "ratio": ratio,
            "scanner": usage.micros_each("scanner", size),
            "dispatcher": usage.micros_each("dispatcher", size),
            "elsewhere": usage.elsewhere,
        },
    )
    world.progress(
        f"  {size:,}: drained in {_drain_s(arrivals):.2f} s, {ratio:.1f} × the loop's "
        f"{_drain_s(loop):.2f} s; missing {arrivals.missing}"
    )


def _drain_s(arrivals: Arrivals) -> float:
    return arrivals.at(1.0) / 1000


def _figures(arrivals: Arrivals) -> dict[str, float | None]:
    return {
        "drain": _drain_s(arrivals),
        "first": arrivals.at(0.0),
        "p50": arrivals.at(0.5) / 1000,
        "early": arrivals.early,
        "missing": arrivals.missing,
        "repeats": arrivals.repeats,
    }

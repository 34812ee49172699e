"""Lateness of a healthy endpoint beside 1,000 endpoints that hang.

The healthy one rings at 50/s: alone; then beside 1,000 endpoints that answer at once; then beside
1,000 that accept and never answer. Each of the thousand is a host of its own (an address of
127.0.0.0/8) and rings every ten seconds, so they are 100 attempts a second, each of which would
take 8 s. Nobody has seen them before. All in the same run; lateness as in `lateness`.

Aim: p99 beside those that hang at most 1.5 × p99 alone. The row between tells how much of the
difference is the mere load. At the end nobody listens where they hung: what is left of it fails at
once, and comes back less and less often.
"""

import time
from contextlib import ExitStack

from bench.harness.child import Child
from bench.harness.fires import Arrivals, FireSet, Receiver, create, receiving, warm, whole_ms
from bench.harness.machine import Meter, Usage
from bench.harness.report import Board, Column
from bench.harness.stack import SEPARATE_S
from bench.harness.world import World

SERVICES = True
RATE = 50
CROWD = 1_000
EVERY_S = 10
"""Each of the crowd rings."""
CREATES_A_SECOND = 1_000
GAP_S = 10.0
"""Between two phases, so that one is over before the next begins."""
WARM_S = 30
WARM_GAP_S = 30
AIM = 1.5

COLUMNS = (
    Column(key="p50", head="p50 ms", digits=1),
    Column(key="p99", head="p99 ms", digits=1),
    Column(key="max", head="max ms", digits=1),
    Column(key="r99", head="p99 ÷\nalone", digits=2),
    Column(key="early", head="early"),
    Column(key="missing", head="missing"),
    Column(key="repeats", head="repeats"),
    Column(key="dispatcher", head="dispatcher\nCPU s", digits=1),
    Column(key="scanner", head="scanner\nCPU s", digits=1),
    Column(key="elsewhere", head="other\ncores", digits=2),
)


def measure(world: World) -> list[Board]:
    """Each run: the three phases."""
    seconds = world.pick(20, 60)
    title = f"A healthy endpoint ({RATE}/s for {seconds} s) beside {CROWD:,} others"
    board = Board(title=title, columns=COLUMNS)
    board.notes.append(
        f"Each of the {CROWD:,} rings every {EVERY_S} s. Aim: p99 beside those that hang at most "
        f"{AIM} × alone."
    )
    with receiving(world.stack) as receiver:
        warm(world.stack, receiver)
        _warm_failing(world, receiver)
        for number in world.rounds("isolation"):
            _run(world, receiver, board, seconds, number)
    return [board]


def _warm_failing(world: World, receiver: Receiver) -> None:
    """The same beside others that hang, unmeasured. What failures need of Cassandra is compiled by
    its JIT meanwhile, for half of the machine; and these, whom nobody answers any more, are left
    alone by and by.
    """
    with Child("crowd", answers=False) as crowd:
        _phase(world, receiver, "warming up", ("warm", WARM_S), crowd)
    world.progress(f"  waiting {WARM_GAP_S} s, until it is quiet …")
    time.sleep(WARM_GAP_S)


def _run(world: World, receiver: Receiver, board: Board, seconds: int, number: int) -> None:
    alone: Arrivals | None = None
    for row, answers in (
        ("alone", None),
        (f"beside {CROWD:,} that answer", True),
        (f"beside {CROWD:,} that hang", False),
    ):
        name = f"n{number}{len(board.rows)}"
        with ExitStack() as stack:
            crowd = None
            if answers is not None:
                crowd = stack.enter_context(Child("crowd", answers=answers))
            arrivals, usage = _phase(world, receiver, row, (name, seconds), crowd)
            if answers is False and crowd is not None:
                connected = crowd.ask("count")["count"]
                world.progress(f"  {connected:,} connections to those that hang")
        first = alone = alone or arrivals
        dispatchers = (cpu for each, cpu in usage.cpu.items() if each.startswith("dispatcher"))
        board.add(
            row,
            {
                "p50": arrivals.at(0.5),
                "p99": arrivals.at(0.99),
                "max": arrivals.at(1.0),
                "r99": arrivals.at(0.99) / first.at(0.99),
                "early": arrivals.early,
                "missing": arrivals.missing,
                "repeats": arrivals.repeats,
                "dispatcher": sum(dispatchers),
                "scanner": usage.cpu.get("scanner"),
                "elsewhere": usage.elsewhere,
            },
        )


def _phase(
    world: World, receiver: Receiver, row: str, phase: tuple[str, int], crowd: Child | None
) -> tuple[Arrivals, Usage]:
    """The healthy endpoint's, for so many seconds."""
    name, seconds = phase
    times = max(1, seconds // EVERY_S) if crowd is not None else 0
    total = RATE * seconds + CROWD * times
    first_us = whole_ms(time.time() + total / CREATES_A_SECOND + SEPARATE_S)
    step_us = 1_000_000 // RATE
    healthy = FireSet(name=name, first_us=first_us, step_us=step_us, count=RATE * seconds)
    sets = [healthy]
    if crowd is not None:
        sets.append(
            FireSet(
                name="crowd",
                first_us=first_us,
                step_us=EVERY_S * 1_000_000 // CROWD,
                count=CROWD * times,
                hosts=CROWD,
                port=crowd.hear("port")["port"],
            )
        )
    create(world.stack, receiver, sets)
    world.progress(f"  {row}: {total:,} created, due in {first_us / 1e6 - time.time():.0f} s")
    time.sleep(max(0.0, first_us / 1e6 - 0.5 - time.time()))
    meter = Meter({**world.stack.processes, "receiver": receiver.child.pid})
    meter.start()
    receiver.wait(healthy.count, healthy.last_us)
    usage = meter.stop()
    arrivals = receiver.take(healthy)
    world.progress(
        f"  {row}: p50 {arrivals.at(0.5):.1f} ms, p99 {arrivals.at(0.99):.1f} ms, "
        f"missing {arrivals.missing}"
    )
    time.sleep(GAP_S)
    return arrivals, usage

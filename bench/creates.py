"""Creates a second: by unary calls, in batches of 100, by streams of such; due hours ahead.

Ceiling: the bare driver writing the very rows of as many creates (record with live entry, due
entry, index row) in unlogged batches of 32, bound beforehand, at most 8 under way:
`processes.bare_driver`. The line *as bytes* is the same with batches serialized beforehand, which
no service can reach, since its rows are made on the way.

Every line is a process of its own against the same Cassandra, and begins when that is idle; runs
take turns, so that a noisy moment meets all of them. CPU: of the scheduler, of Cassandra, and of
the load generator, for each create. The load generator shares the cores, so it does little:
requests are serialized before, and of the answers it reads which creates went well. It makes unary
calls by `harness.http2`, at 30 µs each where grpc.aio's client takes 400; the service does its
whole work on each of them.

Aims: stream ≥ 0.7 of the ceiling; unary above 2,360/s, stream above 4,720/s (the best peer, twice).
"""

from collections.abc import Mapping

from bench.harness.child import Child
from bench.harness.machine import Meter, Usage
from bench.harness.report import Board, Column
from bench.harness.world import World

SERVICES = True
WARM_S = 2.0
BATCH = 100
BATCH_CALLERS = 8
STREAMS = 4
UNARY = "unary, 128 concurrent"
CEILING = "bare driver, bound batches of 32"

WAYS: Mapping[str, Mapping[str, str | int]] = {
    "unary, 32 concurrent": {"way": "unary", "callers": 32},
    UNARY: {"way": "unary", "callers": 128},
    f"batches of {BATCH}, {BATCH_CALLERS} concurrent": {
        "way": "batch",
        "callers": BATCH_CALLERS,
        "size": BATCH,
    },
    f"1 stream, batches of {BATCH}": {"way": "stream", "callers": 1, "size": BATCH},
    f"{STREAMS} streams, batches of {BATCH}": {"way": "stream", "callers": STREAMS, "size": BATCH},
}

COLUMNS = (
    Column(key="rate", head="creates/s"),
    Column(key="ratio", head="of the\nceiling", digits=2),
    Column(key="scheduler", head="scheduler\nCPU µs"),
    Column(key="cassandra", head="Cassandra\nCPU µs"),
    Column(key="client", head="client\nCPU µs"),
    Column(key="p50", head="p50 ms", digits=1),
    Column(key="p99", head="p99 ms", digits=1),
    Column(key="elsewhere", head="other\ncores", digits=2),
)


def measure(world: World) -> list[Board]:
    """All lines, in turns."""
    board = Board(title="Creates, due hours ahead", columns=COLUMNS)
    board.notes.append(
        "CPU: for each create. p50, p99: of a call. Other cores: what ran on the machine besides."
    )
    _warm(world)
    for _ in world.rounds("creates"):
        ceiling = _bare(world, board, CEILING, "bound", None)
        _bare(world, board, "… as bytes made before", "bytes", ceiling)
        for name, way in WAYS.items():
            _served(world, board, name, way, ceiling)
    return [board]


def _warm(world: World) -> None:
    """Cassandra's JIT takes its time, and half of the machine: what nobody measures."""
    world.progress("  warming up …")
    for way in (UNARY, f"1 stream, batches of {BATCH}"):
        with Child(
            "creator",
            address=world.stack.grpc_address,
            warm_s=0.0,
            seconds=world.pick(6, 12),
            **WAYS[way],
        ) as child:
            child.hear("begin")
            child.hear("end")


def _bare(world: World, board: Board, name: str, way: str, ceiling: float | None) -> float:
    stack = world.stack
    settings = stack.storage(stack.bare_keyspace)
    stack.quiet()
    with Child(
        "bare_driver",
        way=way,
        count=world.pick(50_000, 100_000),
        hosts=settings.hosts,
        keyspace=settings.keyspace,
        shards=settings.shards,
    ) as child:
        meter = Meter({**stack.processes, "client": child.pid})
        child.hear("begin")
        meter.start()
        said = child.hear("end")
        usage = meter.stop()
    rate = said["count"] / said["seconds"]
    board.add(name, _row(usage, said["count"], rate, rate / (ceiling or rate)))
    world.progress(f"  {name}: {rate:,.0f} creates/s")
    return float(rate)


def _served(
    world: World, board: Board, name: str, way: Mapping[str, str | int], ceiling: float
) -> None:
    stack = world.stack
    seconds = world.pick(5, 10)
    stack.quiet()
    with Child(
        "creator", address=stack.grpc_address, warm_s=WARM_S, seconds=seconds, **way
    ) as child:
        meter = Meter({**stack.processes, "client": child.pid})
        child.hear("begin")
        meter.start()
        said = child.hear("end")
        usage = meter.stop()
    if said["failed"]:
        board.notes.append(f"{name}: {said['failed']} creates failed")
    rate = said["count"] / usage.seconds
    row = _row(usage, said["count"], rate, rate / ceiling)
    if said["p50_ms"]:
        row |= {"p50": said["p50_ms"], "p99": said["p99_ms"]}
    board.add(name, row)
    world.progress(f"  {name}: {rate:,.0f} creates/s, {rate / ceiling:.2f} of the ceiling")


def _row(usage: Usage, count: int, rate: float, ratio: float) -> dict[str, float | None]:
    return {
        "rate": rate,
        "ratio": ratio,
        "scheduler": usage.micros_each("scheduler", count) if "scheduler" in usage.cpu else None,
        "cassandra": usage.micros_each("Cassandra", count),
        "client": usage.micros_each("client", count),
        "elsewhere": usage.elsewhere,
    }

"""Creates stream in while the store stands still: memory stays flat, and nothing is lost.

A million creates (200,000 with --quick, or `--creates N`) by StreamCreateReminders. When half are
acknowledged, Cassandra (which this benchmark started) gets a SIGSTOP, and 30 s later a SIGCONT.
The client honours flow control and sends again what was answered UNAVAILABLE. RSS of every process
is sampled all the time.

Afterwards the due entries are read back, partition by partition: every acknowledged id must be
there. What is there without an acknowledgement belongs to creates whose answer was UNAVAILABLE;
they may ring, and the contract says so. Reference: the scheduler's RSS before the pause.
"""

import os
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent_with_args

from bench.harness.child import Child
from bench.harness.machine import MemoryWatch
from bench.harness.report import Board, Column
from bench.harness.stack import Stack
from bench.harness.world import World
from reminders.storage.session import connect

SERVICES = True
PAUSE_S = 30.0
AHEAD = timedelta(hours=24)
"""Minutes that no other benchmark uses."""
MINUTES = 360
READ_AT_ONCE = 16

COLUMNS = (
    Column(key="start", head="idle"),
    Column(key="before", head="largest before\nthe pause"),
    Column(key="paused", head="largest\nduring it"),
    Column(key="after", head="largest\nafter it"),
)


def measure(world: World) -> list[Board]:
    """One flood, however many runs the others have."""
    stack, count = world.stack, world.creates
    board = Board(
        title=f"RSS in MiB, {count:,} creates by stream, Cassandra paused for {PAUSE_S:.0f} s",
        columns=COLUMNS,
    )
    pid = stack.servers.get("Cassandra")
    if pid is None:
        board.notes.append("not measured: this Cassandra was not started here, so it is not paused")
        return [board]
    first = (datetime.now(UTC) + AHEAD).replace(second=0, microsecond=0)
    ids = stack.folder / "acknowledged.txt"
    with (
        MemoryWatch(stack.processes) as watch,
        Child(
            "flood",
            address=stack.grpc_address,
            count=count,
            first_us=int(first.timestamp()) * 1_000_000,
            step_us=MINUTES * 60_000_000 // count // 1_000 * 1_000,
            ids=str(ids),
        ) as child,
    ):
        started = time.monotonic()
        child.hear("half")
        paused = _pause(world, pid)
        said = child.hear("end")
        for name in stack.processes:
            board.add(
                name,
                {
                    "start": watch.series[name][0][1],
                    "before": watch.most(name, started, paused),
                    "paused": watch.most(name, paused, paused + PAUSE_S),
                    "after": watch.most(name, paused + PAUSE_S),
                },
            )
    world.progress("  reading everything back …")
    missing, extra = _census(stack, first, ids)
    board.notes.append(
        f"{said['acknowledged']:,} acknowledged in {said['seconds']:.0f} s, the pause included; "
        f"{said['again']:,} answered UNAVAILABLE and sent again"
    )
    board.notes.append(
        f"read back: {missing} acknowledged ones missing, {extra} there without an acknowledgement"
    )
    ids.unlink()
    return [board]


def _pause(world: World, pid: int) -> float:
    """Stops Cassandra for a while; when that began, in monotonic seconds."""
    began = time.monotonic()
    os.kill(pid, signal.SIGSTOP)
    world.progress(f"  half is acknowledged: Cassandra stands still for {PAUSE_S:.0f} s")
    try:
        time.sleep(PAUSE_S)
    finally:
        os.kill(pid, signal.SIGCONT)
    world.progress("  Cassandra goes on")
    return began


def _census(stack: Stack, first: datetime, ids: Path) -> tuple[int, int]:
    """Acknowledged ids that are not there, and due entries that nobody was told of."""
    acknowledged = set(ids.read_text().split())
    cluster, session = connect(stack.storage(stack.keyspace), stack.keyspace)
    try:
        found = {
            entry_id.partition(".")[0] for entry_id in _entry_ids(session, first, stack.shards)
        }
    finally:
        cluster.shutdown()
    return len(acknowledged - found), len(found - acknowledged)


def _entry_ids(session: Session, first: datetime, shards: int) -> Iterator[str]:
    statement = session.prepare("SELECT entry_id FROM due WHERE minute = ? AND shard = ?")
    partitions = [
        (first + timedelta(minutes=minute), shard)
        for minute in range(MINUTES + 1)
        for shard in range(shards)
    ]
    results = execute_concurrent_with_args(
        session, statement, partitions, concurrency=READ_AT_ONCE, results_generator=True
    )
    for _, rows in results:
        for (entry_id,) in rows:
            yield entry_id

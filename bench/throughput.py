"""Deliveries a second of one dispatcher process, beside a bare aiohttp loop at the same receiver.

Reminders due at one time are claimed while the dispatcher stands still (SIGSTOP); then it goes on
and has all of it to do: read, send, ledger, handled, acknowledged. The rate is that of the middle
four fifths of the arrivals, the CPU that of the process until all is acknowledged. The other
services run on, as they do.

Reference: in the same run a bare loop that sends as many requests, over as many connections as a
dispatcher may open to one host. Aim: a ratio of at least 0.6.
"""

import os
import signal
import time
from collections.abc import Callable

from redis import Redis

from bench.harness.child import ChildFailedError
from bench.harness.fires import (
    Arrivals,
    FireSet,
    Receiver,
    bare,
    create,
    receiving,
    warm,
    whole_ms,
)
from bench.harness.machine import cpu_s
from bench.harness.report import Board, Column
from bench.harness.world import World
from reminders.coordination.keys import stream

SERVICES = False
CREATES_A_SECOND = 1_000
AHEAD_S = 8.0
PATIENCE_S = 180.0
POLL_S = 0.1
AIM = 0.6

COLUMNS = (
    Column(key="rate", head="deliveries/s"),
    Column(key="ratio", head="÷ loop's", digits=2),
    Column(key="cpu", head="CPU µs each", digits=0),
    Column(key="missing", head="missing"),
    Column(key="repeats", head="repeats"),
)


def measure(world: World) -> list[Board]:
    """Each run: the loop, then the dispatcher."""
    count = world.pick(4_000, 16_000)
    title = f"Throughput of one dispatcher, {count:,} deliveries to one receiver"
    board = Board(title=title, columns=COLUMNS)
    board.notes.append(f"Aim: at least {AIM} of the loop's rate.")
    with receiving(world.stack) as receiver:
        for number in world.rounds("throughput"):
            loop, cpu = bare(receiver, "burst", f"loop{number}", count, 0)
            board.add("bare loop", {**_figures(loop), "cpu": cpu})
            arrivals, cpu = _dispatch(world, receiver, number, count)
            ratio = _rate(arrivals) / _rate(loop)
            board.add("one dispatcher", {**_figures(arrivals), "ratio": ratio, "cpu": cpu})
            world.progress(
                f"  {_rate(arrivals):,.0f}/s, the loop {_rate(loop):,.0f}/s: {ratio:.2f}; "
                f"{cpu:.0f} µs of CPU each; missing {arrivals.missing}"
            )
    return [board]


def _dispatch(world: World, receiver: Receiver, number: int, count: int) -> tuple[Arrivals, float]:
    with world.stack.running(dispatchers=1):
        warm(world.stack, receiver)
        due_us = whole_ms(time.time() + count / CREATES_A_SECOND + AHEAD_S)
        fires = FireSet(name=f"pile{number}", first_us=due_us, step_us=0, count=count)
        create(world.stack, receiver, [fires])
        pid = world.stack.services["dispatcher"]
        time.sleep(max(0.0, due_us / 1e6 - 0.5 - time.time()))
        os.kill(pid, signal.SIGSTOP)
        try:
            _until(lambda: _piled(world) >= count, "the scanner has claimed all")
            before = cpu_s(pid)
        finally:
            os.kill(pid, signal.SIGCONT)
        _until(lambda: not _piled(world), "all is acknowledged")
        cpu = (cpu_s(pid) - before) / count * 1e6
        return receiver.take(fires), cpu


def _piled(world: World) -> int:
    with Redis.from_url(world.stack.endpoints.redis_url) as client:
        keys = [stream("jobs", shard) for shard in range(world.stack.shards)]
        return sum(client.xlen(key) for key in keys)


def _until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise ChildFailedError(f"not within {PATIENCE_S:.0f} s: {what}")
        time.sleep(POLL_S)


def _rate(arrivals: Arrivals) -> float:
    """Of the middle four fifths."""
    span_ms = arrivals.at(0.9) - arrivals.at(0.1)
    return 0.8 * len(arrivals.lateness_ms) / span_ms * 1000 if span_ms else 0.0


def _figures(arrivals: Arrivals) -> dict[str, float | None]:
    return {
        "rate": _rate(arrivals),
        "missing": arrivals.missing,
        "repeats": arrivals.repeats,
    }

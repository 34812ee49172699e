"""A topic's reminder to its subscribers: 10,000, and as many as `--subscribers` says.

Subscribers are written beforehand, each with a path and a signing secret of its own; one reminder
rings at the receiver once for each. From its time to the last byte of the last request.

What must not grow with the topic: the memory of a dispatcher. What is aimed at: every subscriber
once, and the same rate for both sizes.
"""

import time
from dataclasses import dataclass

import grpc
from google.protobuf.timestamp_pb2 import Timestamp
from tocsin.v1 import reminder_pb2, reminder_service_pb2
from tocsin.v1.reminder_service_pb2_grpc import ReminderServiceStub

from bench.harness.child import Child
from bench.harness.fires import Receiver, receiving, warm
from bench.harness.machine import MemoryWatch, Meter
from bench.harness.report import Board, Column
from bench.harness.world import World

SERVICES = True
FEW = 10_000
AHEAD_S = 5
SLOWEST = 200.0
"""Deliveries a second: it is given up if they are fewer."""
TAKE_EVERY_S = 1.0
COUNTED_WITHIN_S = 120.0
"""After the last arrival, for the occurrence's row to say so."""
DEADLINE_S = 30.0

COLUMNS = (
    Column(key="rate", head="deliveries/s"),
    Column(key="drain", head="drained\nin s", digits=1),
    Column(key="first", head="first\nafter ms", digits=0),
    Column(key="missing", head="missing"),
    Column(key="repeats", head="repeats"),
    Column(key="finished", head="counted\ns after", digits=1),
    Column(key="dispatcher", head="dispatcher\nCPU µs"),
    Column(key="scanner", head="scanner\nCPU µs"),
    Column(key="memory", head="dispatcher\nRSS MiB"),
    Column(key="grown", head="of it\nsince before", digits=1),
)


@dataclass(slots=True, kw_only=True)
class Came:
    """What has arrived so far."""

    numbers: bytearray
    """How often each subscriber was told."""
    distinct: int = 0
    repeats: int = 0
    first_us: float = 0.0
    last_us: float = 0.0

    def take(self, receiver: Receiver) -> None:
        """Adds what came since the last time."""
        for path, at_ns in receiver.child.ask("take")["arrivals"]:
            number = int(path.rpartition("/")[2])
            at_us = at_ns / 1000 + receiver.reference_offset_us
            if self.numbers[number]:
                self.repeats += 1
                continue
            self.numbers[number] = 1
            self.distinct += 1
            self.first_us = min(self.first_us or at_us, at_us)
            self.last_us = max(self.last_us, at_us)


def measure(world: World) -> list[Board]:
    """The small topic, then the large one."""
    board = Board(title="Fan-out of one reminder", columns=COLUMNS)
    board.notes.append("CPU: for each delivery. RSS: of the largest dispatcher, at its most.")
    with receiving(world.stack) as receiver:
        warm(world.stack, receiver)
        for number in world.rounds("fanout"):
            for count in sorted({min(FEW, world.subscribers), world.subscribers}):
                _run(world, receiver, board, count, f"fanout-{count}-{number}-{time.time_ns()}")
    return [board]


def _run(world: World, receiver: Receiver, board: Board, count: int, topic: str) -> None:
    stack = world.stack
    _subscribe(world, receiver, count, topic)
    due_s = int(time.time()) + AHEAD_S
    came = Came(numbers=bytearray(count))
    with (
        grpc.insecure_channel(stack.grpc_address) as channel,
        MemoryWatch(stack.services) as watch,
    ):
        stub = ReminderServiceStub(channel)
        reminder_id = _create(stub, topic, due_s)
        before = {name: watch.latest(name) for name in stack.services}
        meter = Meter(stack.processes)
        meter.start()
        until = due_s + 30 + count / SLOWEST
        while came.distinct < count and time.time() < until:
            time.sleep(TAKE_EVERY_S)
            came.take(receiver)
        usage = meter.stop()
        finished = _finished(stub, reminder_id)
        came.take(receiver)
        dispatchers = [name for name in stack.services if name.startswith("dispatcher")]
        most = {name: watch.most(name) for name in dispatchers}
    seconds = came.last_us / 1e6 - due_s
    largest = max(most, key=lambda name: most[name])
    board.add(
        f"{count:,}",
        {
            "rate": came.distinct / seconds,
            "drain": seconds,
            "first": came.first_us / 1e3 - due_s * 1e3,
            "missing": count - came.distinct,
            "repeats": came.repeats,
            "finished": finished - came.last_us / 1e6 if finished else None,
            "dispatcher": usage.micros_each("dispatcher", count),
            "scanner": usage.micros_each("scanner", count),
            "memory": most[largest],
            "grown": most[largest] - before[largest],
        },
    )
    world.progress(
        f"  {count:,}: {came.distinct / seconds:,.0f} a second, missing {count - came.distinct}, "
        f"{most[largest]:.0f} MiB"
    )


def _subscribe(world: World, receiver: Receiver, count: int, topic: str) -> None:
    settings = world.stack.storage(world.stack.keyspace)
    with Child(
        "subscribers",
        hosts=settings.hosts,
        keyspace=settings.keyspace,
        shards=settings.shards,
        topic=topic,
        url=receiver.url,
        path="fanout",
        due_us=0,
        count=count,
    ) as child:
        seconds = child.hear("written")["seconds"]
    world.progress(f"  {count:,} subscribers written, {count / seconds:,.0f} a second")


def _create(stub: ReminderServiceStub, topic: str, due_s: int) -> str:
    request = reminder_service_pb2.CreateReminderRequest(
        reminder=reminder_pb2.Reminder(
            topic_id=topic,
            schedule=reminder_pb2.Schedule(at=Timestamp(seconds=due_s)),
        )
    )
    request.reminder.params.update({"title": "Deployed", "version": 7})
    answer = stub.CreateReminder(request, timeout=DEADLINE_S)
    return answer.reminder.reminder_id


def _finished(stub: ReminderServiceStub, reminder_id: str) -> float | None:
    """When the occurrence's row says that every delivery has ended; None if it does not."""
    request = reminder_service_pb2.ListOccurrencesRequest(reminder_id=reminder_id)
    until = time.time() + COUNTED_WITHIN_S
    while time.time() < until:
        answer = stub.ListOccurrences(request, timeout=DEADLINE_S)
        if answer.occurrences and answer.occurrences[0].fan_out.finished:
            return answer.occurrences[0].fan_out.count_time.ToNanoseconds() / 1e9
        time.sleep(0.2)
    return None

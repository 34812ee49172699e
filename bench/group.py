"""Cancelling a group by CancelGroup: ten members, and as many as `--members` says (5,000,000 once).

Members are due hours ahead, and some of each group within the look-ahead: these a scanner holds in
its heap already. From the call to its answer; then a list must show none of them, none of the near
ones may ring, and what is created in the group right after the answer must ring.

Reference: what the call can't do without, by bare clients: one quorum write, one round of a SET for
each shard, and the 4δ that clocks may differ by. Aim: under 1 s, and the same for every size.
"""

import time

import grpc
from cassandra.query import SimpleStatement
from redis import Redis
from tocsin.v1 import reminder_service_pb2 as pb
from tocsin.v1.reminder_service_pb2_grpc import ReminderServiceStub

from bench.harness.child import Child
from bench.harness.fires import FireSet, Receiver, create, receiving, whole_ms
from bench.harness.report import Board, Column
from bench.harness.stack import Stack
from bench.harness.world import World
from reminders.lifecycle.grouping import CLOCKS_APART
from reminders.storage.session import connect

SERVICES = True
FEW = 10
WRITERS = 2
NEAR, NEAR_AHEAD_S = 200, 12.0
LATER, LATER_AHEAD_S = 50, 4.0
SILENCE_S = 3.0
DEADLINE_S = 30.0

COLUMNS = (
    Column(key="cancel", head="cancel ms", digits=0),
    Column(key="bare", head="bare write,\nround, 4δ ms", digits=0),
    Column(key="listed", head="listed all\nthe same"),
    Column(key="rang", head="rang all\nthe same"),
    Column(key="later", head="created after,\nrang"),
    Column(key="write", head="members\nwritten/s"),
)


def measure(world: World) -> list[Board]:
    """A small group, then the large one."""
    board = Board(title="Cancel of a group", columns=COLUMNS)
    with receiving(world.stack) as receiver:
        for number in world.rounds("group"):
            for members in (FEW, world.members):
                _run(world, receiver, board, members, f"bench-{members}-{number}-{time.time_ns()}")
    few, many = (f"{members:,} members" for members in (FEW, world.members))
    ratio = board.median(many, "cancel") / board.median(few, "cancel")
    board.notes.append(f"large ÷ small: {ratio:.2f}")
    return [board]


def _run(world: World, receiver: Receiver, board: Board, members: int, group: str) -> None:
    stack = world.stack
    written = _write(stack, members, group)
    first_us = whole_ms(time.time() + NEAR_AHEAD_S)
    near = FireSet(name="near", first_us=first_us, step_us=1_000, count=NEAR, group=group)
    create(stack, receiver, [near])
    time.sleep(1.0)  # so that a scanner has them
    with grpc.insecure_channel(stack.grpc_address) as channel:
        stub = ReminderServiceStub(channel)
        began = time.perf_counter()
        stub.CancelGroup(pb.CancelGroupRequest(group_id=group), timeout=DEADLINE_S)
        lasted = time.perf_counter() - began
        later_us = whole_ms(time.time() + LATER_AHEAD_S)
        later = FireSet(name="later", first_us=later_us, step_us=1_000, count=LATER, group=group)
        create(stack, receiver, [later])
        request = pb.ListRemindersRequest(user_id=f"{group}-0-0")
        listed = stub.ListReminders(request, timeout=DEADLINE_S).total_size
    bare = _bare(stack, group)
    receiver.wait(LATER, later.last_us)
    time.sleep(max(0.0, near.last_us / 1e6 + SILENCE_S - time.time()))
    arrivals = receiver.take(later)
    name = f"{members:,} members"
    board.add(
        name,
        {
            "cancel": lasted * 1000,
            "bare": bare * 1000,
            "listed": listed,
            "rang": arrivals.strangers,
            "later": LATER - arrivals.missing,
            "write": written,
        },
    )
    world.progress(f"  {name}: {lasted * 1000:.0f} ms")


def _write(stack: Stack, members: int, group: str) -> float:
    """By some processes at once; members a second."""
    settings = stack.storage(stack.keyspace)
    share = -(-members // WRITERS)
    counts = [min(share, members - share * number) for number in range(WRITERS)]
    writers = [
        Child(
            "members",
            hosts=settings.hosts,
            keyspace=settings.keyspace,
            shards=settings.shards,
            group=group,
            user=f"{group}-{number}",
            count=count,
        )
        for number, count in enumerate(counts)
    ]
    seconds: list[float] = []
    for writer in writers:
        with writer:
            seconds.append(writer.hear("written")["seconds"])
    return members / max(seconds)


def _bare(stack: Stack, group: str) -> float:
    """Seconds."""
    settings = stack.storage(stack.bare_keyspace)
    cluster, session = connect(settings, settings.keyspace)
    try:
        with Redis.from_url(stack.endpoints.redis_url) as client:
            client.ping()
            began = time.perf_counter()
            session.execute(
                SimpleStatement(
                    "INSERT INTO group_fences (namespace, group_id, cancelled_at_us)"
                    " VALUES (%s, %s, %s)"
                ),
                ("default", group, 1),
            )
            pipeline = client.pipeline(transaction=False)
            for shard in range(stack.shards):
                pipeline.set(f"bare:{{{shard}}}:{group}", 1, px=1000)
            pipeline.execute()
            lasted = time.perf_counter() - began
    finally:
        cluster.shutdown()
    return lasted + 4 * CLOCKS_APART.total_seconds()

"""Claims a second of one scanner: `RedisClaims.claim`, 200 real entries a call, all of them new.

For one shard, whose calls follow each other as a lead's do, and for four shards at once, as one
scanner has on a small machine. What a claim does: lease, home, clock, voids, dedupe, stream
(`coordination/lua/claim.lua`).

Ceiling: a bare Lua loop, 200 × (SET NX with a TTL, then XADD of the same bytes) a call, with four
calls always under way on pipelined connections. No service runs.
"""

import asyncio
import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import uvloop
from msgspec.structs import replace
from redis.asyncio import Redis

from bench.harness.machine import Meter, Usage
from bench.harness.report import Board, Column
from bench.harness.sample import far_reminders
from bench.harness.world import World
from reminders.coordination import RedisCoordination
from reminders.model.codec import encode
from reminders.model.entry import DueEntry, EntryState
from reminders.ports import ClaimAnswer, Copy, LeaseAnswer

SERVICES = False
BATCH = 200
AT_ONCE = 4
FIRST_SHARD = 10_000
"""Shards that no service looks at."""
LEASE_LIFE = timedelta(minutes=5)
BARE_LUA = """
for i, raw in ipairs(ARGV) do
  if i > 2 and redis.call('SET', ARGV[1] .. i .. ARGV[2], '1', 'NX', 'EX', 60) then
    redis.call('XADD', KEYS[1], '*', 'e', raw)
  end
end
"""

COLUMNS = (
    Column(key="rate", head="claims/s"),
    Column(key="ratio", head="of the\nceiling", digits=2),
    Column(key="redis", head="Redis\nCPU µs", digits=1),
    Column(key="client", head="client\nCPU µs", digits=1),
    Column(key="elsewhere", head="other\ncores", digits=2),
)


def measure(world: World) -> list[Board]:
    """The ceiling and the two, in turns."""
    board = Board(title=f"Claims, {BATCH} a call", columns=COLUMNS)
    size = world.pick(40_000, 100_000)
    entries = [new.entries[0] for new in far_reminders(size, 1)]
    for number in world.rounds("claims"):
        ceiling = uvloop.run(_bare(world, board, entries, number))
        for shards in (1, AT_ONCE):
            uvloop.run(_claims(world, board, entries, shards, ceiling))
    return [board]


async def _bare(world: World, board: Board, entries: Sequence[DueEntry], number: int) -> float:
    raws = iter([encode(entry) for entry in entries])
    keys = [f"bench:jobs:{number}:{place}" for place in range(AT_ONCE)]
    async with Redis.from_url(world.stack.endpoints.redis_url) as client:
        script: Any = client.register_script(BARE_LUA)
        await script(keys=[keys[0]], args=["bench:warm:", ""])

        async def caller(place: int) -> None:
            calls = 0
            while batch := list(islice(raws, BATCH)):
                calls += 1
                prefix = f"bench:{number}:{place}:{calls}:"
                await script(keys=[keys[place]], args=[prefix, "", *batch])

        meter = Meter(world.stack.processes)
        meter.start()
        await asyncio.gather(*(caller(place) for place in range(AT_ONCE)))
        usage = meter.stop()
        await client.delete(*keys)
    rate = len(entries) / usage.seconds
    board.add(f"bare Lua loop, {AT_ONCE} calls at once", _row(usage, len(entries), 1.0))
    world.progress(f"  bare Lua loop: {rate:,.0f}/s")
    return rate


async def _claims(
    world: World, board: Board, entries: Sequence[DueEntry], shards: int, ceiling: float
) -> None:
    coordination = await RedisCoordination.connect(
        world.stack.endpoints.redis_url,
        lookahead=timedelta(seconds=30),
        margin=timedelta(seconds=90),
    )
    try:
        copies = _copies(entries)
        rest = iter(copies)
        name = f"bench-{os.getpid()}-{time.monotonic_ns()}"

        async def lead(shard: int) -> None:
            while batch := list(islice(rest, BATCH)):
                answers = await coordination.claims.claim(shard, name, batch)
                assert not isinstance(answers, LeaseAnswer), answers
                assert set(answers) == {ClaimAnswer.CLAIMED}, set(answers)

        places = range(FIRST_SHARD, FIRST_SHARD + shards)
        for shard in places:
            assert await coordination.leases.acquire(shard, name) is LeaseAnswer.HELD
        meter = Meter(world.stack.processes)
        meter.start()
        await asyncio.gather(*(lead(shard) for shard in places))
        usage = meter.stop()
        for shard in places:
            await coordination.leases.release(shard, name)
        await _forget(world.stack.endpoints.redis_url)
    finally:
        await coordination.close()
    rate = len(entries) / usage.seconds
    what = f"claim, {shards} shard{'s at once' if shards > 1 else ''}"
    board.add(what, _row(usage, len(entries), rate / ceiling))
    world.progress(f"  {what}: {rate:,.0f}/s, {rate / ceiling:.2f} of the ceiling")


def _copies(entries: Sequence[DueEntry]) -> list[Copy]:
    """Due since a moment, read just now, never claimed before."""
    now = datetime.now(UTC)
    made = []
    for entry in entries:
        due = replace(entry, key=replace(entry.key, ring_at=now - timedelta(seconds=1)))
        made.append(Copy(state=EntryState(entry=due, raw=encode(due)), read_at=now + LEASE_LIFE))
    return made


async def _forget(redis_url: str) -> None:
    """The streams and dedupe hashes of our shards."""
    async with Redis.from_url(redis_url) as client:
        for pattern in (f"*{{{FIRST_SHARD + place}}}*" for place in range(AT_ONCE)):
            keys = [key async for key in client.scan_iter(match=pattern, count=1_000)]
            if keys:
                await client.unlink(*keys)


def _row(usage: Usage, count: int, ratio: float) -> dict[str, float | None]:
    return {
        "rate": count / usage.seconds,
        "ratio": ratio,
        "redis": usage.micros_each("Redis", count),
        "client": usage.micros_each("bench", count),
        "elsewhere": usage.elsewhere,
    }

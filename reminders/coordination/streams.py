"""The hand-off streams, `jobs` and `fires`: consumer groups over every shard's stream."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from redis.exceptions import ResponseError

from reminders.coordination import keys
from reminders.coordination.connection import Clients, Lives, Timeouts, packed, translated
from reminders.coordination.instants import from_us, to_ms
from reminders.coordination.scripts import Script
from reminders.ports import Job

GROUPS = {"jobs": "dispatchers", "fires": "expanders"}

GONE = ("NOGROUP", "UNBLOCKED")
"""What a read is told when a stream or its group is not there, or vanished while it waited."""

RECHECK = b"r"
"""Field name of an entry whose receiver must look into the ledger first; others are `e`."""


class RedisJobStream:
    """Implements `ports.JobStream` for one of the two streams."""

    def __init__(self, name: str, clients: Clients, lives: Lives, timeouts: Timeouts) -> None:
        self._name = name
        self._group = GROUPS[name]
        self._clients = clients
        self._longest_block = timeouts.block
        self._operation = timeouts.operation
        self._packed_for: Sequence[bytes] = ()
        self._packed = b""
        self._consumer_life_ms = to_ms(lives.consumer)
        self._reclaim = Script("reclaim")
        self._tidy = Script("tidy")
        self._tidied = 0

    async def read(
        self, consumer: str, shards: Sequence[int], *, count: int, wait: timedelta
    ) -> list[Job]:
        """New messages of all the shards, in one call to the server (several for a long wait)."""
        if not shards:
            return []
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait.total_seconds()
        streams = {keys.stream(self._name, shard).encode(): shard for shard in shards}
        while True:
            left = timedelta(seconds=max(deadline - loop.time(), 0))
            with translated(f"read {self._name}"):
                try:
                    reply = await self._read_group(consumer, list(streams), count, left)
                except ResponseError as error:
                    if not str(error).startswith(GONE):
                        raise
                    await self._make_groups(streams)
                    continue
            if reply or loop.time() >= deadline:
                return [
                    _job(streams[stream], job_id, field, raw)
                    for stream, messages in reply or ()
                    for job_id, (field, raw) in messages
                ]

    async def _read_group(
        self, consumer: str, streams: Sequence[bytes], count: int, left: timedelta
    ) -> Any:
        block_ms = to_ms(min(left, self._longest_block))
        block = (b"BLOCK", b"%d" % block_ms) if block_ms else ()  # BLOCK 0 would wait for ever
        names = (b"XREADGROUP", b"GROUP", self._group.encode(), consumer.encode())
        head = (*names, b"COUNT", b"%d" % count, *block)
        command = b"*%d\r\n" % (len(head) + 1 + 2 * len(streams)) + packed(*head)
        within = timedelta(milliseconds=block_ms) + self._operation
        return await self._clients.lines.call(command + self._tail(streams), within=within)

    def _tail(self, streams: Sequence[bytes]) -> bytes:
        """What follows: the streams, and that only new messages are wanted. Hardly ever changes."""
        if self._packed_for != streams:
            self._packed = packed(b"STREAMS", *streams, *[b">"] * len(streams))
            self._packed_for = streams
        return self._packed

    async def _make_groups(self, streams: Iterable[bytes]) -> None:
        """At id 0: what was handed on before the group was there is read, too."""
        pipeline = self._clients.commands.pipeline(transaction=False)
        for stream in streams:
            pipeline.execute_command("XGROUP", "CREATE", stream, self._group, "0", "MKSTREAM")
        _raise_others(await pipeline.execute(raise_on_error=False), "BUSYGROUP")

    async def reclaim(
        self, consumer: str, shards: Sequence[int], *, idle: timedelta, count: int
    ) -> list[Job]:
        """Left messages, at most `count` a shard; forgets the dead consumers of one shard, too."""
        args = (self._group, consumer, to_ms(idle), count)
        with translated(f"reclaim {self._name}"):
            replies = await self._reclaim.run_each(
                self._clients.commands,
                [((keys.stream(self._name, shard),), args) for shard in shards],
            )
            await self._forget_the_dead(shards)
        return [
            _job(shard, job_id, field, raw, deliveries)
            for shard, reply in zip(shards, replies, strict=True)
            for job_id, field, raw, deliveries in reply
        ]

    async def _forget_the_dead(self, shards: Sequence[int]) -> None:
        """One shard in turn: a name for every process that ever ran adds up."""
        if not shards:
            return
        shard = shards[self._tidied % len(shards)]
        self._tidied += 1
        await self._tidy.run(
            self._clients.commands,
            (keys.stream(self._name, shard),),
            (self._group, self._consumer_life_ms),
        )

    async def touch(self, consumer: str, jobs: Sequence[Job]) -> None:
        """Begin the idle time anew.

        JUSTID leaves the delivery counts as they are; what is done meanwhile stays done.
        """
        if not jobs:
            return
        pipeline = self._clients.commands.pipeline(transaction=False)
        for stream, ids in self._by_stream(jobs).items():
            pipeline.execute_command("XCLAIM", stream, self._group, consumer, 0, *ids, "JUSTID")
        with translated(f"touch {self._name}"):
            _raise_others(await pipeline.execute(raise_on_error=False), *GONE)

    async def done(self, jobs: Sequence[Job]) -> None:
        """Acknowledge and remove, in one MULTI a shard: XACK alone leaves the message for ever."""
        if not jobs:
            return
        pipeline = self._clients.commands.pipeline(transaction=False)
        for stream, ids in self._by_stream(jobs).items():
            pipeline.execute_command("MULTI")
            pipeline.execute_command("XACK", stream, self._group, *ids)
            pipeline.execute_command("XDEL", stream, *ids)
            pipeline.execute_command("EXEC")
        with translated(f"done {self._name}"):
            await pipeline.execute()

    def _by_stream(self, jobs: Sequence[Job]) -> Mapping[str, list[str]]:
        ids: dict[int, list[str]] = defaultdict(list)
        for job in jobs:
            ids[job.shard].append(job.job_id)
        return {keys.stream(self._name, shard): some for shard, some in ids.items()}

    async def lengths(self, shards: Sequence[int]) -> Mapping[int, int]:
        """XLEN of each: as done removes, this is what is left to do."""
        pipeline = self._clients.commands.pipeline(transaction=False)
        for shard in shards:
            pipeline.execute_command("XLEN", keys.stream(self._name, shard))
        with translated(f"lengths of {self._name}"):
            return dict(zip(shards, await pipeline.execute(), strict=True))


def _job(shard: int, job_id: bytes, field: bytes, raw: bytes, deliveries: int = 1) -> Job:
    return Job(
        shard=shard,
        job_id=job_id.decode(),
        raw=raw,
        recheck=field == RECHECK,
        claimed_at=from_us(int(job_id.partition(b"-")[0]) * 1000),
        deliveries=deliveries,
    )


def _raise_others(replies: Iterable[Any], *expected: str) -> None:
    for reply in replies:
        if isinstance(reply, Exception) and not str(reply).startswith(expected):
            raise reply

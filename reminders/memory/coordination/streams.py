"""The hand-off streams and the hints, in memory."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import takewhile

from reminders.memory.coordination.server import Message, Pending, Server, Stream
from reminders.model.codec import encode
from reminders.model.entry import DueEntry
from reminders.ports import Job

BEGINNING = "0-0"


class MemoryJobStream:
    """Implements `ports.JobStream`."""

    def __init__(self, name: str, server: Server) -> None:
        self._name = name
        self._server = server

    async def read(
        self, consumer: str, shards: Sequence[int], *, count: int, wait: timedelta
    ) -> list[Job]:
        """New messages, oldest first."""

        def look() -> list[Job]:
            jobs = []
            for shard in shards:
                stream = self._server.stream(self._name, shard)
                ids, stream.fresh = stream.fresh[:count], stream.fresh[count:]
                for job_id in ids:
                    if job_id in stream.messages:
                        stream.pending[job_id] = Pending(consumer, self._server.clock.now())
                        jobs.append(self._job(shard, job_id, stream))
            return jobs

        return await self._server.wait_for(
            f"read {self._name}", look, wait if shards else timedelta(0)
        )

    async def reclaim(
        self, consumer: str, shards: Sequence[int], *, idle: timedelta, count: int
    ) -> list[Job]:
        """What was left for longer than `idle`."""

        def work() -> list[Job]:
            jobs, now = [], self._server.clock.now()
            for shard in shards:
                stream = self._server.stream(self._name, shard)
                left = [
                    name
                    for name, each in stream.pending.items()
                    if now - each.since >= idle and name in stream.messages
                ]
                for job_id in sorted(left, key=_order)[:count]:
                    pending = stream.pending[job_id]
                    stream.pending[job_id] = Pending(consumer, now, pending.deliveries + 1)
                    jobs.append(self._job(shard, job_id, stream))
            return jobs

        return await self._server.step(f"reclaim {self._name}", work)

    async def touch(self, consumer: str, jobs: Sequence[Job]) -> None:
        """Begin the idle time anew."""

        def work() -> None:
            for job in jobs:
                pending = self._server.stream(self._name, job.shard).pending.get(job.job_id)
                if pending is not None:
                    pending.consumer, pending.since = consumer, self._server.clock.now()

        await self._server.step(f"touch {self._name}", work)

    async def done(self, jobs: Sequence[Job]) -> None:
        """Acknowledge and remove."""

        def work() -> None:
            for job in jobs:
                stream = self._server.stream(self._name, job.shard)
                stream.messages.pop(job.job_id, None)
                stream.pending.pop(job.job_id, None)

        await self._server.step(f"done {self._name}", work)

    async def lengths(self, shards: Sequence[int]) -> Mapping[int, int]:
        """What is left to do."""

        def work() -> Mapping[int, int]:
            return {shard: len(self._server.stream(self._name, shard).messages) for shard in shards}

        return await self._server.step(f"lengths of {self._name}", work)

    @staticmethod
    def _job(shard: int, job_id: str, stream: Stream) -> Job:
        message, pending = stream.messages[job_id], stream.pending[job_id]
        return Job(
            shard=shard,
            job_id=job_id,
            raw=message.raw,
            recheck=message.recheck,
            claimed_at=message.at,
            deliveries=pending.deliveries,
        )


class MemoryHints:
    """Implements `ports.Hints`."""

    def __init__(self, server: Server, life: timedelta) -> None:
        self._server = server
        self._life = life

    async def announce(self, entries: Sequence[DueEntry], *, written_from: datetime) -> None:
        """Append a hint for each; old ones go."""

        def work() -> None:
            now = self._server.clock.now()
            for entry in entries:
                stream = self._server.stream("near", entry.key.shard)
                for old in [i for i, m in stream.messages.items() if m.at < now - self._life]:
                    del stream.messages[old]
                message = Message(encode(entry), now, written_from=written_from)
                self._server.add("near", entry.key.shard, message)

        await self._server.step("announce", work)

    async def last(self, shard: int) -> str:
        """The newest id."""
        return await self._server.step(
            "last hint",
            lambda: next(reversed(self._server.stream("near", shard).messages), BEGINNING),
        )

    async def tail(
        self, after: Mapping[int, str], *, wait: timedelta
    ) -> Mapping[int, Sequence[tuple[str, bytes, datetime]]]:
        """What came after."""

        def look() -> Mapping[int, Sequence[tuple[str, bytes, datetime]]]:
            found = {shard: self._after(shard, last) for shard, last in after.items()}
            return {shard: hints for shard, hints in found.items() if hints}

        return await self._server.wait_for("tail hints", look, wait if after else timedelta(0))

    def _after(self, shard: int, last: str) -> list[tuple[str, bytes, datetime]]:
        newest_first = reversed(self._server.stream("near", shard).messages.items())
        new = takewhile(lambda item: _order(item[0]) > _order(last), newest_first)
        return [(name, each.raw, each.written_from or each.at) for name, each in new][::-1]


def _order(job_id: str) -> tuple[int, ...]:
    return tuple(int(part) for part in job_id.split("-"))

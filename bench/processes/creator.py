"""Creates as fast as the service answers, for a while: by calls, batches or a stream.

Requests are serialized before, and due hours ahead.
Events: `begin`, `end` {count, failed, p50_ms, p99_ms}.
"""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import grpc
import uvloop
from tocsin.v1 import reminder_service_pb2 as pb

from bench.harness.child import arguments, say, window
from bench.harness.http2 import CallLoop
from bench.harness.report import percentile
from bench.harness.sample import far_requests

SERVICE = "/tocsin.v1.ReminderService/"
POOL = 20_000
"""Different requests; creates without a key are new reminders each time."""
CONNECTIONS = 4
"""Of the unary callers."""


class Tally:
    """What was answered."""

    def __init__(self) -> None:
        self.created = 0
        self.failed = 0
        self.seconds: list[float] = []

    def one(self, went_well: bool, seconds: float) -> None:  # noqa: FBT001 - a callback
        """A unary call."""
        self.created += went_well
        self.failed += not went_well
        self.seconds.append(seconds)

    def batch(self, answer: bytes, seconds: float) -> None:
        """An answer to a batch."""
        results = pb.BatchCreateRemindersResponse.FromString(answer).results
        created = sum(result.HasField("created") for result in results)
        self.created += created
        self.failed += len(results) - created
        self.seconds.append(seconds)


async def unary(given: dict[str, Any], tally: Tally) -> None:
    """`callers` calls always under way."""
    pool = itertools.cycle([one.SerializeToString() for one in far_requests(POOL)])
    host, _, port = given["address"].rpartition(":")
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(
            lambda: CallLoop(
                f"{SERVICE}CreateReminder",
                given["address"],
                given["callers"] // CONNECTIONS,
                lambda: next(pool),
                tally.one,
            ),
            host,
            int(port),
        )
        for _ in range(CONNECTIONS)
    ]
    await asyncio.gather(*(protocol.closed for _, protocol in made))


def batches(size: int) -> Iterator[bytes]:
    """Serialized, again and again."""
    pool = [
        pb.BatchCreateRemindersRequest(requests=part).SerializeToString()
        for part in _parts(far_requests(POOL), size)
    ]
    return itertools.cycle(pool)


def _parts(items: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while part := list(itertools.islice(items, size)):
        yield part


async def batch(given: dict[str, Any], tally: Tally) -> None:
    """`callers` batch calls always under way."""
    pool = batches(given["size"])
    async with grpc.aio.insecure_channel(given["address"]) as channel:
        call: Any = channel.unary_unary(f"{SERVICE}BatchCreateReminders")

        async def caller() -> None:
            while True:
                started = time.perf_counter()
                tally.batch(await call(next(pool)), time.perf_counter() - started)

        await asyncio.gather(*(caller() for _ in range(given["callers"])))


async def stream(given: dict[str, Any], tally: Tally) -> None:
    """`callers` streams, each writing as fast as it may."""
    pool = batches(given["size"])
    async with grpc.aio.insecure_channel(given["address"]) as channel:
        method: Any = channel.stream_stream(f"{SERVICE}StreamCreateReminders")

        async def writer() -> None:
            call = method()

            async def write() -> None:
                while True:
                    await call.write(next(pool))

            async def read() -> None:
                while (answer := await call.read()) is not grpc.aio.EOF:
                    tally.batch(answer, 0.0)

            await asyncio.gather(write(), read())

        await asyncio.gather(*(writer() for _ in range(given["callers"])))


WAYS: dict[str, Callable[[dict[str, Any], Tally], Awaitable[None]]] = {
    "unary": unary,
    "batch": batch,
    "stream": stream,
}


async def main() -> None:
    """One stretch."""
    given, tally = arguments(), Tally()
    load = asyncio.ensure_future(WAYS[given["way"]](given, tally))
    measured = asyncio.ensure_future(
        window(given["warm_s"], given["seconds"], lambda: tally.created)
    )
    await asyncio.wait((load, measured), return_when=asyncio.FIRST_COMPLETED)
    if load.done():
        load.result()
    lasting = sorted(tally.seconds)
    say(
        "end",
        count=measured.result(),
        failed=tally.failed,
        p50_ms=percentile(lasting, 0.5) * 1000,
        p99_ms=percentile(lasting, 0.99) * 1000,
    )
    load.cancel()


if __name__ == "__main__":
    uvloop.run(main())

"""The reference of fires: a bare timer → aiohttp loop that sends what a dispatcher would send.

`evenly`: one POST each time its time comes. `burst`: all at once, over as many connections as a
dispatcher may open to one host. Paths are `name/due in µs/number`, as for the real fires. Events:
`begin`, `end` {count}.
"""

import asyncio
import time
from typing import Any

import aiohttp
import uvloop

from bench.harness.child import arguments, say
from bench.harness.sample import TITLE

BODY = (
    b'{"eventId":"dlv_0123456789012345678901234567890123456789","payload":{"number":1,"title":"'
    + TITLE.encode()
    + b'"},"reminderId":"r012345678901234567890123","occurrenceId":"20261224T090000",'
    b'"plannedLocal":"2026-12-24T09:00:00","timeZone":"UTC","plannedAt":"2026-12-24T09:00:00Z",'
    b'"fireAt":"2026-12-24T09:00:00Z","attempt":1,"templateId":null,"userId":"user-1","namespace":'
    b'"default","channelId":"webhook"}'
)
HEADERS = {
    "Content-Type": "application/json",
    "User-Agent": "bare/1",
    "webhook-id": "dlv_0123456789012345678901234567890123456789",
    "x-event-id": "dlv_0123456789012345678901234567890123456789",
}
WORKERS = 64
TIMEOUT_S = 8


async def post(session: aiohttp.ClientSession, url: str) -> None:
    """One."""
    async with session.post(url, data=BODY, headers=HEADERS, allow_redirects=False) as response:
        await response.read()


async def until(due_us: int) -> None:
    """Timers may wake a little early."""
    while (wait_s := due_us / 1e6 - time.time()) > 0:  # noqa: ASYNC110 - time, not an event
        await asyncio.sleep(wait_s)


async def evenly(session: aiohttp.ClientSession, given: dict[str, Any]) -> int:
    """`count` posts, `step_us` apart."""
    first_us = (time.time_ns() // 1000) + 500_000
    async with asyncio.TaskGroup() as group:
        for number in range(given["count"]):
            due_us = first_us + number * given["step_us"]
            await until(due_us)
            group.create_task(post(session, f"{given['url']}/{due_us}/{number}"), name="post")
    return int(given["count"])


async def burst(session: aiohttp.ClientSession, given: dict[str, Any]) -> int:
    """`count` posts as fast as the workers can."""
    numbers = iter(range(given["count"]))
    due_us = time.time_ns() // 1000

    async def worker() -> None:
        for number in numbers:
            await post(session, f"{given['url']}/{due_us}/{number}")

    async with asyncio.TaskGroup() as group:
        for _ in range(WORKERS):
            group.create_task(worker(), name="worker")
    return int(given["count"])


async def main() -> None:
    """One run."""
    given = arguments()
    connector = aiohttp.TCPConnector(limit=WORKERS)
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        await post(session, f"{given['url']}/warm/0")
        say("begin")
        count = await (burst if given["way"] == "burst" else evenly)(session, given)
        say("end", count=count)
        await asyncio.to_thread(input_line)


def input_line() -> None:
    """Stays until the parent has read what it cost."""
    try:
        input()
    except EOFError:
        return


if __name__ == "__main__":
    uvloop.run(main())

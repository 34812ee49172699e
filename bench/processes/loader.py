"""Creates reminders that will ring at the receiver, by one stream. Event: `created` {ids}.

Sets of {name, first_us, step_us, count, group, hosts, port}: reminder n of a set is due at
first_us + n × step_us, and rings at url/name/due in µs/n, or in turn at the hosts of a crowd.
Instants are whole ms, which is the service's resolution.
"""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import grpc
import uvloop
from tocsin.v1 import reminder_service_pb2 as pb
from tocsin.v1 import reminder_service_pb2_grpc as rpc

from bench.harness.child import arguments, say
from bench.harness.sample import USERS, request

BATCH = 100
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def requests(given: dict[str, Any]) -> Iterator[pb.CreateReminderRequest]:
    """Of all sets, one after the other."""
    for each in given["sets"]:
        for number in range(each["count"]):
            due_us = each["first_us"] + number * each["step_us"]
            base = crowd_url(each, number) if each["hosts"] else given["url"]
            url = f"{base}/{each['name']}/{due_us}/{number}"
            due = EPOCH + timedelta(microseconds=due_us)
            yield request(due, f"user-{number % USERS}", url, number, each["group"])


def crowd_url(given: dict[str, Any], number: int) -> str:
    """A host of the crowd: an address of 127.0.0.0/8."""
    high, low = divmod(number % given["hosts"], 250)
    return f"http://127.1.{high}.{low + 1}:{given['port']}"


async def main() -> None:
    """Fails if any create does."""
    given = arguments()
    made, ids = requests(given), []
    async with grpc.aio.insecure_channel(given["address"]) as channel:
        call = rpc.ReminderServiceStub(channel).StreamCreateReminders()

        async def write() -> None:
            while part := list(islice(made, BATCH)):
                await call.write(pb.BatchCreateRemindersRequest(requests=part))
            await call.done_writing()

        writing = asyncio.ensure_future(write())
        async for answer in call:
            for result in answer.results:
                if not result.HasField("created"):
                    raise RuntimeError(f"a create failed: {result.error.message}")
                ids.append(result.created.reminder.reminder_id)
        await writing
    say("created", ids=ids)


if __name__ == "__main__":
    uvloop.run(main())

"""Writes members of a group as creates do, due hours ahead, without the service in between.

Event: `written` {seconds}. Several of these share the work: each writes `count` of its own.
"""

import asyncio
import time
from itertools import islice

import uvloop

from bench.harness.child import arguments, say
from bench.harness.sample import far_reminders
from reminders.storage.settings import StorageSettings
from reminders.storage.store import CassandraStore

CALL = 20
"""Reminders of one call."""
TOGETHER = 32
"""Calls under way: the writer makes full groups of them."""


async def main() -> None:
    """Fails if any write does."""
    given = arguments()
    settings = StorageSettings(
        hosts=tuple(given["hosts"]), keyspace=given["keyspace"], shards=given["shards"]
    )
    store = await CassandraStore.connect(settings)
    made = far_reminders(given["count"], given["shards"], user=given["user"], group=given["group"])
    began = time.monotonic()

    async def write() -> None:
        while part := list(islice(made, CALL)):
            await store.records.create(part)

    async with asyncio.TaskGroup() as group:
        for number in range(TOGETHER):
            group.create_task(write(), name=f"members-{number}")
    say("written", seconds=time.monotonic() - began)
    await store.close()


if __name__ == "__main__":
    uvloop.run(main())

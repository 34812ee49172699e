"""Rows straight into the store, as fast as it takes them: what the members of a group and the
subscribers of a topic are made with.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import islice
from typing import Any, TypeVar

from bench.harness.child import arguments, say
from reminders.storage.settings import StorageSettings
from reminders.storage.store import CassandraStore

CALL = 20
"""Of one call."""
TOGETHER = 32
"""Calls under way: the writer makes full groups of them."""

T = TypeVar("T")


async def write_all(
    make: Callable[[dict[str, Any]], Iterator[T]],
    put: Callable[[CassandraStore], Callable[[list[T]], Awaitable[object]]],
) -> None:
    """What `make` makes of this process's arguments. Says `written` {seconds}; fails if any write
    does.
    """
    given = arguments()
    settings = StorageSettings(
        hosts=tuple(given["hosts"]), keyspace=given["keyspace"], shards=given["shards"]
    )
    store = await CassandraStore.connect(settings)
    made, call = make(given), put(store)
    began = time.monotonic()

    async def write() -> None:
        while part := list(islice(made, CALL)):
            await call(part)

    async with asyncio.TaskGroup() as group:
        for number in range(TOGETHER):
            group.create_task(write(), name=f"write-{number}")
    say("written", seconds=time.monotonic() - began)
    await store.close()

"""Writes subscribers of a topic, without the service in between. Event: `written` {seconds}.

Subscriber n is told at url/path/due in µs/n, and has a signing secret.
"""

import asyncio
import base64
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import uvloop

from bench.harness.child import arguments, say
from reminders.lifecycle.writing import stamp_of
from reminders.model.definition import Channel, Webhook
from reminders.model.subscriber import Secret, Subscriber
from reminders.storage.settings import StorageSettings
from reminders.storage.store import CassandraStore

CALL = 20
"""Subscribers of one call."""
TOGETHER = 32
"""Calls under way: the writer makes full groups of them."""


def subscribers(given: dict[str, Any]) -> Iterator[Subscriber]:
    """Numbered."""
    now = datetime.now(UTC)
    stamp = stamp_of(now)
    for number in range(given["count"]):
        url = f"{given['url']}/{given['path']}/{given['due_us']}/{number}"
        value = "whsec_" + base64.b64encode(number.to_bytes(24)).decode()
        yield Subscriber(
            namespace="default",
            topic_id=given["topic"],
            subscriber_id=f"s{number}",
            channel=Channel(channel_id="webhook", target=Webhook(url=url)),
            secrets=(Secret(secret_id=f"{number}", value=value, made_at=now, stamp=stamp),),
            created_at=now,
            updated_at=now,
            stamp=stamp,
        )


async def main() -> None:
    """Fails if any write does."""
    given = arguments()
    settings = StorageSettings(
        hosts=tuple(given["hosts"]), keyspace=given["keyspace"], shards=given["shards"]
    )
    store = await CassandraStore.connect(settings)
    made = subscribers(given)
    began = time.monotonic()

    async def write() -> None:
        while part := list(islice(made, CALL)):
            await store.subscribers.put(part)

    async with asyncio.TaskGroup() as group:
        for number in range(TOGETHER):
            group.create_task(write(), name=f"subscribers-{number}")
    say("written", seconds=time.monotonic() - began)
    await store.close()


if __name__ == "__main__":
    uvloop.run(main())

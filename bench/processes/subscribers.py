"""Writes subscribers of a topic, without the service in between. Event: `written` {seconds}.

Subscriber n is told at url/path/due in µs/n, and has a signing secret.
"""

import base64
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import uvloop

from bench.harness.written import write_all
from reminders.lifecycle.writing import stamp_of
from reminders.model.definition import Channel, Webhook
from reminders.model.subscriber import Secret, Subscriber


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


if __name__ == "__main__":
    uvloop.run(write_all(subscribers, lambda store: store.subscribers.put))

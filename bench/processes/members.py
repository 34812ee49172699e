"""Writes members of a group as creates do, due hours ahead, without the service in between.

Event: `written` {seconds}. Several of these share the work: each writes `count` of its own.
"""

from collections.abc import Iterator
from typing import Any

import uvloop

from bench.harness.sample import far_reminders
from bench.harness.written import write_all
from reminders.model.record import NewReminder


def members(given: dict[str, Any]) -> Iterator[NewReminder]:
    """All of one group."""
    return far_reminders(given["count"], given["shards"], user=given["user"], group=given["group"])


if __name__ == "__main__":
    uvloop.run(write_all(members, lambda store: store.records.create))

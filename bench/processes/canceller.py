"""Cancels at a steady pace and times each call; in between, the bare LWTs of a cancel.

Three kinds in turn: `far` (hours ahead: no scanner holds it), `near` (in a scanner's heap
already), `lwt` (two LWTs, one after the other, with the statements of `reminders.storage` on a
record of their own). Event: `end` {far, near, lwt: [ms, …], fired: [ids]}.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import grpc
import uvloop
from cassandra.cluster import Session
from tocsin.v1 import reminder_service_pb2 as pb
from tocsin.v1 import reminder_service_pb2_grpc as rpc

from bench.harness.child import arguments, say
from reminders.reminder_id import new_reminder_id
from reminders.storage.bridge import Bridge
from reminders.storage.session import connect
from reminders.storage.settings import StorageSettings
from reminders.storage.statements import prepare

RECORD = bytes(500)
"""About what a record and a change have."""


class Cancels:
    """Timed calls of each kind."""

    def __init__(self, stub: Any, bridge: Bridge, session: Session) -> None:
        self._stub = stub
        self._bridge = bridge
        self._prepared = prepare(session)
        self.fired: list[str] = []

    async def cancel(self, reminder_id: str) -> None:
        """By the service."""
        answer = await self._stub.CancelReminder(pb.CancelReminderRequest(reminder_id=reminder_id))
        if answer.was_fired:
            self.fired.append(reminder_id)

    async def make_record(self) -> str:
        """For `lwts`."""
        reminder_id = new_reminder_id()
        create = self._prepared["record_create_bare"]
        stamp = (time.time_ns() // 1000) - 60_000_000
        await self._bridge.run(create.bind(reminder_id, 1, RECORD, stamp, 0))
        return reminder_id

    async def lwts(self, reminder_id: str) -> None:
        """The two of a change."""
        begin, end = self._prepared["change_begin"], self._prepared["change_end"]
        bound = begin.bind(0, 2, RECORD, "change", RECORD, reminder_id, 1)
        ((applied, *_),) = await self._bridge.run(bound)
        assert applied, "begin"
        ((applied, *_),) = await self._bridge.run(end.bind(0, 2, RECORD, reminder_id, 2, "change"))
        assert applied, "end"


async def paced(
    given: dict[str, Any], kinds: dict[str, tuple[list[str], Callable[[str], Awaitable[None]]]]
) -> dict[str, list[float]]:
    """One of each kind every `every_s`, evenly apart, however long they take."""
    timed: dict[str, list[float]] = {kind: [] for kind in kinds}

    async def one(kind: str, reminder_id: str) -> None:
        started = time.perf_counter()
        await kinds[kind][1](reminder_id)
        timed[kind].append((time.perf_counter() - started) * 1000)

    begun, steps = time.monotonic(), count(1)
    async with asyncio.TaskGroup() as group:
        for together in zip(*(ids for ids, _ in kinds.values()), strict=False):
            for kind, reminder_id in zip(kinds, together, strict=True):
                group.create_task(one(kind, reminder_id), name=kind)
                at = begun + next(steps) * given["every_s"] / len(kinds)
                await asyncio.sleep(max(0.0, at - time.monotonic()))
    return timed


async def main() -> None:
    """One run."""
    given = arguments()
    settings = StorageSettings(
        hosts=tuple(given["hosts"]), keyspace=given["keyspace"], shards=given["shards"]
    )
    cluster, session = await asyncio.to_thread(connect, settings, settings.keyspace)
    async with grpc.aio.insecure_channel(given["address"]) as channel:
        cancels = Cancels(rpc.ReminderServiceStub(channel), Bridge(session), session)
        records = [await cancels.make_record() for _ in given["far"]]
        for warm in range(5):
            await cancels.lwts(records[warm])
            await cancels.cancel(given["far"][warm])
        say("ready")
        await asyncio.to_thread(input)
        timed = await paced(
            given,
            {
                "far": (given["far"][5:], cancels.cancel),
                "near": (given["near"][5:], cancels.cancel),
                "lwt": (records[5:], cancels.lwts),
            },
        )
        for reminder_id in given["near"][:5]:
            await cancels.cancel(reminder_id)
    say("end", fired=cancels.fired, **timed)
    await asyncio.to_thread(cluster.shutdown)


if __name__ == "__main__":
    uvloop.run(main())

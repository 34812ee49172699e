"""Streams creates in and honours flow control; what failed for now is sent again, later.

Reminder n is due at first_us + n × step_us. Ids go into a file as they are acknowledged, one a
line. Events: `half` when half of them are acknowledged, `end` {acknowledged, again, seconds}.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import grpc
import uvloop
from tocsin.v1 import reminder_service_pb2 as pb
from tocsin.v1 import reminder_service_pb2_grpc as rpc

from bench.harness.child import arguments, say
from bench.harness.sample import FAR_URL, USERS, request

BATCH = 100
AGAIN_S = 1.0
UNAVAILABLE = grpc.StatusCode.UNAVAILABLE.value[0]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Flood:
    """What is still to be acknowledged."""

    def __init__(self, given: dict[str, Any], ids: TextIO) -> None:
        self._given = given
        self._ids = ids
        self._fresh = iter(range(given["count"]))
        self._again: deque[tuple[float, list[int]]] = deque()
        self._under_way: dict[int, list[int]] = {}
        self._batch_number = 0
        self.acknowledged = 0
        self.repeated = 0

    async def batches(self) -> AsyncIterator[pb.BatchCreateRemindersRequest]:
        """Until all are acknowledged."""
        while self.acknowledged < self._given["count"]:
            numbers = self._next()
            if not numbers:
                await asyncio.sleep(0.01)
                continue
            self._batch_number += 1
            self._under_way[self._batch_number] = numbers
            yield pb.BatchCreateRemindersRequest(
                requests=[self._request(number) for number in numbers],
                batch_number=self._batch_number,
            )

    def _next(self) -> list[int]:
        if self._again and self._again[0][0] <= time.monotonic():
            return self._again.popleft()[1]
        return list(islice(self._fresh, BATCH))

    def _request(self, number: int) -> pb.CreateReminderRequest:
        due_us = self._given["first_us"] + number * self._given["step_us"]
        due = EPOCH + timedelta(microseconds=due_us)
        return request(due, f"flood-{number % USERS}", FAR_URL, number)

    def answered(self, answer: pb.BatchCreateRemindersResponse) -> None:
        """Keeps the ids, and what is to be sent again."""
        failed = []
        numbers = self._under_way.pop(answer.batch_number)
        for number, result in zip(numbers, answer.results, strict=True):
            if result.HasField("created"):
                self._ids.write(result.created.reminder.reminder_id + "\n")
                self.acknowledged += 1
                if self.acknowledged == self._given["count"] // 2:
                    say("half")
            elif result.error.code == UNAVAILABLE:
                failed.append(number)
            else:
                raise RuntimeError(result.error.message)
        if failed:
            self.repeated += len(failed)
            self._again.append((time.monotonic() + AGAIN_S, failed))


async def stream(flood: Flood, address: str) -> None:
    """One stream, to the end of the flood."""
    started = time.monotonic()
    async with grpc.aio.insecure_channel(address) as channel:
        call = rpc.ReminderServiceStub(channel).StreamCreateReminders(flood.batches())
        async for answer in call:
            flood.answered(answer)
    say(
        "end",
        acknowledged=flood.acknowledged,
        again=flood.repeated,
        seconds=time.monotonic() - started,
    )


if __name__ == "__main__":
    given = arguments()
    with Path(given["ids"]).open("w") as file:
        uvloop.run(stream(Flood(given, file), given["address"]))

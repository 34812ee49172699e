"""The three create calls: admission, validation, the use case, and what is answered."""

import asyncio
from collections import Counter
from collections.abc import Iterable

from opentelemetry.metrics import CallbackOptions, Meter, Observation
from tocsin.v1 import reminder_service_pb2 as pb

from reminders.errors import InvalidRequest, TocsinError
from reminders.lifecycle import Created, CreateRequest, Reminders
from reminders.ports import Clock
from scheduler.admission import Admission, Overloaded
from scheduler.errors import status_of
from scheduler.lookups import Lookups
from scheduler.mapping.reminders import put_decisions, put_reminder
from scheduler.settings import SchedulerSettings
from scheduler.stream import OpenStreams, Read, Write
from scheduler.validation import Validator

AT_ONCE = 50
"""Requests of a batch that are worked on before other calls get a turn: about 2 ms."""

Result = Created | TocsinError


class Creates:
    """One for a process. Raises `TocsinError`s."""

    def __init__(
        self,
        reminders: Reminders,
        clock: Clock,
        validator: Validator,
        settings: SchedulerSettings,
        meter: Meter,
    ) -> None:
        self._reminders = reminders
        self._clock = clock
        self._validator = validator
        self._lookups = Lookups(reminders, validator)
        creates, size = settings.max_creates // 2, settings.max_create_bytes // 2
        self._calls = Admission(creates=creates, size=size)
        self._streams = Admission(creates=creates, size=size)
        self._open = OpenStreams(self._streamed, self._streams, settings.stream_window)
        self._outcomes: Counter[str] = Counter()
        meter.create_observable_counter(
            "tocsin.scheduler.creates",
            callbacks=[self._observe_outcomes],
            description="Creates asked for, by what became of them.",
        )
        meter.create_observable_gauge(
            "tocsin.scheduler.creates_under_way",
            callbacks=[self._observe_under_way],
            description="Creates being answered, by how they came.",
        )

    async def one(self, request: pb.CreateReminderRequest) -> pb.CreateReminderResponse:
        """Answers the complete reminder. Refused where too many are under way."""
        size = request.ByteSize()
        if not self._calls.try_enter(1, size):
            raise Overloaded(operation="create")
        try:
            result = await self._one(request)
        finally:
            self._calls.leave(1, size)
        self._outcomes[_outcome(result)] += 1
        if isinstance(result, TocsinError):
            raise result
        response = pb.CreateReminderResponse(deduplicated=result.deduplicated)
        put_reminder(response.reminder, result.view, request.reminder.params)
        return response

    async def batch(
        self, request: pb.BatchCreateRemindersRequest
    ) -> pb.BatchCreateRemindersResponse:
        """A result for each. Refused as a whole where too many are under way."""
        self._validator.batch(request)
        creates, size = len(request.requests), request.ByteSize()
        if not self._calls.try_enter(creates, size):
            raise Overloaded(operation="create")
        try:
            return await self._batch(request)
        finally:
            self._calls.leave(creates, size)

    async def stream(
        self,
        read: Read[pb.BatchCreateRemindersRequest],
        write: Write[pb.BatchCreateRemindersResponse],
    ) -> None:
        """Batches until `read` gives None; waits where too many are under way."""
        await self._open.run(read, write)

    def drain(self) -> None:
        """Ends streams after the batches that they have read; other calls go on."""
        self._open.drain()

    async def _one(self, request: pb.CreateReminderRequest) -> Result:
        now = self._clock.now()
        try:
            asked = self._validator.create(request, now)
        except InvalidRequest as error:
            (again,) = await self._lookups.completed((request,), (error,), now)
            if isinstance(again, TocsinError):
                return again
            asked = again
        (result,) = await self._reminders.create((asked,))
        return result

    async def _streamed(
        self, request: pb.BatchCreateRemindersRequest
    ) -> pb.BatchCreateRemindersResponse:
        self._validator.batch(request)
        return await self._batch(request)

    async def _batch(
        self, request: pb.BatchCreateRemindersRequest
    ) -> pb.BatchCreateRemindersResponse:
        now = self._clock.now()
        first: list[CreateRequest | InvalidRequest] = []
        for position, one in enumerate(request.requests, start=1):
            try:
                first.append(self._validator.create(one, now))
            except InvalidRequest as error:
                first.append(error)
            if position % AT_ONCE == 0:
                await asyncio.sleep(0)
        read = await self._lookups.completed(request.requests, first, now)
        asked = [one for one in read if isinstance(one, CreateRequest)]
        created = iter(await self._reminders.create(asked) if asked else ())
        results = [one if isinstance(one, TocsinError) else next(created) for one in read]
        response = pb.BatchCreateRemindersResponse(batch_number=request.batch_number)
        for position, result in enumerate(results, start=1):
            _put_result(response.results.add(), result)
            if position % AT_ONCE == 0:
                await asyncio.sleep(0)
        self._outcomes.update(map(_outcome, results))
        return response

    def _observe_outcomes(self, options: CallbackOptions) -> Iterable[Observation]:
        """Counted here and read by the exporter: an instrument's `add` costs 5 µs a create."""
        del options
        for outcome, count in tuple(self._outcomes.items()):
            yield Observation(count, {"outcome": outcome})

    def _observe_under_way(self, options: CallbackOptions) -> Iterable[Observation]:
        del options
        yield Observation(self._calls.creates, {"kind": "call"})
        yield Observation(self._streams.creates, {"kind": "stream"})


def _put_result(message: pb.CreateResult, result: Result) -> None:
    """In a batch the caller's own part is not sent back.

    So an answer stays far below the 4 MiB that clients take unless told otherwise.
    """
    if isinstance(result, TocsinError):
        message.error.CopyFrom(status_of(result))
        return
    message.created.deduplicated = result.deduplicated
    put_decisions(message.created.reminder, result.view)


def _outcome(result: Result) -> str:
    if isinstance(result, TocsinError):
        return result.reason
    return "deduplicated" if result.deduplicated else "created"

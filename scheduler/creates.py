"""The three create calls: admission, validation, the use case, and what is answered."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial

from opentelemetry.metrics import CallbackOptions, Meter, Observation
from tocsin.v1 import reminder_service_pb2 as pb

from reminders.errors import InvalidRequest, TocsinError
from reminders.incidents import unexpected
from reminders.lifecycle import Created, CreateRequest, Reminders
from reminders.ports import Clock
from scheduler.admission import Admission, Overloaded
from scheduler.errors import status_of
from scheduler.gathering import Gathering
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
        self._plain = Gathering(self._together)
        self._keyed = Gathering(self._together)
        """Their keys are arbitrated first; the others need not wait for that."""
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
        leave = partial(self._calls.leave, 1, size)
        if not request.reminder.schedule.HasField("recurrence"):
            keyed = request.request_id or request.reminder.dedup_key
            return await (self._keyed if keyed else self._plain)(request, leave)
        try:  # planning may take long
            (answer,) = await self._together((request,))
        finally:
            leave()
        if isinstance(answer, Exception):
            raise answer
        return answer

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

    async def _together(
        self, requests: Sequence[pb.CreateReminderRequest]
    ) -> list[pb.CreateReminderResponse | Exception]:
        """Of calls of their own."""
        answers: list[pb.CreateReminderResponse | Exception] = []
        for request, result in zip(requests, await self._results(requests), strict=True):
            try:
                answers.append(
                    result if isinstance(result, TocsinError) else _answer(request, result)
                )
            except Exception as error:  # noqa: BLE001 - raised in its own call
                answers.append(error)
        return answers

    async def _streamed(
        self, request: pb.BatchCreateRemindersRequest
    ) -> pb.BatchCreateRemindersResponse:
        self._validator.batch(request)
        return await self._batch(request)

    async def _batch(
        self, request: pb.BatchCreateRemindersRequest
    ) -> pb.BatchCreateRemindersResponse:
        response = pb.BatchCreateRemindersResponse(batch_number=request.batch_number)
        results = await self._results(request.requests)
        for position, result in enumerate(results, start=1):
            _put_result(response.results.add(), result)
            if position % AT_ONCE == 0:
                await asyncio.sleep(0)
        return response

    async def _results(self, requests: Sequence[pb.CreateReminderRequest]) -> list[Result]:
        now = self._clock.now()
        first: list[CreateRequest | TocsinError] = []
        for position, one in enumerate(requests, start=1):
            try:
                first.append(self._validator.create(one, now))
            except InvalidRequest as error:
                first.append(error)
            except Exception as error:  # noqa: BLE001 - a bug; it is not the others'
                first.append(unexpected("read a create", error))
            if position % AT_ONCE == 0:
                await asyncio.sleep(0)
        read = await self._lookups.completed(requests, first, now)
        asked = [one for one in read if isinstance(one, CreateRequest)]
        created = iter(await self._reminders.create(asked) if asked else ())
        results = [one if isinstance(one, TocsinError) else next(created) for one in read]
        self._outcomes.update(map(_outcome, results))
        return results

    def _observe_outcomes(self, options: CallbackOptions) -> Iterable[Observation]:
        """Counted here and read by the exporter: an instrument's `add` costs 5 µs a create."""
        del options
        for outcome, count in tuple(self._outcomes.items()):
            yield Observation(count, {"outcome": outcome})

    def _observe_under_way(self, options: CallbackOptions) -> Iterable[Observation]:
        del options
        yield Observation(self._calls.creates, {"kind": "call"})
        yield Observation(self._streams.creates, {"kind": "stream"})


def _answer(request: pb.CreateReminderRequest, made: Created) -> pb.CreateReminderResponse:
    """The complete reminder."""
    response = pb.CreateReminderResponse(deduplicated=made.deduplicated)
    put_reminder(response.reminder, made.view, request.reminder.params)
    return response


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

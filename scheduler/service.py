"""The RPCs: read the request, call the use case, map the answer.

Errors are raised as they are; `calls` sends them.
"""

# ruff: noqa: N802, D102  names and descriptions are the proto's

from functools import partial
from typing import Any

import grpc
from opentelemetry.metrics import Meter
from tocsin.v1 import reminder_pb2 as pb
from tocsin.v1 import reminder_service_pb2 as service_pb
from tocsin.v1 import reminder_service_pb2_grpc as service_grpc

from reminders.errors import InvalidRequest
from reminders.lifecycle import Reminders
from reminders.ports import Clock
from scheduler.calls import refuse_unreadable
from scheduler.creates import Creates
from scheduler.lookups import Lookups
from scheduler.mapping.definitions import put_instant
from scheduler.mapping.explanations import put_explanation
from scheduler.mapping.ledger import put_delivery, put_fate, put_occurrence_view
from scheduler.mapping.reminders import put_reminder
from scheduler.mapping.replays import put_replayed
from scheduler.previews import Previews
from scheduler.settings import SchedulerSettings
from scheduler.tokens import seal
from scheduler.updates import Edit
from scheduler.validation import Validator
from scheduler.validation.requests import not_under

Context = grpc.aio.ServicerContext[Any, Any]


class ReminderService(service_grpc.ReminderServiceServicer):
    """One for a process. The methods are described in the proto."""

    def __init__(
        self, reminders: Reminders, clock: Clock, settings: SchedulerSettings, meter: Meter
    ) -> None:
        self._reminders = reminders
        self._clock = clock
        self._validator = Validator(
            allow_loopback_http=settings.allow_loopback_http,
            limits=settings.limits,
            channels=settings.channels,
        )
        self._creates = Creates(reminders, clock, self._validator, settings, meter)
        self._previews = Previews(clock, self._validator)
        self._lookups = Lookups(reminders, self._validator)

    def drain(self) -> None:
        """Ends streams after the batches that they have read; other calls go on."""
        self._creates.drain()

    async def CreateReminder(
        self, request: service_pb.CreateReminderRequest, context: Context
    ) -> service_pb.CreateReminderResponse:
        del context
        return await self._creates.one(request)

    async def BatchCreateReminders(
        self, request: service_pb.BatchCreateRemindersRequest, context: Context
    ) -> service_pb.BatchCreateRemindersResponse:
        del context
        return await self._creates.batch(request)

    async def StreamCreateReminders(  # type: ignore[override]
        self, request_iterator: object, context: Context
    ) -> None:
        """Reads and writes by the context: an answer must not wait for the next request."""
        del request_iterator

        async def read() -> service_pb.BatchCreateRemindersRequest | None:
            batch = await context.read()
            refuse_unreadable(batch)
            return None if batch is grpc.aio.EOF else batch

        await self._creates.stream(read, context.write)

    async def GetReminder(
        self, request: service_pb.GetReminderRequest, context: Context
    ) -> pb.Reminder:
        del context
        name = self._validator.get(request)
        response = pb.Reminder()
        put_reminder(response, await self._reminders.get(name.namespace, name.reminder_id))
        return response

    async def ListReminders(
        self, request: service_pb.ListRemindersRequest, context: Context
    ) -> service_pb.ListRemindersResponse:
        del context
        namespace, audience, window = self._validator.list_reminders(request)
        page, total, capped = await self._reminders.pending(
            namespace, audience, limit=window.limit, token=window.position
        )
        response = service_pb.ListRemindersResponse(
            next_page_token=seal(page.next_token, *window.scope),
            total_size=total,
            total_size_capped=capped,
        )
        for view in page.items:
            put_reminder(response.reminders.add(), view)
        return response

    async def CancelReminder(
        self, request: service_pb.CancelReminderRequest, context: Context
    ) -> service_pb.CancelReminderResponse:
        del context
        asked = self._validator.cancel(request)
        changed = await self._reminders.cancel(
            asked.name.namespace,
            asked.name.reminder_id,
            expected_version=asked.expected_version,
            request_id=asked.request_id,
        )
        response = service_pb.CancelReminderResponse(
            was_fired=changed.was_fired, deliveries_stopped=changed.stopped
        )
        put_reminder(response.reminder, changed.view)
        for answer in changed.answers:
            put_fate(response.occurrences.add(), answer)
        return response

    async def RescheduleReminder(
        self, request: service_pb.RescheduleReminderRequest, context: Context
    ) -> service_pb.RescheduleReminderResponse:
        del context
        now = self._clock.now()
        try:
            asked = self._validator.reschedule(request, now)
        except InvalidRequest:
            zone = await self._lookups.zone_for(request)
            if not zone:
                raise
            asked = self._validator.reschedule(request, now, zone=zone)
        assert asked.schedule is not None
        try:
            changed = await self._reminders.reschedule(
                asked.name.namespace,
                asked.name.reminder_id,
                asked.schedule,
                expected_version=asked.expected_version,
                request_id=asked.request_id,
            )
        except InvalidRequest as error:
            raise not_under("reminder.", error) from error
        response = service_pb.RescheduleReminderResponse(was_fired=changed.was_fired)
        put_reminder(response.reminder, changed.view)
        return response

    async def UpdateReminder(
        self, request: service_pb.UpdateReminderRequest, context: Context
    ) -> service_pb.UpdateReminderResponse:
        del context
        asked = self._validator.update(request)
        edit = Edit(request.reminder, asked.paths, self._clock.now(), self._validator)
        update = partial(
            self._reminders.update,
            asked.call,
            edit,
            content=edit.content,
            reschedules=edit.reschedules,
        )
        try:
            changed = await update()
        except InvalidRequest:
            if edit.wanted is None:
                raise
            edit.lean_on(await self._lookups.of(edit.wanted))
            changed = await update()
        response = service_pb.UpdateReminderResponse(was_fired=changed.was_fired)
        put_reminder(response.reminder, changed.view)
        for answer in changed.answers:
            put_fate(response.occurrences.add(), answer)
        return response

    async def PauseReminder(
        self, request: service_pb.PauseReminderRequest, context: Context
    ) -> service_pb.PauseReminderResponse:
        del context
        changed = await self._reminders.pause(self._validator.pause(request).call, request.reason)
        response = service_pb.PauseReminderResponse(was_fired=changed.was_fired)
        put_reminder(response.reminder, changed.view)
        for answer in changed.answers:
            put_fate(response.occurrences.add(), answer)
        return response

    async def ResumeReminder(
        self, request: service_pb.ResumeReminderRequest, context: Context
    ) -> service_pb.ResumeReminderResponse:
        del context
        response = service_pb.ResumeReminderResponse()
        changed = await self._reminders.resume(self._validator.resume(request).call)
        put_reminder(response.reminder, changed.view)
        return response

    async def PreviewOccurrences(
        self, request: service_pb.PreviewOccurrencesRequest, context: Context
    ) -> service_pb.PreviewOccurrencesResponse:
        del context
        return await self._previews.answer(request)

    async def CancelGroup(
        self, request: service_pb.CancelGroupRequest, context: Context
    ) -> service_pb.CancelGroupResponse:
        del context
        cancelled_at = await self._reminders.cancel_group(*self._validator.cancel_group(request))
        response = service_pb.CancelGroupResponse()
        put_instant(response.cancel_time, cancelled_at)
        return response

    async def TriggerReminder(
        self, request: service_pb.TriggerReminderRequest, context: Context
    ) -> service_pb.TriggerReminderResponse:
        del context
        name, request_id = self._validator.trigger(request)
        view = await self._reminders.trigger(
            name.namespace, name.reminder_id, request_id=request_id
        )
        response = service_pb.TriggerReminderResponse()
        put_occurrence_view(response.occurrence, view)
        return response

    async def BackfillReminder(
        self, request: service_pb.BackfillReminderRequest, context: Context
    ) -> service_pb.BackfillReminderResponse:
        del context
        name, asked, request_id = self._validator.backfill(request, self._clock.now())
        found = await self._reminders.backfill(
            name.namespace,
            name.reminder_id,
            start=asked.start,
            end=asked.end,
            validate_only=request.validate_only,
            request_id=request_id,
        )
        response = service_pb.BackfillReminderResponse(
            occurrence_count=found.count, occurrence_count_capped=found.capped
        )
        for view in found.first:
            put_occurrence_view(response.occurrences.add(), view)
        return response

    async def ListOccurrences(
        self, request: service_pb.ListOccurrencesRequest, context: Context
    ) -> service_pb.ListOccurrencesResponse:
        del context
        name, window = self._validator.list_occurrences(request)
        page = await self._reminders.occurrences(
            name.namespace, name.reminder_id, limit=window.limit, token=window.position
        )
        token = seal(page.next_token, *window.scope)
        response = service_pb.ListOccurrencesResponse(next_page_token=token)
        for view in page.items:
            put_occurrence_view(response.occurrences.add(), view)
        return response

    async def ReplayOccurrence(
        self, request: service_pb.ReplayOccurrenceRequest, context: Context
    ) -> service_pb.ReplayOccurrenceResponse:
        del context
        name, asked, request_id = self._validator.replay(request)
        found = await self._reminders.replay(
            name.namespace, name.reminder_id, asked, request_id=request_id
        )
        response = service_pb.ReplayOccurrenceResponse()
        put_replayed(response, found)
        return response

    async def ExplainReminder(
        self, request: service_pb.ExplainReminderRequest, context: Context
    ) -> service_pb.ExplainReminderResponse:
        del context
        name, limit = self._validator.explain(request)
        found = await self._reminders.explain(name.namespace, name.reminder_id, limit=limit)
        response = service_pb.ExplainReminderResponse()
        put_explanation(response, found)
        return response

    async def ListDeliveries(
        self, request: service_pb.ListDeliveriesRequest, context: Context
    ) -> service_pb.ListDeliveriesResponse:
        del context
        name, wanted, window = self._validator.list_deliveries(request)
        page = await self._reminders.deliveries(
            name.namespace, name.reminder_id, wanted, limit=window.limit, token=window.position
        )
        token = seal(page.next_token, *window.scope)
        response = service_pb.ListDeliveriesResponse(next_page_token=token)
        for row in page.items:
            put_delivery(response.deliveries.add(), row)
        return response

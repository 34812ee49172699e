"""RecipientService: read the request, call the use case, map the answer."""

# ruff: noqa: N802, D102  names and descriptions are the proto's

from typing import Any

import grpc
from tocsin.v1 import recipient_service_pb2 as pb
from tocsin.v1 import recipient_service_pb2_grpc as service_grpc

from reminders.lifecycle import Reminders
from reminders.lifecycle.problems import Problems
from reminders.ports import Clock
from scheduler.mapping.recipients import recipient_message
from scheduler.validation.recipients import read_put, read_user

Context = grpc.aio.ServicerContext[Any, Any]


class RecipientService(service_grpc.RecipientServiceServicer):
    """One for a process. The methods are described in the proto."""

    def __init__(self, reminders: Reminders, clock: Clock) -> None:
        self._reminders = reminders
        self._clock = clock

    async def PutRecipient(self, request: pb.PutRecipientRequest, context: Context) -> pb.Recipient:
        del context
        problems = Problems()
        user, asked = read_put(request, self._clock.now(), problems)
        problems.raise_if_any()
        recipients = self._reminders.recipients
        stands = await recipients.put(asked, expected_version=user.expected_version)
        return recipient_message(stands)

    async def GetRecipient(self, request: pb.GetRecipientRequest, context: Context) -> pb.Recipient:
        del context
        problems = Problems()
        user = read_user(request, problems)
        problems.raise_if_any()
        return recipient_message(await self._reminders.recipients.get(user.namespace, user.user_id))

    async def DeleteRecipient(
        self, request: pb.DeleteRecipientRequest, context: Context
    ) -> pb.DeleteRecipientResponse:
        del context
        problems = Problems()
        user = read_user(request, problems, etag=request.etag)
        problems.raise_if_any()
        await self._reminders.recipients.delete(
            user.namespace, user.user_id, expected_version=user.expected_version
        )
        return pb.DeleteRecipientResponse()

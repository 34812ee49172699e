"""TopicService: read the request, call the use case, map the answer."""

# ruff: noqa: N802, D102  names and descriptions are the proto's

import asyncio
from collections.abc import Sequence
from typing import Any

import grpc
from tocsin.v1 import topic_service_pb2 as pb
from tocsin.v1 import topic_service_pb2_grpc as service_grpc

from reminders.errors import InvalidRequest, TocsinError
from reminders.lifecycle import Reminders
from reminders.lifecycle.problems import Problems, optional
from reminders.lifecycle.subscriber_puts import Asked, Put
from reminders.ports import Clock
from scheduler.admission import Admission, Overloaded
from scheduler.calls import refuse_unreadable
from scheduler.mapping.topics import (
    put_message,
    put_result,
    put_subscriber,
    rotated_message,
    subscriber_message,
    tried_message,
)
from scheduler.settings import SchedulerSettings
from scheduler.stream import OpenStreams
from scheduler.tokens import seal
from scheduler.validation.batches import check_batch
from scheduler.validation.deployment import Deployment
from scheduler.validation.reminders import ID_BYTES
from scheduler.validation.topics import (
    Named,
    Naming,
    read_list,
    read_named,
    read_overlap,
    read_secret,
    read_subscriber,
    read_trial,
)

AT_ONCE = 50
"""Requests of a batch that are read before other calls get a turn."""

Context = grpc.aio.ServicerContext[Any, Any]


class TopicService(service_grpc.TopicServiceServicer):
    """One for a process. The methods are described in the proto."""

    def __init__(self, reminders: Reminders, clock: Clock, settings: SchedulerSettings) -> None:
        self._reminders = reminders
        self._clock = clock
        self._deployment = Deployment(
            allow_loopback_http=settings.allow_loopback_http,
            limits=settings.limits,
            channels=settings.channels,
        )
        puts, size = settings.max_creates // 2, settings.max_create_bytes // 2
        self._calls = Admission(creates=puts, size=size)
        self._streams = Admission(creates=puts, size=size)
        self._open = OpenStreams(self._batch, self._streams, settings.stream_window)

    def drain(self) -> None:
        """Ends streams after the batches that they have read; other calls go on."""
        self._open.drain()

    async def PutSubscriber(
        self, request: pb.PutSubscriberRequest, context: Context
    ) -> pb.PutSubscriberResponse:
        del context
        size = request.ByteSize()
        if not self._calls.try_enter(1, size):
            raise Overloaded(operation="put a subscriber")
        try:
            (result,) = await self._put((request,))
        finally:
            self._calls.leave(1, size)
        if isinstance(result, TocsinError):
            raise result
        return put_message(result, self._clock.now())

    async def StreamSubscribers(  # type: ignore[override]
        self, request_iterator: object, context: Context
    ) -> None:
        """Reads and writes by the context: an answer must not wait for the next request."""
        del request_iterator

        async def read() -> pb.PutSubscribersRequest | None:
            batch = await context.read()
            refuse_unreadable(batch)
            return None if batch is grpc.aio.EOF else batch

        await self._open.run(read, context.write)

    async def GetSubscriber(
        self, request: pb.GetSubscriberRequest, context: Context
    ) -> pb.Subscriber:
        del context
        named = _named(request)
        found = await self._reminders.subscribing.get(*named.parts)
        return subscriber_message(found, self._clock.now())

    async def ListSubscribers(
        self, request: pb.ListSubscribersRequest, context: Context
    ) -> pb.ListSubscribersResponse:
        del context
        asked = read_list(request)
        page = await self._reminders.subscribing.page(
            asked.namespace,
            asked.topic_id,
            labels=asked.labels,
            paused=asked.paused,
            limit=asked.window.limit,
            position=asked.window.position,
        )
        token = seal(page.next_token, *asked.window.scope)
        response = pb.ListSubscribersResponse(next_page_token=token)
        now = self._clock.now()
        for one in page.items:
            put_subscriber(response.subscribers.add(), one, now)
        return response

    async def DeleteSubscriber(
        self, request: pb.DeleteSubscriberRequest, context: Context
    ) -> pb.DeleteSubscriberResponse:
        del context
        named = _named(request)
        deleted = await self._reminders.subscribing.delete(*named.parts)
        return pb.DeleteSubscriberResponse(deleted=deleted)

    async def PauseSubscriber(
        self, request: pb.PauseSubscriberRequest, context: Context
    ) -> pb.Subscriber:
        del context
        return await self._set_paused(request, paused=True)

    async def ResumeSubscriber(
        self, request: pb.ResumeSubscriberRequest, context: Context
    ) -> pb.Subscriber:
        del context
        return await self._set_paused(request, paused=False)

    async def _set_paused(
        self, request: pb.PauseSubscriberRequest | pb.ResumeSubscriberRequest, *, paused: bool
    ) -> pb.Subscriber:
        named = _named(request)
        found = await self._reminders.subscribing.set_paused(*named.parts, paused=paused)
        return subscriber_message(found, self._clock.now())

    async def RotateSecret(
        self, request: pb.RotateSecretRequest, context: Context
    ) -> pb.RotateSecretResponse:
        del context
        problems = Problems()
        named = read_named(request, problems)
        overlap = read_overlap(request, problems)
        secret = read_secret(request.secret, problems)
        request_id = optional(request.request_id, ID_BYTES, "request_id", problems)
        problems.raise_if_any()
        rotated = await self._reminders.subscribing.rotate(
            *named.parts, overlap=overlap, secret=secret, request_id=request_id
        )
        return rotated_message(rotated, self._clock.now())

    async def SendTest(self, request: pb.SendTestRequest, context: Context) -> pb.SendTestResponse:
        del context
        return tried_message(await self._reminders.trials.send(read_trial(request)))

    async def _batch(self, request: pb.PutSubscribersRequest) -> pb.PutSubscribersResponse:
        check_batch(request.requests)
        response = pb.PutSubscribersResponse(batch_number=request.batch_number)
        for result in await self._put(request.requests):
            put_result(response.results.add(), result)
        return response

    async def _put(self, requests: Sequence[pb.PutSubscriberRequest]) -> list[Put | TocsinError]:
        """A result for each, in order."""
        read: list[Asked | InvalidRequest] = []
        for position, request in enumerate(requests, start=1):
            try:
                read.append(read_subscriber(request, self._deployment))
            except InvalidRequest as error:
                read.append(error)
            if position % AT_ONCE == 0:
                await asyncio.sleep(0)
        asked = [one for one in read if isinstance(one, Asked)]
        put = iter(await self._reminders.subscribing.put(asked) if asked else ())
        return [one if isinstance(one, InvalidRequest) else next(put) for one in read]


def _named(request: Naming) -> Named:
    problems = Problems()
    named = read_named(request, problems)
    problems.raise_if_any()
    return named

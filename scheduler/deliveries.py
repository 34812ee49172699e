"""DeliveryService: read the request, call the use case, map the answer."""

# ruff: noqa: N802, D102  names and descriptions are the proto's

from typing import Any

import grpc
from msgspec.structs import replace
from tocsin.v1 import delivery_service_pb2 as pb
from tocsin.v1 import delivery_service_pb2_grpc as service_grpc

from reminders.lifecycle import Reminders
from reminders.lifecycle.endpoints import KNOWN_WITHIN, Named
from reminders.lifecycle.problems import Problems
from reminders.ports import Clock
from scheduler.mapping.deliveries import put_counts, put_ended, put_endpoint
from scheduler.tokens import seal
from scheduler.validation.deliveries import (
    Naming,
    position_of,
    read_ended,
    read_endpoint,
    read_endpoints,
    read_recovery,
    read_redrive,
)

Context = grpc.aio.ServicerContext[Any, Any]


class DeliveryService(service_grpc.DeliveryServiceServicer):
    """One for a process. The methods are described in the proto."""

    def __init__(self, reminders: Reminders, clock: Clock) -> None:
        self._reminders = reminders
        self._clock = clock

    async def ListEndedDeliveries(
        self, request: pb.ListEndedDeliveriesRequest, context: Context
    ) -> pb.ListEndedDeliveriesResponse:
        del context
        problems = Problems()
        asked = read_ended(request, self._clock.now(), problems)
        problems.raise_if_any()
        views, following = await self._reminders.redrives.listed(
            asked.wanted, after=asked.after, limit=asked.window.limit
        )
        token = seal(position_of(following), *asked.window.scope)
        response = pb.ListEndedDeliveriesResponse(next_page_token=token)
        for view in views:
            put_ended(response.deliveries.add(), view)
        return response

    async def RedriveDeliveries(
        self, request: pb.RedriveDeliveriesRequest, context: Context
    ) -> pb.RedriveDeliveriesResponse:
        del context
        problems = Problems()
        asked = read_ended(request, self._clock.now(), problems)
        call = read_redrive(request, asked, problems)
        problems.raise_if_any()
        came = await self._reminders.redrives.redrive(asked.wanted, call)
        token = seal(position_of(came.following), *asked.window.scope)
        response = pb.RedriveDeliveriesResponse(next_page_token=token)
        put_counts(response.counts, came.counts)
        return response

    async def GetEndpoint(self, request: pb.GetEndpointRequest, context: Context) -> pb.Endpoint:
        del context
        response = pb.Endpoint()
        put_endpoint(response, await self._reminders.endpoints.get(_named(request)))
        return response

    async def ListEndpoints(
        self, request: pb.ListEndpointsRequest, context: Context
    ) -> pb.ListEndpointsResponse:
        del context
        problems = Problems()
        namespace, window, after = read_endpoints(request, problems)
        problems.raise_if_any()
        found, following = await self._reminders.endpoints.troubled(
            namespace, disabled_only=request.disabled_only, after=after, limit=window.limit
        )
        token = seal(position_of(following), *window.scope)
        response = pb.ListEndpointsResponse(next_page_token=token)
        for endpoint in found:
            put_endpoint(response.endpoints.add(), endpoint)
        return response

    async def EnableEndpoint(
        self, request: pb.EnableEndpointRequest, context: Context
    ) -> pb.EnableEndpointResponse:
        del context
        now = self._clock.now()
        problems = Problems()
        named = read_endpoint(request, problems)
        wanted, call, window = read_recovery(request, named, now, problems)
        problems.raise_if_any()
        response = pb.EnableEndpointResponse()
        put_endpoint(response.endpoint, await self._reminders.endpoints.enable(named))
        if wanted is not None:
            call = replace(call, wait=KNOWN_WITHIN)
            came = await self._reminders.redrives.redrive(wanted, call)
            put_counts(response.counts, came.counts)
            response.next_page_token = seal(position_of(came.following), *window.scope)
        return response

    async def DisableEndpoint(
        self, request: pb.DisableEndpointRequest, context: Context
    ) -> pb.Endpoint:
        del context
        response = pb.Endpoint()
        put_endpoint(response, await self._reminders.endpoints.disable(_named(request)))
        return response


def _named(request: Naming) -> Named:
    problems = Problems()
    named = read_endpoint(request, problems)
    problems.raise_if_any()
    return named

"""grpc.health.v1: for the server as a whole ("") and for the service by name.

Like the one of grpcio-health-checking, but a watcher ends when the service stops: that one's would
keep the drain waiting for its whole grace.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

Context = grpc.aio.ServicerContext[Any, Any]
_Status = health_pb2.HealthCheckResponse


class Health(health_pb2_grpc.HealthServicer):  # type: ignore[misc]  # the package carries no types
    """Starts as not serving."""

    def __init__(self, services: Iterable[str]) -> None:
        self._services = frozenset(("", *services))
        self._serving = False
        self._closed = False
        self._changed = asyncio.Event()

    @property
    def serving(self) -> bool:
        """What is answered now."""
        return self._serving

    def set(self, *, serving: bool) -> bool:
        """For all services alike; True if that is news. After `close` it changes nothing."""
        if self._closed or serving == self._serving:
            return False
        self._serving = serving
        self._tell()
        return True

    def close(self) -> None:
        """Not serving any more; watchers are told and end."""
        self._serving = False
        self._closed = True
        self._tell()

    async def Check(self, request: Any, context: Context) -> Any:  # noqa: N802  the proto's name
        """One answer."""
        if request.service not in self._services:
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such service")
        return _Status(status=self._status(request.service))

    async def Watch(self, request: Any, context: Context) -> None:  # noqa: N802  the proto's name
        """An answer now and after each change."""
        told = None
        while True:
            changed = self._changed
            status = self._status(request.service)
            if status != told:
                await context.write(_Status(status=status))
                told = status
            if self._closed:
                return
            await changed.wait()

    def _status(self, service: str) -> int:
        if service not in self._services:
            return int(_Status.SERVICE_UNKNOWN)
        return int(_Status.SERVING if self._serving else _Status.NOT_SERVING)

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

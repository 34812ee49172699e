"""The demo's webhook: takes every POST, and measures how late it came. In a thread of its own."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from queue import SimpleQueue
from typing import Any

from aiohttp import web

MAX_BODY_BYTES = 256 * 1024
_REMEMBERED = 10_000
"""Delivery keys kept to tell repeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One delivery, as the receiver saw it."""

    received_at: datetime
    planned_at: datetime
    planned_local: str
    time_zone: str
    reminder_id: str
    payload: dict[str, Any]
    repeat: bool
    """Whether this delivery key came before."""

    @property
    def lateness(self) -> timedelta:
        """Received, less promised."""
        return self.received_at - self.planned_at


@dataclass(slots=True)
class Receiver:
    """Arrivals, in the order in which they came."""

    arrivals: SimpleQueue[Arrival] = field(default_factory=SimpleQueue)
    seen: dict[str, None] = field(default_factory=dict)

    async def take(self, request: web.Request) -> web.Response:
        """Confirms what it understands, and refuses the rest with 400."""
        received_at = datetime.now(UTC)
        try:
            body = await request.json()
            key = str(body["eventId"])
            arrival = Arrival(
                received_at=received_at,
                planned_at=datetime.fromisoformat(body["plannedAt"]),
                planned_local=body.get("plannedLocal", ""),
                time_zone=body.get("timeZone", ""),
                reminder_id=body["reminderId"],
                payload=body.get("payload") or {},
                repeat=key in self.seen,
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return web.json_response({"error": f"not a reminder: {error!r}"}, status=400)
        self.seen[key] = None
        if len(self.seen) > _REMEMBERED:
            del self.seen[next(iter(self.seen))]
        self.arrivals.put(arrival)
        return web.json_response({"received": key})


@contextmanager
def receiving(host: str, port: int) -> Iterator[Receiver]:
    """A receiver on http://host:port/ for the length of the block.

    Raises:
        OSError: The port can't be bound.
    """
    receiver = Receiver()
    listening: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        runner = web.AppRunner(_application(receiver), access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port).start()
            stop = asyncio.Event()
            listening.set_result((asyncio.get_running_loop(), stop))
            await stop.wait()
        except OSError as error:
            listening.set_exception(error)
        finally:
            await runner.cleanup()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), name="demo-receiver")
    thread.start()
    try:
        loop, stop = listening.result()
        try:
            yield receiver
        finally:
            loop.call_soon_threadsafe(stop.set)
    finally:
        thread.join()


def _application(receiver: Receiver) -> web.Application:
    application = web.Application(client_max_size=MAX_BODY_BYTES)
    application.router.add_post("/{path:.*}", receiver.take)
    return application

"""The webhook endpoint that remembers every request: key, body, arrival. Lives in `Backstage`."""

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"


class Request(Struct, kw_only=True):
    """One request."""

    at_s: float
    """When its last byte was there, since 1970."""
    key: str
    reminder_id: str
    occurrence_id: str
    fire_at: str
    attempt: int
    number: int
    """Of the create, as its params have it."""
    answered: bool = False
    """Whether the answer was written; what the sender read of it, nobody can say."""


class Receiver:
    """Answers 204 to everything, each path as slowly as it is told."""

    def __init__(self) -> None:
        self.port = 0
        self.slowness_s: dict[str, float] = {}
        """By path: how long an answer takes."""
        self._requests: dict[str, list[Request]] = defaultdict(list)
        self._server: asyncio.Server | None = None

    async def start(self) -> "Receiver":
        """Listens."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def close(self) -> None:
        """No more."""
        if self._server is not None:
            self._server.close()

    def url(self, path: str) -> str:
        """Where to send to."""
        return f"http://127.0.0.1:{self.port}/{path}"

    def at(self, path: str) -> Sequence[Request]:
        """What came to this path so far, oldest first. From any thread."""
        return list(self._requests[path])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                line, *headers = head.decode("latin-1").split("\r\n")
                fields = {
                    name.lower(): value.strip()
                    for name, _, value in (header.partition(":") for header in headers)
                }
                body = json.loads(await reader.readexactly(int(fields["content-length"])))
                path = line.split(" ")[1].removeprefix("/")
                request = self._note(path, fields, body)
                if slowness := self.slowness_s.get(path):
                    await asyncio.sleep(slowness)
                writer.write(NO_CONTENT)
                await writer.drain()
                request.answered = True
        except (asyncio.IncompleteReadError, OSError, asyncio.CancelledError):
            pass  # the last at the end of it all; a stream's callback takes it for an error
        finally:
            writer.close()

    def _note(self, path: str, fields: dict[str, str], body: dict[str, Any]) -> Request:
        request = Request(
            at_s=time.time(),
            key=fields["x-event-id"],
            reminder_id=body["reminderId"],
            occurrence_id=body["occurrenceId"],
            fire_at=body["fireAt"],
            attempt=body["attempt"],
            number=int(body["payload"]["number"]),
        )
        self._requests[path].append(request)
        return request

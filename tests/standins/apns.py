"""Apple's push service over HTTP/2 and TLS, as its documentation has it.

https://developer.apple.com/documentation/usernotifications/sending-notification-requests-to-apns
and …/handling-notification-responses-from-apns
"""

import asyncio
import json
import ssl
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived, StreamEnded

KEY_ID, TEAM_ID, TOPIC = "ABC123DEFG", "DEF123GHIJ", "com.example.tea"

# Device tokens that stand for an answer: status and reason.
MAGIC = {
    "0" * 64: (400, "BadDeviceToken"),
    "1" * 64: (410, "Unregistered"),
    "2" * 64: (400, "DeviceTokenNotForTopic"),
    "3" * 64: (413, "PayloadTooLarge"),
    "4" * 64: (429, "TooManyRequests"),
    "5" * 64: (429, "TooManyProviderTokenUpdates"),
    "6" * 64: (500, "InternalServerError"),
    "7" * 64: (503, "ServiceUnavailable"),
    "8" * 64: (503, "Shutdown"),
    "9" * 64: (403, "TopicDisallowed"),
}
SILENT, CUT = "e" * 64, "f" * 64


@dataclass(frozen=True)
class Pushed:
    """One notification that was taken."""

    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class ApnsServer:
    """Checks provider tokens by the test's clock, and keeps notifications."""

    now: Callable[[], datetime]
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )
    port: int = 0
    token_life: timedelta = timedelta(hours=1)
    pushed: list[Pushed] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    """Different provider tokens, as they came."""
    connections: int = 0

    def private_key(self) -> str:
        """The .p8 file."""
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()

    def answer(self, headers: dict[str, str], content: bytes) -> tuple[int, str]:
        """Status and reason."""
        refusal = self._unauthorized(headers.get("authorization", ""))
        if refusal:
            return 403, refusal
        device = headers[":path"].removeprefix("/3/device/")
        if headers.get("apns-topic") != TOPIC:
            return 400, "BadTopic"
        try:
            uuid.UUID(headers.get("apns-id", ""))
        except ValueError:
            return 400, "BadMessageId"
        if len(headers.get("apns-collapse-id", "")) > 64:
            return 400, "BadCollapseId"
        if device in MAGIC:
            return MAGIC[device]
        self.pushed.append(Pushed(headers, json.loads(content)))
        return 200, ""

    def _unauthorized(self, authorization: str) -> str | None:
        scheme, _, token = authorization.partition(" ")
        if scheme != "bearer" or not token:
            return "MissingProviderToken"
        try:
            head = jwt.get_unverified_header(token)
            claims = jwt.decode(
                token,
                self.key.public_key(),
                algorithms=["ES256"],
                options={"verify_iat": False},
            )
        except jwt.PyJWTError:
            return "InvalidProviderToken"
        if head.get("kid") != KEY_ID or claims.get("iss") != TEAM_ID:
            return "InvalidProviderToken"
        if token not in self.tokens:
            self.tokens.append(token)
        age = self.now().timestamp() - claims["iat"]
        return "ExpiredProviderToken" if age > self.token_life.total_seconds() else None


class _Connection(asyncio.Protocol):
    """One of HTTP/2; RFC 9113 is the library's business."""

    def __init__(self, server: ApnsServer) -> None:
        self._server = server
        self._h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self._requests: dict[int, tuple[dict[str, str], bytearray]] = {}

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self._server.connections += 1
        self._h2.initiate_connection()
        transport.write(self._h2.data_to_send())

    def data_received(self, data: bytes) -> None:
        for event in self._h2.receive_data(data):
            if isinstance(event, RequestReceived):
                self._requests[event.stream_id] = (dict(event.headers), bytearray())  # type: ignore[arg-type]
            elif isinstance(event, DataReceived):
                self._requests[event.stream_id][1].extend(event.data)
                self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, StreamEnded):
                self._end(event.stream_id)
        self.transport.write(self._h2.data_to_send())

    def _end(self, stream: int) -> None:
        headers, content = self._requests.pop(stream)
        if headers[":path"].endswith(SILENT):
            return
        if headers[":path"].endswith(CUT):
            self.transport.abort()
            return
        status, reason = self._server.answer(headers, bytes(content))
        given = [(":status", str(status)), ("apns-id", headers.get("apns-id", ""))]
        self._h2.send_headers(stream, given, end_stream=not reason)
        if reason:
            self._h2.send_data(stream, json.dumps({"reason": reason}).encode(), end_stream=True)


@asynccontextmanager
async def apns_server(
    context: ssl.SSLContext, now: Callable[[], datetime]
) -> AsyncIterator[ApnsServer]:
    """Listens on a free port of loopback; takes HTTP/2 only."""
    it = ApnsServer(now)
    context.set_alpn_protocols(["h2"])
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(it), "127.0.0.1", 0, ssl=context)
    it.port = server.sockets[0].getsockname()[1]
    try:
        yield it
    finally:
        server.close()
        await server.wait_closed()

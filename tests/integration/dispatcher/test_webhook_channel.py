"""The webhook channel against a real HTTP receiver."""

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web

from dispatcher.channels.guard import ForbiddenAddressError, gate
from dispatcher.channels.http import retry_after
from dispatcher.channels.port import EXCERPT_BYTES, Outcome, Outgoing
from dispatcher.channels.webhook import WebhookRules, WebhookSender, body_of
from dispatcher.http1 import AddressInfo, Dialer, origin_of
from reminders.clock import ManualClock
from reminders.model.definition import Channel, Webhook
from reminders.model.entry import Occurrence

NOW = datetime(2026, 3, 29, 1, 0, 1, tzinfo=UTC)
ANY_PORT = WebhookRules(ports=(range(1, 65_536),))
LOOPBACK = WebhookRules(allow_loopback_http=True)
STREAM = (socket.SOCK_STREAM, socket.IPPROTO_TCP, "")
HURRIED = WebhookRules(allow_loopback_http=True, timeout=timedelta(milliseconds=500))


def outgoing(url: str, params_json: str = "{}", **headers: str) -> Outgoing:
    """The gap in Paris: 02:30 was promised as 03:00."""
    return Outgoing(
        delivery_key="dlv_1",
        channel=Channel(channel_id="hook", target=Webhook(url=url, headers=headers)),
        namespace="default",
        reminder_id="r1",
        occurrence=Occurrence(
            occurrence_id="20260329T023000",
            nominal_local=datetime.fromisoformat("2026-03-29T02:30:00"),
            planned_local=datetime.fromisoformat("2026-03-29T03:00:00"),
            zone="Europe/Paris",
            planned_at=datetime(2026, 3, 29, 1, tzinfo=UTC),
            fire_at=datetime(2026, 3, 29, 1, 0, 0, 250_000, tzinfo=UTC),
            zone_data="2026a",
        ),
        attempt=2,
        user_id="u1",
        template_id=None,
        params_json=params_json,
    )


class Names:
    """Resolves every name to the addresses given, or fails."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses

    async def resolve(self, host: str, port: int) -> list[AddressInfo]:  # noqa: ARG002
        """Without asking anybody."""
        if not self.addresses:
            raise OSError("no such name")
        return [
            (socket.AF_INET6 if ":" in one else socket.AF_INET, *STREAM, (one, port))
            for one in self.addresses
        ]

    async def close(self) -> None:
        """Nothing to close."""


@pytest.fixture
async def sender() -> AsyncIterator[WebhookSender]:
    """As `tocsin up` has it: loopback HTTP is allowed."""
    async with WebhookSender(ManualClock(NOW), LOOPBACK) as it:
        yield it


async def test_the_request_is_exactly_this(receiver: Any, sender: WebhookSender) -> None:
    """The contract with receivers: body, order of fields, headers."""
    result = await sender.send(outgoing(receiver.url("/hook?x=1"), '{"a":1.50,"b":"ü"}'))
    assert result.outcome is Outcome.OK
    assert result.acknowledged
    assert result.status_code == 200
    assert result.excerpt == "thanks"
    (request,) = receiver.received
    assert request.body.decode() == (
        '{"eventId":"dlv_1","payload":{"a":1.50,"b":"ü"},"reminderId":"r1",'
        '"occurrenceId":"20260329T023000","plannedLocal":"2026-03-29T03:00:00",'
        '"timeZone":"Europe/Paris","plannedAt":"2026-03-29T01:00:00Z",'
        '"fireAt":"2026-03-29T01:00:00.250000Z","attempt":2,"templateId":null,"userId":"u1",'
        '"namespace":"default","channelId":"hook"}'
    )
    assert request.headers == {
        "host": f"127.0.0.1:{receiver.port}",
        "content-type": "application/json",
        "content-length": str(len(request.body)),
        "user-agent": "Tocsin/1",
        "webhook-id": "dlv_1",
        "x-event-id": "dlv_1",
        "accept": "*/*",
    }


def test_params_are_embedded_untouched() -> None:
    """Ready JSON goes in as it is, whatever our own encoder would have made of it."""
    body = body_of(outgoing("https://example.com/", '{ "big": 12345678901234567890123 }'))
    assert b'"payload":{ "big": 12345678901234567890123 },' in body
    assert json.loads(body)["templateId"] is None


async def test_the_callers_headers_are_added_but_replace_nothing(
    receiver: Any, sender: WebhookSender
) -> None:
    """Not ours, not those of the connection."""
    given = {
        "X-Tenant": "t",
        "Authorization": "Bearer secret",
        "WEBHOOK-ID": "forged",
        "X-Event-Id": "forged",
        "Content-Type": "text/plain",
        "Host": "elsewhere.example",
        "Transfer-Encoding": "chunked",
        "Connection": "upgrade",
        "X-Split": "a\r\nX-Injected: b",
    }
    await sender.send(outgoing(receiver.url(), **given))
    (request,) = receiver.received
    assert request.headers["x-tenant"] == "t"
    assert request.headers["authorization"] == "Bearer secret"
    assert request.headers["webhook-id"] == "dlv_1"
    assert request.headers["x-event-id"] == "dlv_1"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert not {"transfer-encoding", "connection", "x-split", "x-injected"} & set(request.headers)


@pytest.mark.parametrize(
    ("status", "outcome", "error_class"),
    [
        (200, Outcome.OK, ""),
        (202, Outcome.OK, ""),
        (204, Outcome.OK, ""),
        (301, Outcome.PERMANENT, "http_3xx"),
        (304, Outcome.PERMANENT, "http_3xx"),
        (400, Outcome.PERMANENT, "http_4xx"),
        (404, Outcome.PERMANENT, "http_4xx"),
        (408, Outcome.TRANSIENT, "http_408"),
        (410, Outcome.PERMANENT, "http_410"),
        (425, Outcome.TRANSIENT, "http_425"),
        (429, Outcome.RATE_LIMITED, "http_429"),
        (500, Outcome.TRANSIENT, "http_5xx"),
        (503, Outcome.TRANSIENT, "http_5xx"),
    ],
)
async def test_what_a_status_means(
    receiver: Any, sender: WebhookSender, status: int, outcome: Outcome, error_class: str
) -> None:
    """Any 2xx confirms; what may pass is tried again; the rest is final."""
    receiver.answers(status)
    result = await sender.send(outgoing(receiver.url()))
    assert (result.outcome, result.status_code) == (outcome, status)
    assert result.error_class == error_class
    assert result.acknowledged == (outcome is Outcome.OK)


@pytest.mark.parametrize(
    ("value", "wait"),
    [
        ("15", timedelta(seconds=15)),
        (" 0 ", timedelta(0)),
        ("999999", timedelta(hours=6)),
        ("9" * 5000, timedelta(hours=6)),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("٣", None),
        ("Sun, 29 Mar 2026 01:00:16 GMT", timedelta(seconds=15)),
        ("Sun, 29 Mar 2026 00:00:00 GMT", timedelta(0)),
        ("Wed, 01 Jan 2098 00:00:00 GMT", timedelta(hours=6)),
        ("Sun, 29 Mar 2026 01:00:16", None),
    ],
)
def test_retry_after_is_read_in_both_forms_and_bounded(value: str, wait: timedelta | None) -> None:
    """Seconds or an HTTP date by our clock; anything else is ignored."""
    assert retry_after(value, NOW) == wait


async def test_only_what_is_retried_has_a_retry_after(receiver: Any, sender: WebhookSender) -> None:
    """A 404 with the header is still final."""
    receiver.answers(429, Retry_After="15")
    assert (await sender.send(outgoing(receiver.url()))).retry_after == timedelta(seconds=15)
    receiver.answers(404, Retry_After="15")
    assert (await sender.send(outgoing(receiver.url()))).retry_after is None


async def test_a_redirect_is_not_followed(receiver: Any, sender: WebhookSender) -> None:
    """Not even to where the first request was allowed."""
    receiver.answers(307, Location=receiver.url("/elsewhere"))
    result = await sender.send(outgoing(receiver.url()))
    assert result.error_class == "http_3xx"
    assert [request.path for request in receiver.received] == ["/hook"]


async def test_the_connection_is_used_again(receiver: Any, sender: WebhookSender) -> None:
    """One shared session with keep-alive."""
    for _ in range(3):
        await sender.send(outgoing(receiver.url()))
    assert len({request.peer for request in receiver.received}) == 1


async def test_cookies_are_not_carried_on(receiver: Any, sender: WebhookSender) -> None:
    """The session is shared by all tenants."""
    receiver.answers(200, Set_Cookie="session=1")
    await sender.send(outgoing(receiver.url()))
    await sender.send(outgoing(receiver.url()))
    assert "cookie" not in receiver.received[1].headers


async def test_of_the_answer_only_a_clean_start_is_kept(
    receiver: Any, sender: WebhookSender
) -> None:
    """At most 1 KiB of printable text, whatever encoding it claims, and whole characters."""
    receiver.answers(400, "a\x00\x1b[31m\n\u202e" + "é" * 1600)
    result = await sender.send(outgoing(receiver.url()))
    assert result.excerpt == "a  [31m  " + "é" * ((EXCERPT_BYTES - 9) // 2)


async def test_a_huge_answer_is_not_read_to_its_end(receiver: Any, sender: WebhookSender) -> None:
    """The connection is dropped instead; the status still counts."""
    sent = 0

    async def flood(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        while sent < 64 * 1024 * 1024:
            await response.write(b"x" * 65536)
            sent += 65536
        return response

    receiver.answer = flood
    result = await sender.send(outgoing(receiver.url()))
    assert result.outcome is Outcome.OK
    assert result.excerpt == "x" * EXCERPT_BYTES
    assert sent < 32 * 1024 * 1024


async def test_a_packed_answer_is_not_unpacked(receiver: Any, sender: WebhookSender) -> None:
    """A decompression bomb stays packed."""

    async def bomb(_request: web.Request) -> web.Response:
        return web.Response(body=b"not gzip at all", headers={"Content-Encoding": "gzip"})

    receiver.answer = bomb
    assert (await sender.send(outgoing(receiver.url()))).excerpt == "not gzip at all"


async def test_a_confirmation_stands_though_its_body_never_ends(receiver: Any) -> None:
    """The time-out hits after the status line: it was delivered."""
    ended = asyncio.Event()

    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"begun")
        await ended.wait()
        return response

    receiver.answer = drip
    async with WebhookSender(ManualClock(NOW), HURRIED) as sender:
        result = await sender.send(outgoing(receiver.url()))
    ended.set()
    assert result.outcome is Outcome.OK
    assert result.excerpt == "begun"


async def test_no_answer_in_time_is_a_timeout(receiver: Any) -> None:
    """Nobody knows whether it arrived."""
    ended = asyncio.Event()

    async def hang(_request: web.Request) -> web.Response:
        await ended.wait()
        return web.Response()

    receiver.answer = hang
    async with WebhookSender(ManualClock(NOW), HURRIED) as sender:
        result = await sender.send(outgoing(receiver.url()))
    ended.set()
    assert (result.outcome, result.error_class) == (Outcome.UNKNOWN, "timeout")


async def test_a_closed_port_is_a_connect_error(sender: WebhookSender) -> None:
    """Transient: the receiver may be restarting."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        result = await sender.send(outgoing(f"http://127.0.0.1:{closed.getsockname()[1]}/"))
    assert (result.outcome, result.error_class) == (Outcome.TRANSIENT, "connect")


async def test_a_connection_cut_before_the_answer_leaves_it_unknown(
    receiver: Any, sender: WebhookSender
) -> None:
    """Also nobody knows whether it arrived."""

    async def cut(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    receiver.answer = cut
    result = await sender.send(outgoing(receiver.url()))
    assert (result.outcome, result.error_class) == (Outcome.UNKNOWN, "disconnected")


async def test_a_failed_handshake_is_a_tls_error(receiver: Any, sender: WebhookSender) -> None:
    """Here: HTTPS to a port that speaks plain HTTP."""
    url = receiver.url().replace("http://", "https://")
    result = await sender.send(outgoing(url))
    assert (result.outcome, result.error_class) == (Outcome.TRANSIENT, "tls")


async def test_an_answer_that_is_not_http_is_a_protocol_error(sender: WebhookSender) -> None:
    """Something took it, be it a proxy: nobody knows."""

    async def mumble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"mumble\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(mumble, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        result = await sender.send(outgoing(f"http://127.0.0.1:{port}/"))
    assert (result.outcome, result.error_class) == (Outcome.UNKNOWN, "protocol")


# --- the guard ------------------------------------------------------------------------------------


async def test_an_unknown_name_is_transient() -> None:
    """Name servers fail for a while, too."""
    async with WebhookSender(ManualClock(NOW), resolver=Names()) as sender:
        result = await sender.send(outgoing("https://hooks.example/"))
    assert (result.outcome, result.error_class) == (Outcome.TRANSIENT, "dns")


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "64:ff9b::7f00:1", "2002:7f00:1::"],
)
async def test_a_name_that_resolves_to_a_private_address_is_forbidden(
    receiver: Any, address: str
) -> None:
    """The URL looks fine; what it resolves to decides. Nothing is connected to."""
    async with WebhookSender(ManualClock(NOW), ANY_PORT, resolver=Names(address)) as sender:
        result = await sender.send(outgoing(f"https://hooks.example:{receiver.port}/"))
    assert (result.outcome, result.error_class) == (Outcome.PERMANENT, "url_forbidden")
    assert address in result.excerpt
    assert receiver.received == []


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/",
        "https://127.0.0.1:{port}/",
        "https://localhost:{port}/",
        "https://127.1:{port}/",
        "https://0x7f000001:{port}/",
        "https://[::ffff:127.0.0.1]:{port}/",
        "http://hooks.example:{port}/",
        "https://user:pw@hooks.example:{port}/",
    ],
)
async def test_a_forbidden_url_is_refused_without_a_connection(receiver: Any, url: str) -> None:
    """Even where it got past the scheduler, such as before a rule was added."""
    async with WebhookSender(ManualClock(NOW), resolver=Names("127.0.0.1")) as sender:
        result = await sender.send(outgoing(url.format(port=receiver.port)))
    assert (result.outcome, result.error_class) == (Outcome.PERMANENT, "url_forbidden")
    assert receiver.received == []


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "10.0.0.1"])
async def test_the_last_gate_alone_stops_literals(receiver: Any, host: str) -> None:
    """Literals are not resolved: the last gate has to see them itself."""
    dialer = Dialer(Names(), gate(allow_loopback=False), ssl.create_default_context())
    with pytest.raises(ForbiddenAddressError):
        await dialer.dial(origin_of(f"http://{host}:{receiver.port}"))
    assert receiver.received == []


async def test_development_reaches_loopback_by_name(receiver: Any) -> None:
    """`http://localhost` in `make run`."""
    names = Names("127.0.0.1")
    async with WebhookSender(ManualClock(NOW), LOOPBACK, resolver=names) as sender:
        result = await sender.send(outgoing(f"http://localhost:{receiver.port}/"))
    assert result.outcome is Outcome.OK

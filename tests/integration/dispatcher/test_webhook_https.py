"""Webhooks over real TLS, names from a real name server, signatures that receivers verify."""

import hashlib
import hmac
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import standardwebhooks
from aiohttp import web

from dispatcher.channels import guard
from dispatcher.channels.guard import Resolver
from dispatcher.channels.port import Outcome
from dispatcher.channels.signing import keys_of
from dispatcher.channels.webhook import WebhookRules, WebhookSender
from reminders.clock import ManualClock
from reminders.model.definition import Webhook
from reminders.signing_secrets import key_of
from reminders.urls import address_problem
from tests.standins.dns import name_server
from tests.standins.sending import KEY, NOW, outgoing
from tests.standins.tls import Authority

ANY_PORT = (range(1, 65_536),)
NEW = "whsec_" + "bmV3IHNlY3JldCBvZiAzMiBieXRlcyAhISEhISEhISE="
OLD = "whsec_" + "b2xkIHNlY3JldCBvZiAzMiBieXRlcyAhISEhISEhISE="
OTHER = "whsec_" + "b3RoZXIgc2VjcmV0IG9mIDMyIGJ5dGVzICEhISEhISE="


@dataclass
class Place:
    """An HTTPS server, and what it saw."""

    port: int = 0
    received: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    server_names: list[str | None] = field(default_factory=list)


@asynccontextmanager
async def https(context: ssl.SSLContext, address: str, port: int = 0) -> AsyncIterator[Place]:
    """Listens there."""
    place = Place()

    def seen(_socket: object, name: str | None, _context: ssl.SSLContext) -> None:
        place.server_names.append(name)

    context.sni_callback = seen

    async def handle(request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        place.received.append((headers, await request.read()))
        return web.Response(text="thanks")

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, address, port, ssl_context=context).start()
    place.port = runner.addresses[0][1]
    try:
        yield place
    finally:
        await runner.cleanup()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Its file is what TOCSIN_WEBHOOK_CA_FILE names."""
    return Authority.make(tmp_path)


def rules(authority: Authority | None = None, **fields: object) -> WebhookRules:
    """Loopback is allowed, any port too."""
    tls = authority.client() if authority else None
    given = {"allow_loopback_http": True, "ports": ANY_PORT, "tls": tls} | fields
    return WebhookRules(**given)  # type: ignore[arg-type]


async def test_the_configured_authority_is_believed_and_name_and_host_are_right(
    authority: Authority,
) -> None:
    """The connection goes to the address, TLS and HTTP speak of the name."""
    async with (
        https(authority.server("hooks.example"), "127.0.0.1") as place,
        name_server(["127.0.0.1"]) as names,
        WebhookSender(
            ManualClock(NOW), rules(authority), resolver=Resolver([names.address])
        ) as sender,
    ):
        url = f"https://hooks.example:{place.port}/hook"
        result = await sender.send(outgoing(Webhook(url=url)))
        assert (result.outcome, result.excerpt) == (Outcome.OK, "thanks")
        assert place.server_names == ["hooks.example"]
        assert place.received[0][0]["host"] == f"hooks.example:{place.port}"
        assert names.asked == ["hooks.example"]


@pytest.mark.parametrize("fault", ["authority", "name"])
async def test_a_certificate_that_is_not_right_stops_the_attempt(
    authority: Authority, fault: str
) -> None:
    """Of an unknown authority, or of another name: nothing is sent."""
    certified = "hooks.example" if fault == "authority" else "other.example"
    async with (
        https(authority.server(certified), "127.0.0.1") as place,
        name_server(["127.0.0.1"]) as names,
        WebhookSender(
            ManualClock(NOW),
            rules(authority if fault == "name" else None),
            resolver=Resolver([names.address]),
        ) as sender,
    ):
        url = f"https://hooks.example:{place.port}/hook"
        result = await sender.send(outgoing(Webhook(url=url)))
        assert (result.outcome, result.error_class) == (Outcome.TRANSIENT, "tls")
        assert place.received == []


# --- rebinding ------------------------------------------------------------------------------------


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> str:
    """A loopback address that counts as public, beside 127.0.0.1, which counts as what it is."""

    def problem(address: str, *, allow_loopback: bool) -> str | None:
        return None if address == "127.0.0.2" else address_problem(address, allow_loopback=False)

    monkeypatch.setattr(guard, "address_problem", problem)
    return "127.0.0.2"


async def test_a_name_that_rebinds_gains_nothing(authority: Authority, outside: str) -> None:
    """It is resolved once for an attempt; when it answers an inner address, that is refused."""
    context = authority.server("hooks.example")
    async with (
        https(context, outside) as public,
        https(authority.server("hooks.example"), "127.0.0.1", public.port) as inner,
        name_server([outside], ["127.0.0.1"]) as names,
    ):
        url = f"https://hooks.example:{public.port}/hook"
        mine = rules(authority, allow_loopback_http=False)
        results = []
        for _ in range(2):
            resolver = Resolver([names.address])
            async with WebhookSender(ManualClock(NOW), mine, resolver=resolver) as sender:
                results.append(await sender.send(outgoing(Webhook(url=url))))
        assert results[0].outcome is Outcome.OK
        assert results[1].error_class == "url_forbidden"
        assert "127.0.0.1" in results[1].excerpt
        assert names.asked == ["hooks.example"] * 2
        assert (len(public.received), inner.received) == (1, [])


async def test_of_several_addresses_only_the_public_ones_are_tried(
    authority: Authority, outside: str
) -> None:
    """Also where the public one does not answer: there is no way back to the inner one."""
    with socket.create_server((outside, 0)) as closed:
        port = closed.getsockname()[1]
    async with (
        https(authority.server("hooks.example"), "127.0.0.1", port) as inner,
        name_server(["127.0.0.1", outside]) as names,
        WebhookSender(
            ManualClock(NOW),
            rules(authority, allow_loopback_http=False),
            resolver=Resolver([names.address]),
        ) as sender,
    ):
        result = await sender.send(outgoing(Webhook(url=f"https://hooks.example:{port}/")))
        assert (result.outcome, result.error_class) == (Outcome.TRANSIENT, "connect")
        assert inner.received == []


# --- signatures -----------------------------------------------------------------------------------


async def test_receivers_verify_with_either_secret_while_one_rotates(authority: Authority) -> None:
    """By the library that Standard Webhooks publishes, over exactly the bytes that arrived."""
    clock = ManualClock(datetime.now(UTC))  # the library compares with its own clock
    keys = keys_of({"default/main": (NEW, OLD)})
    async with (
        https(authority.server("localhost"), "127.0.0.1") as place,
        WebhookSender(clock, rules(authority, keys=keys, secrets=(NEW, OLD))) as sender,
    ):
        target = Webhook(url=f"https://localhost:{place.port}/", secret_id="main")
        sent = outgoing(target, '{"title":"thé"}')
        assert (await sender.send(sent)).outcome is Outcome.OK
        clock.advance(timedelta(seconds=61))
        assert (await sender.send(sent)).outcome is Outcome.OK
    for headers, body in place.received:
        assert headers["webhook-id"] == KEY
        for secret in (NEW, OLD):
            told = standardwebhooks.Webhook(secret).verify(body, headers)
            assert told["eventId"] == KEY
        with pytest.raises(standardwebhooks.WebhookVerificationError):
            standardwebhooks.Webhook(OTHER).verify(body, headers)
        with pytest.raises(standardwebhooks.WebhookVerificationError):
            standardwebhooks.Webhook(NEW).verify(body + b" ", headers)
        digests = (hmac.new(key_of(each), body, hashlib.sha256) for each in (NEW, OLD))
        plain = ",".join(f"sha256={each.hexdigest()}" for each in digests)
        assert headers["x-signature"] == plain
    first, second = (headers for headers, _ in place.received)
    assert int(second["webhook-timestamp"]) - int(first["webhook-timestamp"]) == 61
    assert first["webhook-signature"] != second["webhook-signature"]


@pytest.mark.parametrize(("namespace", "secret_id"), [("default", "gone"), ("acme", "main")])
async def test_without_its_secret_nothing_is_sent(
    authority: Authority, namespace: str, secret_id: str
) -> None:
    """A receiver that expects signatures must not learn to do without; others' don't count."""
    async with (
        https(authority.server("localhost"), "127.0.0.1") as place,
        WebhookSender(
            ManualClock(NOW), rules(authority, keys=keys_of({"default/main": (NEW,)}))
        ) as sender,
    ):
        target = Webhook(url=f"https://localhost:{place.port}/", secret_id=secret_id)
        result = await sender.send(outgoing(target, namespace=namespace))
        assert (result.outcome, result.error_class) == (Outcome.PERMANENT, "secret_unknown")
        assert place.received == []

"""The SMS channel against stand-ins of the providers' APIs."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web
from twilio.base.exceptions import TwilioRestException
from twilio.http.http_client import TwilioHttpClient
from twilio.rest import Client

from dispatcher.channels.masking import Mask
from dispatcher.channels.port import Outcome, Result
from dispatcher.channels.provider import provider_session, tls_context
from dispatcher.channels.sms import SmsSender
from dispatcher.channels.sms_http import HttpGateway, HttpSms
from dispatcher.channels.twilio import Twilio, TwilioAccount
from reminders.clock import ManualClock
from reminders.model.definition import Sms
from tests.standins.http import cut, serving
from tests.standins.sending import KEY, NOW, outgoing
from tests.standins.twilio import MAGIC, SENDER, SID, TOKEN, TwilioApi, error

TO = "+33123456789"
AT_21 = "Sun, 29 Mar 2026 01:00:21 GMT"


@asynccontextmanager
async def twilio(api: TwilioApi, **changes: str) -> AsyncIterator[SmsSender]:
    """A sender as the process makes it."""
    given = {"account_sid": SID, "user": SID, "password": TOKEN, "sender": SENDER} | changes
    async with serving(api.handle) as url, provider_session(tls_context(None)) as session:
        account = TwilioAccount(base_url=url, **given)
        mask = Mask(account.secrets)
        yield SmsSender(Twilio(ManualClock(NOW), session, account, mask), mask)


async def sent(sender: SmsSender, to: str = TO, params: str = '{"text":"Tea!"}') -> Result:
    """One attempt."""
    return await sender.send(outgoing(Sms(to=to), params))


async def test_a_message_is_exactly_this() -> None:
    """A form with three fields; Twilio's name of it is kept, and nobody has acknowledged yet."""
    api = TwilioApi()
    async with twilio(api) as sender:
        result = await sent(sender, params='{"text":"Thé & <lait>?"}')
    assert (result.outcome, result.status_code) == (Outcome.OK, 201)
    assert not result.acknowledged
    assert result.provider_event_id == f"SM{1:032x}"
    assert api.messages == [{"To": TO, "From": SENDER, "Body": "Thé & <lait>?"}]


async def test_a_messaging_service_sends_in_place_of_a_number() -> None:
    """Its SID goes into another field."""
    api = TwilioApi()
    service = "MG" + "c3" * 16
    async with twilio(api, sender=service) as sender:
        assert (await sent(sender)).outcome is Outcome.OK
    assert api.messages == [{"To": TO, "MessagingServiceSid": service, "Body": "Tea!"}]


MEANINGS = {
    21211: "address_invalid",
    21612: "unreachable",
    21408: "region_forbidden",
    21610: "opted_out",
    21614: "address_invalid",
}


@pytest.mark.parametrize(("to", "code"), MAGIC.items())
async def test_what_twilios_codes_mean(to: str, code: int) -> None:
    """Each is final, with a word of its own."""
    async with twilio(TwilioApi()) as sender:
        result = await sent(sender, to)
    assert (result.outcome, result.error_class) == (Outcome.PERMANENT, MEANINGS[code])
    assert str(code) in result.excerpt


@pytest.mark.parametrize(
    ("answer", "outcome", "error_class", "wait_s"),
    [
        (error(429, 20429, "limit", Retry_After="15"), Outcome.RATE_LIMITED, "http_429", 15),
        (error(429, 21611, "queue full"), Outcome.RATE_LIMITED, "sms_queue_full", None),
        (error(503, 20503, "down", Retry_After=AT_21), Outcome.TRANSIENT, "http_5xx", 20),
        (error(500, 20500, "oops", Retry_After="15"), Outcome.UNKNOWN, "http_5xx", None),
        (web.Response(status=504, text="<html>"), Outcome.UNKNOWN, "http_5xx", None),
        (error(403, 20403, "no"), Outcome.TRANSIENT, "provider_auth", None),
        (error(400, 99999, "new"), Outcome.PERMANENT, "http_4xx", None),
        (cut, Outcome.UNKNOWN, "disconnected", None),
    ],
)  # fmt: skip
async def test_what_else_may_come_back(
    answer: Any, outcome: Outcome, error_class: str, wait_s: int | None
) -> None:
    """Limits wait as long as asked; what leaves it open is unknown: Twilio can't deduplicate."""
    api = TwilioApi(instead=answer if callable(answer) else lambda _: answer)
    async with twilio(api) as sender:
        result = await sent(sender)
    assert (result.outcome, result.error_class) == (outcome, error_class)
    assert result.retry_after == (None if wait_s is None else timedelta(seconds=wait_s))


async def test_wrong_credentials_are_ours_and_are_not_kept() -> None:
    """Transient; and an answer that echoes them is masked."""
    wrong = "d4" * 16
    async with twilio(TwilioApi(), password=wrong) as sender:
        result = await sent(sender)
        assert (result.outcome, result.error_class) == (Outcome.TRANSIENT, "provider_auth")
    echo = TwilioApi(instead=lambda request: web.Response(status=400, text=str(request.headers)))
    async with twilio(echo) as sender:
        result = await sent(sender)
    assert "***" in result.excerpt
    assert TOKEN not in result.excerpt


async def test_nothing_is_sent_to_what_is_no_number() -> None:
    """The provider is not asked."""
    api = TwilioApi()
    async with twilio(api) as sender:
        for to in ("0123456789", "+33", "+33123456789;+44123456789", "+33 1 23 45"):
            result = await sent(sender, to)
            assert (result.outcome, result.error_class) == (Outcome.PERMANENT, "address_invalid")
    assert api.messages == []


async def test_twilios_own_client_agrees_with_the_stand_in() -> None:
    """It is taken and refused as we are, and sends the same: the stand-in is true to Twilio."""

    class Redirected(TwilioHttpClient):  # type: ignore[misc]  # it carries no types
        """To the stand-in."""

        def request(self, method: str, url: str, *args: Any, **kwargs: Any) -> Any:
            return super().request(
                method, url.replace("https://api.twilio.com", base), *args, **kwargs
            )

    def drive() -> tuple[str | None, dict[str, int | None]]:
        client = Client(SID, TOKEN, http_client=Redirected(timeout=5))
        message = client.messages.create(to=TO, from_=SENDER, body="Tea!")
        codes: dict[str, int | None] = {}
        for to in MAGIC:
            with pytest.raises(TwilioRestException) as refused:
                client.messages.create(to=to, from_=SENDER, body="Tea!")
            codes[to] = refused.value.code
        stranger = Client(SID, "wrong", http_client=Redirected(timeout=5))
        with pytest.raises(TwilioRestException) as refused:
            stranger.messages.create(to=TO, from_=SENDER, body="Tea!")
        codes["auth"] = refused.value.code
        return message.sid, codes

    api = TwilioApi()
    async with serving(api.handle) as base:
        sid, codes = await asyncio.to_thread(drive)
    async with twilio(api) as sender:
        await sent(sender)
    assert sid == f"SM{1:032x}"
    assert codes == MAGIC | {"auth": 20003}
    assert api.messages[0] == api.messages[1], "ours is what Twilio's client sends"


# --- any provider that takes JSON -----------------------------------------------------------------

TEMPLATE = '{"messages":[{"dst":"{to}","body":"Tocsin: {text}","ref":"{key}","n":1}]}'


@asynccontextmanager
async def gateway(answer: web.Response, got: list[Any]) -> AsyncIterator[SmsSender]:
    """Keeps what is posted, and answers always the same."""

    async def handle(request: web.Request) -> web.Response:
        got.append((request.headers.get("Authorization"), json.loads(await request.read())))
        return answer

    async with serving(handle) as url, provider_session(tls_context(None)) as session:
        given = HttpGateway(
            url=f"{url}/send",
            body=TEMPLATE,
            authorization="Bearer s3cr3t!!",
            id_path="messages.0.id",
        )
        mask = Mask([given.authorization or ""])
        yield SmsSender(HttpSms(ManualClock(NOW), session, given, mask), mask)


async def test_the_body_is_the_template_filled_in() -> None:
    """Values stay inside their strings, whatever they hold, and are not filled in again."""
    got: list[Any] = []
    answer = web.json_response({"messages": [{"id": 17}]}, status=202)
    async with gateway(answer, got) as sender:
        result = await sent(sender, params=json.dumps({"text": '"},{"{key}{to}'}))
    assert (result.outcome, result.provider_event_id) == (Outcome.OK, "17")
    body = 'Tocsin: "},{"{key}{to}'
    assert got == [
        ("Bearer s3cr3t!!", {"messages": [{"dst": TO, "body": body, "ref": KEY, "n": 1}]})
    ]


@pytest.mark.parametrize(
    ("status", "outcome", "error_class"),
    [
        (401, Outcome.TRANSIENT, "provider_auth"),
        (400, Outcome.PERMANENT, "http_4xx"),
        (429, Outcome.RATE_LIMITED, "http_429"),
        (502, Outcome.UNKNOWN, "http_5xx"),
        (503, Outcome.TRANSIENT, "http_5xx"),
        (302, Outcome.PERMANENT, "http_3xx"),
    ],
)
async def test_what_its_statuses_mean(status: int, outcome: Outcome, error_class: str) -> None:
    """And what it says is kept without our credentials."""
    said = web.Response(status=status, text="no: Bearer s3cr3t!!", headers={"Location": "/other"})
    async with gateway(said, []) as sender:
        result = await sent(sender)
    assert (result.outcome, result.error_class) == (outcome, error_class)
    assert result.excerpt == "no: ***"

"""The push channel against stand-ins of FCM and APNs."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import google.auth.transport.requests
import msgspec
import pytest
from google.oauth2 import service_account

from dispatcher.channels.apns import CONNECTIONS, Apns, ApnsKey, apns_id
from dispatcher.channels.fcm import SCOPE, Fcm, ServiceAccount
from dispatcher.channels.port import ATTEMPT_TIMEOUT, Outcome, Result
from dispatcher.channels.provider import provider_session, tls_context
from dispatcher.channels.push import PushSender
from reminders.clock import ManualClock
from reminders.model.definition import Push, PushProvider
from tests.standins.apns import CUT, KEY_ID, MAGIC, SILENT, TEAM_ID, TOPIC, ApnsServer, apns_server
from tests.standins.fcm import MAGIC as FCM_MAGIC
from tests.standins.fcm import PROJECT, FcmApi
from tests.standins.http import serving
from tests.standins.sending import KEY, NOW, outgoing
from tests.standins.tls import Authority

PARAMS = '{"title":"Tea","text":"It is ready.","cup":1}'
DEVICE = "a1" * 32


async def sent(sender: PushSender, to: str, provider: PushProvider, params: str = PARAMS) -> Result:
    """One attempt."""
    return await sender.send(outgoing(Push(to=to, provider=provider), params))


# --- FCM ------------------------------------------------------------------------------------------


@asynccontextmanager
async def fcm(clock: ManualClock) -> AsyncIterator[tuple[FcmApi, PushSender]]:
    """The stand-in, and a sender with its service account."""
    api = FcmApi(clock.now)
    async with serving(api.handle) as url, provider_session(tls_context(None)) as session:
        api.url = url
        account = msgspec.convert(api.service_account(), ServiceAccount)
        yield api, PushSender({PushProvider.FCM: Fcm(clock, session, account, base_url=url)})


async def test_a_message_by_fcm_is_exactly_this() -> None:
    """Signed in by the service account; a repeat replaces the first one on the screen."""
    async with fcm(ManualClock(NOW)) as (api, sender):
        result = await sent(sender, "device:1", PushProvider.FCM)
    assert (result.outcome, result.acknowledged) == (Outcome.OK, False)
    assert result.provider_event_id == f"projects/{PROJECT}/messages/1"
    assert api.messages == [
        {
            "token": "device:1",
            "notification": {"title": "Tea", "body": "It is ready."},
            "data": {
                "eventId": KEY,
                "reminderId": "r1",
                "occurrenceId": "20260329T023000",
                "payload": PARAMS,
            },
            "android": {"priority": "high", "notification": {"tag": KEY}},
            "apns": {"headers": {"apns-collapse-id": KEY}},
        }
    ]


async def test_a_token_is_shared_until_shortly_before_its_end() -> None:
    """Twenty at once sign in once; a minute before the hour is over, once again."""
    clock = ManualClock(NOW)
    async with fcm(clock) as (api, sender):
        await asyncio.gather(*(sent(sender, "d", PushProvider.FCM) for _ in range(20)))
        assert (api.exchanges, len(api.messages)) == (1, 20)
        clock.advance(timedelta(seconds=3598 - 60))
        await sent(sender, "d", PushProvider.FCM)
        assert api.exchanges == 1
        clock.advance(timedelta(seconds=1))
        await sent(sender, "d", PushProvider.FCM)
        assert api.exchanges == 2


async def test_a_revoked_token_is_replaced_once_within_the_attempt() -> None:
    """After that a 401 is for who operates Tocsin."""
    async with fcm(ManualClock(NOW)) as (api, sender):
        await sent(sender, "d", PushProvider.FCM)
        api.tokens.clear()
        assert (await sent(sender, "d", PushProvider.FCM)).outcome is Outcome.OK
        assert (api.exchanges, len(api.messages)) == (2, 2)
        result = await sent(sender, "apns-broken", PushProvider.FCM)
        assert (result.outcome, result.error_class) == (Outcome.TRANSIENT, "provider_auth")
        assert api.exchanges == 3


@pytest.mark.parametrize(
    ("to", "outcome", "error_class"),
    [
        ("gone", Outcome.PERMANENT, "unregistered"),
        ("other-sender", Outcome.PERMANENT, "sender_mismatch"),
        ("malformed", Outcome.PERMANENT, "http_4xx"),
        ("too-many", Outcome.RATE_LIMITED, "http_429"),
        ("down", Outcome.TRANSIENT, "http_5xx"),
        ("oops", Outcome.UNKNOWN, "http_5xx"),
    ],
)
async def test_what_fcms_answers_mean(to: str, outcome: Outcome, error_class: str) -> None:
    """By its own code where it gives one; 429 and 503 say for how long."""
    async with fcm(ManualClock(NOW)) as (_, sender):
        result = await sent(sender, to, PushProvider.FCM)
    assert (result.outcome, result.error_class) == (outcome, error_class)
    assert result.status_code == FCM_MAGIC[to][0]
    waits = timedelta(seconds=30) if to in ("too-many", "down") else None
    assert result.retry_after == waits


async def test_a_refused_sign_in_is_ours_and_keeps_nothing() -> None:
    """Transient; the assertion that Google echoes would still be good for an hour."""
    async with fcm(ManualClock(NOW)) as (api, sender):
        api.refuse_sign_in = True
        result = await sent(sender, "d", PushProvider.FCM)
        assert (result.outcome, result.error_class) == (Outcome.TRANSIENT, "provider_auth")
        assert "no: ***" in result.excerpt
        api.refuse_sign_in = False
        assert (await sent(sender, "d", PushProvider.FCM)).outcome is Outcome.OK


async def test_googles_own_client_agrees_with_the_stand_in() -> None:
    """`google-auth`, by which Firebase's SDK signs in and sends, is taken and refused the same."""

    def drive() -> tuple[dict[str, Any], int]:
        credentials = service_account.Credentials.from_service_account_info(  # type: ignore[no-untyped-call]
            api.service_account(), scopes=[SCOPE]
        )
        session = google.auth.transport.requests.AuthorizedSession(credentials)  # type: ignore[no-untyped-call]
        url = f"{api.url}/v1/projects/{PROJECT}/messages:send"
        with session:
            taken = session.post(url, json={"message": {"token": "d", "data": {"a": "b"}}})
            refused = session.post(url, json={"message": {"token": "gone"}})
        return taken.json(), refused.status_code

    api = FcmApi(lambda: datetime.now(UTC))
    async with serving(api.handle) as url:
        api.url = url
        taken, refused = await asyncio.to_thread(drive)
    assert taken == {"name": f"projects/{PROJECT}/messages/1"}
    assert refused == 404


# --- APNs -----------------------------------------------------------------------------------------


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Its file is what TOCSIN_PROVIDER_CA_FILE names."""
    return Authority.make(tmp_path)


@asynccontextmanager
async def apns(
    authority: Authority, clock: ManualClock, patience: timedelta = ATTEMPT_TIMEOUT, **changes: str
) -> AsyncIterator[tuple[ApnsServer, PushSender]]:
    """The stand-in, and a sender with its key."""
    async with apns_server(authority.server("localhost"), clock.now) as server:
        given = {
            "private_key": server.private_key(),
            "key_id": KEY_ID,
            "team_id": TEAM_ID,
            "topic": TOPIC,
        }
        key = ApnsKey(**(given | changes))
        url = f"https://localhost:{server.port}"
        async with Apns(clock, key, authority.client(), base_url=url, timeout=patience) as service:
            yield server, PushSender({PushProvider.APNS: service})


async def test_a_notification_by_apns_is_exactly_this(authority: Authority) -> None:
    """HTTP/2; an id that is the same on every attempt; a repeat replaces the first one."""
    async with apns(authority, ManualClock(NOW)) as (server, sender):
        results = [await sent(sender, DEVICE, PushProvider.APNS) for _ in range(2)]
        pushed = server.pushed
    assert {result.outcome for result in results} == {Outcome.OK}
    assert {result.acknowledged for result in results} == {False}
    assert {result.provider_event_id for result in results} == {apns_id(KEY)}
    assert pushed[0] == pushed[1]
    headers = pushed[0].headers
    assert uuid.UUID(headers["apns-id"]) == uuid.UUID(apns_id(KEY))
    named = {name: value for name, value in headers.items() if name.startswith(("apns-", ":"))}
    assert named == {
        ":method": "POST",
        ":scheme": "https",
        ":authority": f"localhost:{server.port}",
        ":path": f"/3/device/{DEVICE}",
        "apns-id": apns_id(KEY),
        "apns-topic": TOPIC,
        "apns-push-type": "alert",
        "apns-priority": "10",
        "apns-expiration": str(int((NOW + timedelta(hours=24)).timestamp())),
        "apns-collapse-id": KEY,
    }
    assert pushed[0].body == {
        "aps": {"alert": {"title": "Tea", "body": "It is ready."}, "sound": "default"},
        "eventId": KEY,
        "reminderId": "r1",
        "occurrenceId": "20260329T023000",
        "payload": PARAMS,
    }
    assert json.loads(pushed[0].body["payload"])["cup"] == 1


async def test_many_notifications_share_few_connections(authority: Authority) -> None:
    """All at once from a cold start, then over what is open: many streams on each."""
    async with apns(authority, ManualClock(NOW)) as (server, sender):
        for _ in range(3):
            every = (sent(sender, DEVICE, PushProvider.APNS) for _ in range(50))
            results = await asyncio.gather(*every)
            assert {result.outcome for result in results} == {Outcome.OK}
        assert len(server.pushed) == 150
        assert server.connections <= CONNECTIONS


async def test_a_provider_token_is_renewed_between_20_and_60_minutes(authority: Authority) -> None:
    """Apple refuses older ones, and those who change them more often."""
    clock = ManualClock(NOW)
    async with apns(authority, clock) as (server, sender):
        for _ in range(4 * 60 + 1):
            assert (await sent(sender, DEVICE, PushProvider.APNS)).outcome is Outcome.OK
            clock.advance(timedelta(minutes=1))
        assert len(server.tokens) == 7  # after 0, 40, 80, … 240 minutes


async def test_an_expired_token_is_renewed_once_if_it_is_old_enough(authority: Authority) -> None:
    """Apple may tire of one earlier; a young one is not replaced, for that is refused as well."""
    clock = ManualClock(NOW)
    async with apns(authority, clock) as (server, sender):
        await sent(sender, DEVICE, PushProvider.APNS)
        server.token_life = timedelta(minutes=15)
        clock.advance(timedelta(minutes=19))
        result = await sent(sender, DEVICE, PushProvider.APNS)
        assert (result.outcome, result.error_class) == (Outcome.TRANSIENT, "provider_auth")
        assert len(server.tokens) == 1
        clock.advance(timedelta(minutes=1))
        assert (await sent(sender, DEVICE, PushProvider.APNS)).outcome is Outcome.OK
        assert len(server.tokens) == 2


@pytest.mark.parametrize(
    ("reason", "outcome", "error_class"),
    [
        ("BadDeviceToken", Outcome.PERMANENT, "address_invalid"),
        ("Unregistered", Outcome.PERMANENT, "unregistered"),
        ("DeviceTokenNotForTopic", Outcome.PERMANENT, "address_invalid"),
        ("PayloadTooLarge", Outcome.PERMANENT, "payload_too_large"),
        ("TooManyRequests", Outcome.RATE_LIMITED, "http_429"),
        ("TooManyProviderTokenUpdates", Outcome.RATE_LIMITED, "http_429"),
        ("InternalServerError", Outcome.UNKNOWN, "http_5xx"),
        ("ServiceUnavailable", Outcome.TRANSIENT, "http_5xx"),
        ("Shutdown", Outcome.TRANSIENT, "http_5xx"),
        ("TopicDisallowed", Outcome.TRANSIENT, "provider_auth"),
    ],
)
async def test_what_apples_reasons_mean(
    authority: Authority, reason: str, outcome: Outcome, error_class: str
) -> None:
    """Each is in the excerpt, too."""
    device = next(device for device, (_, word) in MAGIC.items() if word == reason)
    async with apns(authority, ManualClock(NOW)) as (_, sender):
        result = await sent(sender, device, PushProvider.APNS)
    assert (result.outcome, result.error_class) == (outcome, error_class)
    assert reason in result.excerpt


@pytest.mark.parametrize(("to", "error_class"), [(SILENT, "timeout"), (CUT, "disconnected")])
async def test_a_lost_answer_leaves_it_unknown(
    authority: Authority, to: str, error_class: str
) -> None:
    """It was sent, and may ring; the next notification finds a connection again."""
    async with apns(authority, ManualClock(NOW), patience=timedelta(seconds=2)) as (_, sender):
        result = await sent(sender, to, PushProvider.APNS)
        assert (result.outcome, result.error_class) == (Outcome.UNKNOWN, error_class)
        assert (await sent(sender, DEVICE, PushProvider.APNS)).outcome is Outcome.OK


async def test_a_wrong_key_id_and_an_unbelieved_server_are_transient(authority: Authority) -> None:
    """Both are for who operates Tocsin; nothing was sent."""
    async with apns(authority, ManualClock(NOW), key_id="OTHER12345") as (server, sender):
        result = await sent(sender, DEVICE, PushProvider.APNS)
        assert (result.outcome, result.error_class) == (Outcome.TRANSIENT, "provider_auth")
        key = ApnsKey(private_key=server.private_key(), key_id=KEY_ID, team_id=TEAM_ID, topic=TOPIC)
        url = f"https://localhost:{server.port}"
        async with Apns(ManualClock(NOW), key, tls_context(None), base_url=url) as service:
            stranger = PushSender({PushProvider.APNS: service})
            result = await sent(stranger, DEVICE, PushProvider.APNS)
        assert (result.outcome, result.error_class) == (Outcome.TRANSIENT, "connect")
        assert server.pushed == []


async def test_a_provider_that_is_not_configured_fails_visibly(authority: Authority) -> None:
    """APNs alone is configured; and a token that can be none reaches nobody."""
    async with apns(authority, ManualClock(NOW)) as (server, sender):
        result = await sent(sender, "d", PushProvider.FCM)
        assert (result.outcome, result.error_class) == (Outcome.PERMANENT, "channel_unavailable")
        result = await sent(sender, "../../3/device/x", PushProvider.APNS)
        assert (result.outcome, result.error_class) == (Outcome.PERMANENT, "address_invalid")
        assert server.pushed == []

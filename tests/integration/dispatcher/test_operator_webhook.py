"""What the operator's endpoint gets, by the configuration, through the real channel."""

import json
from datetime import UTC, datetime

import pytest
import standardwebhooks
from aiohttp import web
from pydantic import SecretStr, ValidationError

from dispatcher.channels.opening import open_channels
from dispatcher.channels.port import Outcome
from reminders.clock import ManualClock
from reminders.config.settings import Settings
from reminders.model.definition import Webhook
from reminders.namespaces import EVENTS, EVENTS_SECRET_ID
from tests.standins.http import serving
from tests.standins.sending import KEY, outgoing

SECRET = "whsec_" + "bmV3IHNlY3JldCBvZiAzMiBieXRlcyAhISEhISEhISE="


async def test_an_event_is_the_whole_body_signed_as_standard_webhooks_wants() -> None:
    """With the library that receivers use."""
    received: list[tuple[dict[str, str], bytes]] = []

    async def handle(request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        received.append((headers, await request.read()))
        return web.Response()

    async with serving(handle) as base:
        settings = Settings(
            events_url=f"{base}/events",
            events_secret=(SecretStr(SECRET),),
            allow_loopback_http=True,
        )
        clock = ManualClock(datetime.now(UTC))
        target = Webhook(url=f"{base}/events", secret_id=EVENTS_SECRET_ID)
        event = json.dumps({"type": "endpoint.disabled", "timestamp": "t", "data": {"a": 1}})
        async with open_channels(settings, clock) as senders:
            result = await senders["webhook"].send(outgoing(target, event, namespace=EVENTS))
    assert result.outcome is Outcome.OK
    ((headers, body),) = received
    found = standardwebhooks.Webhook(SECRET).verify(body, headers)
    assert found == {"type": "endpoint.disabled", "timestamp": "t", "data": {"a": 1}}
    assert headers["webhook-id"] == KEY


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"events_url": "https://operator.example.com/"}, "events_secret"),
        ({"events_url": "https://10.0.0.1/", "events_secret": (SECRET,)}, "private"),
        ({"events_secret": ("secret",)}, "signing secret"),
        ({"disable_endpoint_after": "5m"}, "disable_endpoint_after"),
    ],
)
def test_a_wrong_configuration_says_what_is_right(values: dict[str, object], says: str) -> None:
    """Before anything is sent; and repeats no secret."""
    with pytest.raises(ValidationError) as refused:
        Settings(**values)  # type: ignore[arg-type]
    text = " ".join(
        str(error["loc"]) + str(error["msg"]) + str(error.get("ctx"))
        for error in refused.value.errors()
    )
    assert says in text

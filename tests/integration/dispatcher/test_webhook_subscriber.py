"""Webhooks to a topic's subscriber: signed with its secrets, in its zone."""

import base64
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import standardwebhooks
from msgspec.structs import replace

from dispatcher.channels.port import Outgoing
from dispatcher.channels.webhook import WebhookSender
from reminders.clock import ManualClock
from reminders.model.subscriber import Secret, Subscriber
from tests.integration.dispatcher.test_webhook_channel import LOOPBACK, NOW, outgoing

HOUR = timedelta(hours=1)
OLD, NEW = ("whsec_" + base64.b64encode(byte * 24).decode() for byte in (b"o", b"n"))


@pytest.fixture
def clock() -> ManualClock:
    """An hour after the rotation began."""
    return ManualClock(NOW)


@pytest.fixture
async def sender(clock: ManualClock) -> AsyncIterator[WebhookSender]:
    """Loopback HTTP is allowed."""
    async with WebhookSender(clock, LOOPBACK) as it:
        yield it


def to_subscriber(url: str, time_zone: str = "") -> Outgoing:
    """Its secret was rotated an hour ago; the old one is valid for a day."""
    bare = outgoing(url)
    subscriber = Subscriber(
        namespace="default",
        topic_id="deploys",
        subscriber_id="a@b+c",
        channel=bare.channel,
        secrets=(
            Secret(
                secret_id="2", value=NEW, made_at=NOW - HOUR, overlap=timedelta(days=1), stamp=2
            ),
            Secret(secret_id="1", value=OLD, made_at=NOW - 9 * HOUR, stamp=1),
        ),
        time_zone=time_zone,
        created_at=NOW,
        updated_at=NOW,
        stamp=1,
    )
    return replace(bare, user_id="", subscriber=subscriber)


async def test_both_secrets_sign_while_one_rotates(
    receiver: Any, sender: WebhookSender, clock: ManualClock
) -> None:
    """The newer first; either verifies by the library that receivers use. Then one is left."""
    await sender.send(to_subscriber(receiver.url()))
    clock.advance(2 * timedelta(days=1))
    await sender.send(to_subscriber(receiver.url()))
    first, second = receiver.received
    for secret in (OLD, NEW):
        verify(secret, first)
    signatures = first.headers["webhook-signature"].split()
    assert len(signatures) == 2
    assert second.headers["webhook-signature"].count("v1,") == 1
    verify(NEW, second)
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        verify(OLD, second)


def verify(secret: str, request: Any) -> None:
    """As a receiver does, but not by the clock of this machine."""
    hook = standardwebhooks.Webhook(secret)
    message_id, at = request.headers["webhook-id"], request.headers["webhook-timestamp"]
    sent_at = datetime.fromtimestamp(int(at), tz=UTC)
    expected = hook.sign(message_id, sent_at, request.body.decode())
    if expected not in request.headers["webhook-signature"].split():
        raise standardwebhooks.WebhookVerificationError("no matching signature")


async def test_it_says_whom_it_is_for(receiver: Any, sender: WebhookSender) -> None:
    """In a header and in the body, with the local time of the subscriber's own zone."""
    await sender.send(to_subscriber(receiver.url(), "America/New_York"))
    await sender.send(replace(to_subscriber(receiver.url()), test=True))
    await sender.send(outgoing(receiver.url()))
    zoned, test, user = ((json.loads(each.body), each.headers) for each in receiver.received)
    body, headers = zoned
    assert headers["x-tocsin-subscriber"] == "a%40b%2Bc"
    assert (body["topicId"], body["subscriberId"]) == ("deploys", "a@b+c")
    assert body["subscriberLocal"] == "2026-03-28T21:00:00"
    assert body["subscriberTimeZone"] == "America/New_York"
    assert body["plannedLocal"] == "2026-03-29T03:00:00", "what was promised stays"
    assert "test" not in body
    assert test[0]["test"] is True
    assert not {"subscriberLocal", "subscriberTimeZone"} & set(test[0])
    assert not {"topicId", "subscriberId", "test"} & set(user[0])
    assert "x-tocsin-subscriber" not in user[1]


async def test_no_secret_of_a_subscriber_is_kept(receiver: Any, sender: WebhookSender) -> None:
    """Also one that has become invalid, where a receiver throws it back."""
    receiver.answers(500, f"bad signature: {OLD} {NEW} {base64.b64encode(b'x' * 9).decode()}")
    result = await sender.send(to_subscriber(receiver.url()))
    assert "bad signature" in result.excerpt
    assert OLD not in result.excerpt
    assert NEW not in result.excerpt

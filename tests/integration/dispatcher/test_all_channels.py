"""One reminder with every kind of channel, from the gRPC call to each provider and the ledger."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import pytest
import standardwebhooks
from aiohttp import web
from tocsin.v1 import recipient_service_pb2 as recipient_pb
from tocsin.v1 import reminder_pb2 as pb
from tocsin.v1 import reminder_service_pb2 as calls
from tocsin.v1.recipient_service_pb2_grpc import RecipientServiceStub
from tocsin.v1.reminder_service_pb2_grpc import ReminderServiceStub

from reminders.cli import inmemory
from reminders.config.settings import Settings
from reminders.localstack.ports import free_port
from tests.standins.apns import KEY_ID, TEAM_ID, TOPIC, ApnsServer, apns_server
from tests.standins.fcm import FcmApi
from tests.standins.http import serving
from tests.standins.smtp import MailServer, mail_server
from tests.standins.tls import Authority
from tests.standins.twilio import SENDER, SID, TOKEN, TwilioApi

SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
PATIENCE_S = 20


class Providers:
    """All stand-ins, and the settings that name them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.twilio = TwilioApi()
        self.fcm = FcmApi(lambda: datetime.now(UTC))
        self.hooks: list[tuple[dict[str, str], bytes]] = []
        self.mail: MailServer
        self.apns: ApnsServer
        self.settings: Settings

    async def hook(self, request: web.Request) -> web.Response:
        """The webhook's receiver."""
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.hooks.append((headers, await request.read()))
        return web.Response(text="thanks")


@asynccontextmanager
async def providers(folder: Path) -> AsyncIterator[tuple[Providers, str]]:
    """Everything up; gives the webhook's URL as well."""
    it = Providers(folder)
    authority = Authority.make(folder)
    tls = authority.server("localhost")
    async with AsyncExitStack() as stack:
        twilio = await stack.enter_async_context(serving(it.twilio.handle, tls))
        it.fcm.url = await stack.enter_async_context(serving(it.fcm.handle, tls))
        hooks = await stack.enter_async_context(serving(it.hook))
        it.mail = await stack.enter_async_context(mail_server(authority.server("localhost")))
        it.apns = await stack.enter_async_context(
            apns_server(authority.server("localhost"), lambda: datetime.now(UTC))
        )
        (folder / "fcm.json").write_text(json.dumps(it.fcm.service_account()))
        (folder / "apns.p8").write_text(it.apns.private_key())
        it.settings = Settings(
            grpc_address=f"127.0.0.1:{free_port()}",
            allow_loopback_http=True,
            shards=2,
            provider_ca_file=authority.file,
            templates_dir=str(folder / "templates"),
            signing_secrets={"default/main": (SECRET,)},  # type: ignore[dict-item]
            smtp_host="localhost",
            smtp_port=it.mail.port,
            smtp_username="tocsin",
            smtp_password=it.mail.password,  # type: ignore[arg-type]
            smtp_from="Tocsin <reminders@example.com>",
            sms_provider="twilio",
            twilio_account_sid=SID,
            twilio_auth_token=TOKEN,  # type: ignore[arg-type]
            twilio_from=SENDER,
            twilio_url=twilio,
            fcm_credentials_file=str(folder / "fcm.json"),
            fcm_url=it.fcm.url,
            apns_key_file=str(folder / "apns.p8"),
            apns_key_id=KEY_ID,
            apns_team_id=TEAM_ID,
            apns_topic=TOPIC,
            apns_url=f"https://localhost:{it.apns.port}",
        )
        yield it, f"{hooks}/hook"


def reminder(url: str) -> pb.Reminder:
    """Rings at once, by every channel, most by the user's record; one number is refused for
    good.
    """
    it = pb.Reminder(user_id="u1", template_id="tea")
    it.schedule.after.SetInParent()
    it.params.update({"who": "Ada", "title": "Tea"})
    it.channels.extend(
        [
            pb.Channel(webhook=pb.WebhookChannel(url=url, secret_id="main")),
            pb.Channel(email=pb.EmailChannel(subject="From the channel")),
            pb.Channel(sms=pb.SmsChannel()),
            pb.Channel(channel_id="stopped", sms=pb.SmsChannel(to="+15005550004")),
            pb.Channel(push=pb.PushChannel(provider=pb.PUSH_PROVIDER_FCM)),
            pb.Channel(
                channel_id="ios",
                push=pb.PushChannel(to="a1" * 32, provider=pb.PUSH_PROVIDER_APNS),
            ),
            pb.Channel(log=pb.LogChannel()),
        ]
    )
    return it


def record() -> recipient_pb.Recipient:
    """Of the same user, with another language than the templates' default."""
    push = [
        recipient_pb.PushAddress(token="b2" * 32, provider=pb.PUSH_PROVIDER_APNS),
        recipient_pb.PushAddress(token="device:1", provider=pb.PUSH_PROVIDER_FCM),
    ]
    return recipient_pb.Recipient(
        user_id="u1", email="ada@example.com", sms="+33123456789", push=push, locale="fr"
    )


async def ended(stub: Any, reminder_id: str, count: int) -> dict[str, pb.Delivery]:
    """The deliveries by channel, once all of them have ended."""
    open_ones = {
        pb.DELIVERY_STATUS_PENDING,
        pb.DELIVERY_STATUS_SENDING,
        pb.DELIVERY_STATUS_RETRYING,
    }
    async with asyncio.timeout(PATIENCE_S):
        while True:
            answer = await stub.ListDeliveries(calls.ListDeliveriesRequest(reminder_id=reminder_id))
            found = {each.channel_id: each for each in answer.deliveries}
            if len(found) == count and not open_ones & {each.status for each in found.values()}:
                return found
            await asyncio.sleep(0.02)


@pytest.fixture
def templates(tmp_path: Path) -> None:
    """`tea`: e-mail in two parts, SMS, push; none for webhooks."""
    for place, parts in {
        "email/default": {"text.txt": "Dear {{ who }}", "html.html": "<b>{{ who }}</b>"},
        "sms/default": {"text.txt": "{{ who }}: tea!"},
        "sms/fr": {"text.txt": "{{ who }} : le thé !"},
        "push/default": {"title.txt": "{{ title }} for {{ who }}", "text.txt": "now"},
    }.items():
        folder = tmp_path / "templates/default/tea" / place
        folder.mkdir(parents=True)
        for name, content in parts.items():
            (folder / name).write_text(content)


@pytest.mark.usefixtures("templates")
async def test_one_reminder_by_every_channel(tmp_path: Path) -> None:
    """Each is delivered with a key of its own; the one that is refused fails alone."""
    stop = asyncio.Event()
    async with (
        providers(tmp_path) as (it, url),
        inmemory.build(it.settings, stop) as everything,
        grpc.aio.insecure_channel(it.settings.grpc_address) as channel,
    ):
        running = asyncio.create_task(everything.run(stop))
        stub: Any = ReminderServiceStub(channel)
        full = reminder(url)
        # HTTP/2 first: it must not rub off on those who speak HTTP/1.1 with the same authorities.
        first = pb.Reminder(user_id="u1", schedule=full.schedule, channels=[full.channels[5]])
        recipients: Any = RecipientServiceStub(channel)
        put = recipient_pb.PutRecipientRequest(recipient=record())
        await recipients.PutRecipient(put, wait_for_ready=True)
        found: dict[str, pb.Delivery] = {}
        for each, count in ((first, 1), (full, 7)):
            made = await stub.CreateReminder(
                calls.CreateReminderRequest(reminder=each), wait_for_ready=True
            )
            found = await ended(stub, made.reminder.reminder_id, count)
        stop.set()
        await running
    status = {name: pb.DeliveryStatus.Name(each.status) for name, each in found.items()}
    delivered = "DELIVERY_STATUS_DELIVERED"
    assert status == {
        "webhook": "DELIVERY_STATUS_CONFIRMED",
        "email": delivered,
        "sms": delivered,
        "stopped": "DELIVERY_STATUS_FAILED",
        "push": delivered,
        "ios": delivered,
        "log": delivered,
    }
    assert found["stopped"].error_class == "opted_out"
    assert len({each.delivery_key for each in found.values()}) == 7

    ((headers, body),) = it.hooks
    told = standardwebhooks.Webhook(SECRET).verify(body, headers)
    assert told["eventId"] == found["webhook"].delivery_key
    assert told["payload"] == {"title": "Tea", "who": "Ada"}
    (mail,) = it.mail.mails
    assert mail["Message-ID"] == f"<{found['email'].delivery_key}@example.com>"
    assert mail["Subject"] == "From the channel"
    assert [part.get_content().strip() for part in mail.iter_parts()] == [
        "Dear Ada",
        "<b>Ada</b>",
    ]
    assert [message["Body"] for message in it.twilio.messages] == ["Ada : le thé !"]
    assert [message["To"] for message in it.twilio.messages] == ["+33123456789"]
    assert mail["To"] == "ada@example.com"
    (message,) = it.fcm.messages
    assert message["token"] == "device:1"
    assert message["notification"] == {"title": "Tea for Ada", "body": "now"}
    assert message["data"]["eventId"] == found["push"].delivery_key
    _, pushed = it.apns.pushed
    assert pushed.body["aps"]["alert"] == {"title": "Tea for Ada", "body": "now"}
    assert found["ios"].provider_event_id == pushed.headers["apns-id"]

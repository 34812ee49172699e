"""The channels as the configuration has them: opened together, closed together.

The push services are imported where one is configured: what they bring (httpx, PyJWT, cryptography)
would be nearly half of a dispatcher's start.
"""

import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import msgspec

from dispatcher.channels import Senders
from dispatcher.channels.email import EmailSender
from dispatcher.channels.guard import Resolver
from dispatcher.channels.log import LogSender
from dispatcher.channels.masking import Mask
from dispatcher.channels.port import ChannelSender
from dispatcher.channels.provider import provider_session, tls_context
from dispatcher.channels.push import PushSender, PushService
from dispatcher.channels.signing import keys_of
from dispatcher.channels.sms import SmsProvider, SmsSender
from dispatcher.channels.sms_http import HttpGateway, HttpSms
from dispatcher.channels.smtp import SmtpPool, SmtpServer
from dispatcher.channels.templates import Templates
from dispatcher.channels.twilio import Twilio, TwilioAccount
from dispatcher.channels.webhook import WebhookRules, WebhookSender
from reminders.config.channels import ChannelSettings
from reminders.config.problems import ConfigError
from reminders.config.settings import Settings
from reminders.model.definition import PushProvider
from reminders.namespaces import EVENTS, EVENTS_SECRET_ID
from reminders.ports import Clock

if TYPE_CHECKING:
    from dispatcher.channels.apns import Apns
    from dispatcher.channels.fcm import Fcm


@asynccontextmanager
async def open_channels(settings: Settings, clock: Clock) -> AsyncIterator[Senders]:
    """By kind. Nothing is connected before the first delivery.

    Raises:
        ConfigError: A kind is to be served that has no provider here, or a key can't be read.
    """
    missing = sorted(settings.served - set(settings.configured))
    if missing:
        raise ConfigError(
            [f"TOCSIN_CHANNELS names {each}, and no provider of it is set here" for each in missing]
        )
    async with AsyncExitStack() as stack:
        opening = _Opening(settings, clock, stack)
        senders: dict[str, ChannelSender] = {"webhook": await opening.webhook(), "log": LogSender()}
        if "email" in settings.configured:
            senders["email"] = opening.email()
        if "sms" in settings.configured:
            senders["sms"] = await opening.sms()
        if "push" in settings.configured:
            senders["push"] = await opening.push()
        yield senders


class _Opening:
    """What the channels share."""

    def __init__(self, settings: Settings, clock: Clock, stack: AsyncExitStack) -> None:
        self._settings = settings
        self._clock = clock
        self._stack = stack
        folder = Path(settings.templates_dir) if settings.templates_dir is not None else None
        self._templates = Templates(folder)
        stack.callback(self._templates.close)
        self._context = _tls("provider_ca_file", settings.provider_ca_file)
        self._session: aiohttp.ClientSession | None = None

    async def webhook(self) -> WebhookSender:
        """Always there."""
        settings = self._settings
        texts = settings.secret_texts
        texts[f"{EVENTS}/{EVENTS_SECRET_ID}"] = settings.events_secret_texts
        rules = WebhookRules(
            allow_loopback_http=settings.allow_loopback_http,
            ports=settings.ports,
            keys=keys_of(texts),
            secrets=tuple(each for secrets in texts.values() for each in secrets),
            tls=_tls("webhook_ca_file", settings.webhook_ca_file),
        )
        sender = WebhookSender(
            self._clock,
            rules,
            templates=self._templates,
            resolver=Resolver(settings.dns_servers),
        )
        return await self._stack.enter_async_context(sender)

    def email(self) -> EmailSender:
        """By SMTP."""
        settings = self._settings
        assert settings.smtp_host is not None, "it is configured"
        assert settings.smtp_from is not None, "the settings are consistent"
        password = settings.smtp_password.get_secret_value() if settings.smtp_password else None
        pool = SmtpPool(
            SmtpServer(
                host=settings.smtp_host,
                port=settings.smtp_port,
                tls=settings.smtp_tls,
                username=settings.smtp_username,
                password=password,
                context=self._context,
            ),
            size=settings.smtp_connections,
        )
        self._stack.push_async_callback(pool.close)
        return EmailSender(
            self._clock,
            pool,
            sender=settings.smtp_from,
            mask=Mask([password] if password else []),
            templates=self._templates,
        )

    async def sms(self) -> SmsSender:
        """By Twilio, or by any JSON API."""
        settings, session = self._settings, await self._http()
        provider: SmsProvider
        if settings.sms_provider == "twilio":
            account = twilio_account(settings)
            mask = Mask(account.secrets)
            provider = Twilio(self._clock, session, account, mask)
        else:
            gateway = http_gateway(settings)
            mask = Mask([gateway.authorization] if gateway.authorization else [])
            provider = HttpSms(self._clock, session, gateway, mask)
        return SmsSender(provider, mask, templates=self._templates)

    async def push(self) -> PushSender:
        """By whichever of the two is configured."""
        settings = self._settings
        services: dict[PushProvider, PushService] = {}
        if settings.fcm_credentials_file is not None:
            services[PushProvider.FCM] = self._fcm(
                settings.fcm_credentials_file, await self._http()
            )
        if settings.apns_key_file is not None:
            apns = self._apns(settings.apns_key_file)
            services[PushProvider.APNS] = await self._stack.enter_async_context(apns)
        return PushSender(services, templates=self._templates)

    def _fcm(self, path: str, session: aiohttp.ClientSession) -> "Fcm":
        from dispatcher.channels.fcm import Fcm, ServiceAccount  # noqa: PLC0415

        try:
            account = msgspec.json.decode(Path(path).read_bytes(), type=ServiceAccount)
            return Fcm(self._clock, session, account, base_url=self._settings.fcm_url)
        except (OSError, ValueError) as error:
            raise _unreadable("fcm_credentials_file", path, "a service account", error) from None

    def _apns(self, path: str) -> "Apns":
        from dispatcher.channels.apns import Apns, ApnsKey  # noqa: PLC0415

        settings = self._settings
        try:
            key = ApnsKey(
                private_key=Path(path).read_text(encoding="ascii"),
                key_id=settings.apns_key_id or "",
                team_id=settings.apns_team_id or "",
                topic=settings.apns_topic or "",
            )
            # A context of its own: httpx offers HTTP/2 by it, to whoever is connected to with it.
            context = _tls("provider_ca_file", settings.provider_ca_file)
            return Apns(self._clock, key, context, base_url=settings.apns_url)
        except (OSError, ValueError) as error:
            raise _unreadable("apns_key_file", path, "a .p8 key of Apple", error) from None

    async def _http(self) -> aiohttp.ClientSession:
        if self._session is None:
            session = provider_session(self._context)
            self._session = await self._stack.enter_async_context(session)
        return self._session


def _tls(field: str, path: str | None) -> ssl.SSLContext:
    try:
        return tls_context(path)
    except OSError as error:
        raise _unreadable(field, str(path), "certificates in PEM", error) from None


def twilio_account(settings: ChannelSettings) -> TwilioAccount:
    """As configured; the settings are consistent."""
    assert settings.twilio_account_sid is not None
    assert settings.twilio_auth_token is not None
    assert settings.twilio_from is not None
    return TwilioAccount(
        account_sid=settings.twilio_account_sid,
        user=settings.twilio_api_key or settings.twilio_account_sid,
        password=settings.twilio_auth_token.get_secret_value(),
        sender=settings.twilio_from,
        base_url=settings.twilio_url,
    )


def http_gateway(settings: ChannelSettings) -> HttpGateway:
    """As configured; the settings are consistent."""
    assert settings.sms_http_url is not None
    authorization = settings.sms_http_authorization
    return HttpGateway(
        url=settings.sms_http_url,
        body=settings.sms_http_body,
        authorization=authorization.get_secret_value() if authorization else None,
        id_path=settings.sms_http_id,
    )


def _unreadable(field: str, path: str, what: str, error: Exception) -> ConfigError:
    """Names the file and not what is in it: msgspec and ssl quote nothing, but who knows."""
    wrong = isinstance(error, (ValueError, ssl.SSLError))
    said = f"not {what}" if wrong else str(getattr(error, "strerror", error))
    return ConfigError([f"TOCSIN_{field.upper()}={path!r}: {said}"])

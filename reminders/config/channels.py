"""The settings of the channels: where they go, with whose credentials. Part of `Settings`."""

from collections.abc import Mapping
from email.utils import parseaddr
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

import msgspec
from pydantic import BeforeValidator, Field, SecretStr, model_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from reminders.addresses import email_problem
from reminders.signing_secrets import key_of
from reminders.urls import Ports, ports_of

ChannelKind = Literal["webhook", "log", "email", "sms", "push"]
ALWAYS: tuple[ChannelKind, ...] = ("webhook", "log")
"""Need no provider."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def _list(value: Any) -> Any:
    items = value.split(",") if isinstance(value, str) else value
    if isinstance(items, int):
        items = [items]
    return tuple(str(item).strip() for item in items if str(item).strip())


def _ports(value: Any) -> Any:
    texts = _list(value)
    ports_of(texts)
    return texts


def _servers(value: Any) -> Any:
    """Each with its port: the resolver's library takes it so."""
    return tuple(item if urlsplit(f"//{item}").port else f"{item}:53" for item in _list(value))


def _secrets(value: Any) -> Any:
    """`default/main=whsec_new whsec_old,acme/x=whsec_…`, or a table of strings or lists."""
    if isinstance(value, str):
        pairs = (item.strip().partition("=") for item in value.split(",") if item.strip())
        value = {name.strip(): text.split() for name, _, text in pairs}
    if not isinstance(value, Mapping):
        raise ValueError("not namespace/name=secret, …")  # noqa: TRY004 - pydantic wants ValueError
    found = {}
    for name, given in value.items():
        secrets = (given,) if isinstance(given, str) else tuple(given)
        namespace, slash, secret_id = str(name).partition("/")
        if not (namespace and slash and secret_id):
            raise ValueError("an entry does not begin with namespace/name")  # may be a secret
        if not 1 <= len(secrets) <= 2:
            raise ValueError(f"{name} has {len(secrets)} secrets; one, or two while it rotates")
        for each in secrets:
            key_of(each.get_secret_value() if isinstance(each, SecretStr) else str(each))
        found[name] = secrets
    return found


def _mailbox(value: str) -> str:
    address = parseaddr(value)[1]
    problem = email_problem(address) if value.isprintable() else "it is one line"
    if problem:
        raise ValueError(problem)
    return value


def _url(value: str) -> str:
    parts = urlsplit(value)
    loopback = parts.hostname in LOOPBACK
    if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and loopback)):
        raise ValueError("the URL starts with https://")
    if "@" in parts.netloc or parts.query:
        raise ValueError("no credentials and no query in this URL: it is shown")
    return value.rstrip("/")


def _file(value: Any) -> Any:
    if not Path(value).is_file():
        raise ValueError("no such file")
    return value


def _folder(value: Any) -> Any:
    if not Path(value).is_dir():
        raise ValueError("no such folder")
    return value


def _json(value: Any) -> Any:
    """An object, as text."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if not isinstance(msgspec.json.decode(text), dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 - pydantic wants ValueError
    return text


Kinds = Annotated[tuple[ChannelKind, ...], NoDecode, BeforeValidator(_list)]
PortTexts = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_ports), Field(min_length=1)]
Servers = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_servers)]
SigningSecrets = Annotated[dict[str, tuple[SecretStr, ...]], NoDecode, BeforeValidator(_secrets)]
Mailbox = Annotated[str, BeforeValidator(_mailbox)]
Url = Annotated[str, BeforeValidator(_url)]
File = Annotated[str, BeforeValidator(_file)]
Folder = Annotated[str, BeforeValidator(_folder)]
JsonObject = Annotated[str, BeforeValidator(_json)]


class ChannelSettings(BaseSettings):
    """A channel is served where its provider is configured."""

    model_config = SettingsConfigDict(use_attribute_docstrings=True)

    channels: Kinds = ()
    """Kinds that may be created: webhook, log, email, sms, push; unset: those configured here."""

    webhook_ports: PortTexts = ("443", "8443")
    """Ports that webhooks may go to, such as 443,8000-8999; 1-65535 allows all."""
    webhook_ca_file: File | None = None
    """Certificates (PEM) of authorities that receivers may have, beside the system's."""
    signing_secrets: SigningSecrets = {}
    """namespace/name=secret, …: they sign webhooks; two by a blank while one rotates, new first."""
    dns_servers: Servers = ()
    """Name servers for webhooks as address:port, separated by commas; unset: the system's."""
    templates_dir: Folder | None = None
    """Folder of namespace/template/channel/locale/part; unset: templates are only named."""
    provider_ca_file: File | None = None
    """Certificates (PEM) that mail server and providers may have, beside the system's."""

    smtp_host: str | None = None
    """The mail server that e-mails are given to; unset: no e-mail."""
    smtp_port: int = Field(default=587, ge=1, le=65_535)
    """1 to 65535; 587 goes with starttls, 465 with tls."""
    smtp_tls: Literal["starttls", "tls", "none"] = "starttls"
    """starttls or tls, both with a checked certificate; none only where nobody listens."""
    smtp_username: str | None = None
    """With the password, or both unset."""
    smtp_password: SecretStr | None = None
    """With the user name, or both unset."""
    smtp_from: Mailbox | None = None
    """The sender, such as Tocsin <reminders@example.com>; needed for e-mail."""
    smtp_connections: int = Field(default=16, ge=1, le=1000)
    """Connections of one dispatcher to the mail server, 1 to 1000; a delivery waits for one."""

    sms_provider: Literal["twilio", "http"] | None = None
    """twilio or http; unset: no SMS."""
    twilio_account_sid: str | None = Field(default=None, pattern=r"^AC[0-9a-zA-Z]{32}$")
    """AC and 32 characters."""
    twilio_auth_token: SecretStr | None = None
    """Of the account, or the secret of the API key."""
    twilio_api_key: str | None = Field(default=None, pattern=r"^SK[0-9a-zA-Z]{32}$")
    """SK and 32 characters, where an API key is used."""
    twilio_from: str | None = Field(
        default=None, pattern=r"^(\+[1-9][0-9]{1,14}|MG[0-9a-zA-Z]{32})$"
    )
    """The sender's number such as +15005550006, or the SID of a messaging service (MG…)."""
    twilio_url: Url = "https://api.twilio.com"
    """Where Twilio's API is."""
    sms_http_url: Url | None = None
    """Where SMS are posted to, if TOCSIN_SMS_PROVIDER is http."""
    sms_http_body: JsonObject = '{"to":"{to}","text":"{text}","idempotencyKey":"{key}"}'
    """The JSON that is posted; {to}, {text} and {key} (the delivery key) stand inside strings."""
    sms_http_authorization: SecretStr | None = None
    """The header Authorization of these requests, such as Bearer …"""
    sms_http_id: str = "id"
    """Where the answer names the message: keys and positions by dots, such as messages.0.id."""

    fcm_credentials_file: File | None = None
    """The service account's key (JSON) of Firebase; unset: no push by FCM."""
    fcm_url: Url = "https://fcm.googleapis.com"
    """Where FCM's API is."""
    apns_key_file: File | None = None
    """The signing key (.p8) of Apple; unset: no push by APNs."""
    apns_key_id: str | None = Field(default=None, pattern=r"^[0-9A-Z]{10}$")
    """The key's ten characters."""
    apns_team_id: str | None = Field(default=None, pattern=r"^[0-9A-Z]{10}$")
    """The team's ten characters."""
    apns_topic: str | None = None
    """The app's bundle id, such as com.example.app."""
    apns_url: Url = "https://api.push.apple.com"
    """Where APNs is; https://api.sandbox.push.apple.com for development builds."""

    @property
    def ports(self) -> Ports:
        """`webhook_ports` as ranges."""
        return ports_of(self.webhook_ports)

    @property
    def secret_texts(self) -> dict[str, tuple[str, ...]]:
        """`signing_secrets` in the clear: for who signs."""
        return {
            name: tuple(each.get_secret_value() for each in secrets)
            for name, secrets in self.signing_secrets.items()
        }

    @property
    def configured(self) -> tuple[ChannelKind, ...]:
        """What this process could deliver by."""
        push = self.fcm_credentials_file or self.apns_key_file
        providers: dict[ChannelKind, Any] = {
            "email": self.smtp_host,
            "sms": self.sms_provider,
            "push": push,
        }
        return ALWAYS + tuple(kind for kind, provider in providers.items() if provider)

    @property
    def served(self) -> frozenset[ChannelKind]:
        """What may be created."""
        return frozenset(self.channels or self.configured)

    @property
    def _mails_itself(self) -> bool:
        return self.smtp_host in LOOPBACK

    @model_validator(mode="after")
    def _complete(self) -> Self:
        """A provider without what it needs would fail at the first reminder."""
        if (self.smtp_username is None) != (self.smtp_password is None):
            missing = "password" if self.smtp_password is None else "username"
            raise _missing(f"smtp_{missing}", "missing beside the other one")
        if self.smtp_tls == "none" and self.smtp_password is not None and not self._mails_itself:
            raise _missing("smtp_tls", "a password goes to another machine by TLS only")
        needs = {
            "TOCSIN_SMTP_HOST": (self.smtp_host, ("smtp_from",)),
            "TOCSIN_SMS_PROVIDER=twilio": (
                self.sms_provider == "twilio",
                ("twilio_account_sid", "twilio_auth_token", "twilio_from"),
            ),
            "TOCSIN_SMS_PROVIDER=http": (self.sms_provider == "http", ("sms_http_url",)),
            "TOCSIN_APNS_KEY_FILE": (
                self.apns_key_file,
                ("apns_key_id", "apns_team_id", "apns_topic"),
            ),
        }
        for why, (wanted, names) in needs.items():
            for name in names:
                if wanted and getattr(self, name) is None:
                    raise _missing(name, f"needed by {why}")
        return self


def _missing(field: str, message: str) -> PydanticCustomError:
    return PydanticCustomError("conflict", message, {"field": field})

"""Credentials reach providers, and nothing that is kept: no result, no log line, no error.

Secrets are planted in every setting that takes one, everything that can be captured is captured,
and searched. Every receiver answers with what it was sent, cut at many places.
"""

import base64
import io
import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from msgspec.structs import asdict

from dispatcher.channels import Senders
from dispatcher.channels.opening import open_channels
from dispatcher.channels.port import Outgoing, Result
from reminders.clock import ManualClock
from reminders.config.problems import ConfigError
from reminders.config.report import report
from reminders.config.settings import Settings, load_settings
from reminders.model.definition import Email, Push, PushProvider, Sms, Target, Webhook
from reminders.telemetry.logs import configure_logging
from tests.standins.apns import KEY_ID, TEAM_ID, TOPIC, ApnsServer, apns_server
from tests.standins.http import serving
from tests.standins.sending import NOW, outgoing
from tests.standins.smtp import MailServer, mail_server
from tests.standins.tls import Authority

SMTP_PASSWORD = "canary smtp/p@ss&word"
TWILIO_TOKEN = "canary-twilio-t0ken"
GATEWAY = "Bearer canary-gateway-t0ken"
HOOK_HEADER = "Bearer canary-header-t0ken"
HOOK_PATH = "/services/canary-hook-path"
ACCESS = "ya29.canary-access-t0ken"
SIGNING = "whsec_" + base64.b64encode(b"canary signing secret of 32 byte").decode()
SECRETS = (SMTP_PASSWORD, TWILIO_TOKEN, GATEWAY, HOOK_HEADER, ACCESS, SIGNING)
STATUSES = (200, 201, 302, 400, 401, 403, 429, 500, 503)
PADS = range(180, 262, 3)
"""An excerpt ends after 256 characters: here or there, it ends within a secret."""


@dataclass
class Echo:
    """Answers with all that it was sent, after some padding."""

    status: int = 400
    pad: int = 0
    heard: list[str] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Headers, path and body; Google's token endpoint gives a token first."""
        body = (await request.read()).decode()
        if request.path == "/token" and self.status != 401:
            return web.json_response({"access_token": ACCESS, "expires_in": 3599})
        said = " ".join([*request.headers.values(), request.path_qs, body])
        self.heard.append(said)
        text = "x" * self.pad + said
        if self.pad % 2:
            text = json.dumps({"message": text, "sid": said, "id": said, "name": said})
        return web.Response(status=self.status, text=text)


@dataclass
class Scene:
    """Everything that could hold a secret."""

    settings: dict[str, Any]
    echo: Echo
    mail: MailServer
    apns: ApnsServer
    keys: tuple[str, ...]


@asynccontextmanager
async def scene(folder: Path) -> AsyncIterator[Scene]:
    """Providers that echo, and the settings that name them."""
    authority = Authority.make(folder)
    echo = Echo()
    rsa_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    fcm_pem = rsa_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    async with (
        serving(echo.handle) as url,
        mail_server(authority.server("localhost")) as mail,
        apns_server(authority.server("localhost"), lambda: NOW) as apns,
    ):
        mail.password = SMTP_PASSWORD
        (folder / "apns.p8").write_text(apns.private_key())
        account = {
            "project_id": "p",
            "client_email": "a@b",
            "private_key": fcm_pem,
            "token_uri": f"{url}/token",
        }
        (folder / "fcm.json").write_text(json.dumps(account))
        settings = {
            "allow_loopback_http": True,
            "provider_ca_file": authority.file,
            "signing_secrets": f"default/main={SIGNING}",
            "smtp_host": "localhost",
            "smtp_port": mail.port,
            "smtp_username": "tocsin",
            "smtp_password": SMTP_PASSWORD,
            "smtp_from": "a@b.example",
            "sms_provider": "twilio",
            "twilio_account_sid": "AC" + "a1" * 16,
            "twilio_auth_token": TWILIO_TOKEN,
            "twilio_from": "+15005550006",
            "twilio_url": url,
            "sms_http_url": f"{url}/sms",
            "sms_http_authorization": GATEWAY,
            "fcm_credentials_file": str(folder / "fcm.json"),
            "fcm_url": url,
            "apns_key_file": str(folder / "apns.p8"),
            "apns_key_id": KEY_ID,
            "apns_team_id": TEAM_ID,
            "apns_topic": TOPIC,
            "apns_url": f"https://localhost:{apns.port}",
        }
        yield Scene(settings, echo, mail, apns, (fcm_pem, apns.private_key()))


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """All log lines, at the most talkative level."""
    stream = io.StringIO()
    configure_logging(service="dispatcher", instance="i", level="debug", stream=stream)
    theirs = logging.getLogger("mail.log")  # the stand-in's, which tells all
    theirs.disabled = True
    yield stream
    theirs.disabled = False
    logging.basicConfig(force=True)


def search(kept: str, keys: tuple[str, ...]) -> None:
    """Finds nothing, in no spelling, not even a part that is worth something."""
    for secret in SECRETS:
        for part in {secret, secret.rpartition(" ")[2]}:
            worth = part[: len(part) * 2 // 3]
            assert worth not in kept
            assert base64.b64encode(worth.encode())[: len(worth)].decode() not in kept
    assert base64.b64encode(b"tocsin")[:-2].decode() not in kept
    for pem in keys:
        for line in pem.splitlines()[1:-1]:
            assert line[:40] not in kept
    assert "eyJ" not in kept, "a JWT of ours"
    assert "canary-hook-path" not in kept


async def try_all(senders: Senders, targets: list[Target], it: Scene) -> list[Result]:
    """Each target, each status, each cut."""
    results = []
    for target in targets:
        kind = type(target).__name__.lower()
        for status in STATUSES:
            for pad in PADS:
                it.echo.status, it.echo.pad = status, pad
                said = "x" * (pad - 100)
                it.mail.steps["RCPT"] = lambda _, said=said: f"550 {said}{SMTP_PASSWORD}"  # type: ignore[misc]
                it.apns.answer = lambda headers, _, status=status, said=said: (  # type: ignore[method-assign,misc]
                    max(status, 400),
                    f"{said}{headers['authorization']}",
                )
                results.append(await senders[kind].send(outgoing(target)))
                if kind in ("email", "push") and pad > PADS.start + 30:
                    break  # their servers are slow, and a status says nothing to them
    return results


async def test_nothing_that_is_kept_holds_a_secret(tmp_path: Path, logged: io.StringIO) -> None:
    """Of no channel, whatever comes back; and the secrets had been sent, so this could fail."""
    async with scene(tmp_path) as it:
        kept: list[str] = []
        port = it.settings["twilio_url"].rpartition(":")[2]
        hook = Webhook(
            url=f"http://127.0.0.1:{port}{HOOK_PATH}?t=canary-hook-path",
            headers={"authorization": HOOK_HEADER},
            secret_id="main",
        )
        targets: list[Target] = [
            hook,
            Email(to="ada@example.com"),
            Sms(to="+33123456789"),
            Push(to="d", provider=PushProvider.FCM),
            Push(to="a1" * 32, provider=PushProvider.APNS),
        ]
        for provider in ("twilio", "http"):
            settings = Settings(**(it.settings | {"sms_provider": provider}))
            async with open_channels(settings, ManualClock(NOW)) as senders:
                mine = targets if provider == "twilio" else targets[2:3]
                results = await try_all(senders, mine, it)
                kept += [str(asdict(result)) for result in results]
                assert any("***" in result.excerpt for result in results)
            kept += [repr(settings), str(settings), settings.model_dump_json()]
        heard = " ".join(it.echo.heard)
        assert all(each in heard for each in (GATEWAY, HOOK_HEADER, ACCESS))
        search("\n".join([*kept, logged.getvalue()]), it.keys)


async def test_a_failed_connection_names_no_secret(tmp_path: Path, logged: io.StringIO) -> None:
    """Errors of libraries quote URLs and headers."""
    async with scene(tmp_path) as it:
        settings = Settings(**it.settings)
    async with open_channels(settings, ManualClock(NOW)) as senders:  # everybody is gone by now
        port = it.settings["twilio_url"].rpartition(":")[2]
        hook = Webhook(
            url=f"http://127.0.0.1:{port}{HOOK_PATH}",
            headers={"authorization": HOOK_HEADER},
            secret_id="main",
        )
        attempts: list[Outgoing] = [
            outgoing(target)
            for target in (
                hook,
                Email(to="ada@example.com"),
                Sms(to="+33123456789"),
                Push(to="d", provider=PushProvider.FCM),
                Push(to="a1" * 32, provider=PushProvider.APNS),
            )
        ]
        kinds = ("webhook", "email", "sms", "push", "push")
        results = [await senders[k].send(o) for k, o in zip(kinds, attempts, strict=True)]
    assert {result.error_class for result in results} == {"connect"}
    search("\n".join([*map(repr, results), logged.getvalue()]), it.keys)


async def test_configuration_shows_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not what is in force, not what is wrong."""
    monkeypatch.chdir(tmp_path)
    async with scene(tmp_path) as it:
        for name, value in it.settings.items():
            monkeypatch.setenv(f"TOCSIN_{name.upper()}", str(value))
    shown = [f"{row.variable}={row.value}" for row in report().settings]
    assert "TOCSIN_SIGNING_SECRETS=default/main:***" in shown
    monkeypatch.setenv("TOCSIN_SIGNING_SECRETS", f"{SIGNING},default/{SIGNING}={SIGNING[:-8]}")
    monkeypatch.setenv("TOCSIN_SMTP_PORT", "x")
    with pytest.raises(ConfigError) as wrong:
        load_settings()
    monkeypatch.setenv("TOCSIN_SIGNING_SECRETS", "")
    monkeypatch.setenv("TOCSIN_SMTP_PORT", "")
    (tmp_path / "fcm.json").write_text(json.dumps({"private_key": it.keys[0]}))
    with pytest.raises(ConfigError) as unreadable:
        async with open_channels(load_settings(), ManualClock(NOW)):
            pass
    assert "TOCSIN_FCM_CREDENTIALS_FILE" in str(unreadable.value)
    search("\n".join([*shown, str(wrong.value), str(unreadable.value)]), it.keys)

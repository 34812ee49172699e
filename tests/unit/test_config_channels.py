"""The settings of the channels: forms, what belongs together, what is served."""

import os
from pathlib import Path

import pytest

from dispatcher.channels.opening import open_channels
from reminders.clock import SystemClock
from reminders.config.problems import ConfigError
from reminders.config.settings import load_settings

KEY = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
OLD = "whsec_OTg3NjU0MzIxMGFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="


@pytest.fixture(autouse=True)
def nothing_configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An empty current directory, and no variable of ours."""
    for name in [name for name in os.environ if name.startswith("TOCSIN_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def problem(monkeypatch: pytest.MonkeyPatch, **variables: str) -> str:
    """The one thing that `load_settings` complains about."""
    for name, value in variables.items():
        monkeypatch.setenv(f"TOCSIN_{name}", value)
    with pytest.raises(ConfigError) as caught:
        load_settings()
    (line,) = caught.value.problems
    return line


def test_a_bare_deployment_serves_webhooks_and_the_log() -> None:
    """At the ports of HTTPS."""
    settings = load_settings()
    assert settings.served == {"webhook", "log"}
    assert settings.ports == (range(443, 444), range(8443, 8444))


def test_signing_secrets_come_from_the_environment_or_a_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One, or two while one rotates."""
    monkeypatch.setenv("TOCSIN_SIGNING_SECRETS", f"default/main={KEY} {OLD}, acme/x={OLD}")
    expected = {"default/main": (KEY, OLD), "acme/x": (OLD,)}
    assert load_settings().secret_texts == expected
    monkeypatch.delenv("TOCSIN_SIGNING_SECRETS")
    table = f'[signing_secrets]\n"default/main" = ["{KEY}", "{OLD}"]\n"acme/x" = "{OLD}"\n'
    Path("tocsin.toml").write_text(table)
    assert load_settings().secret_texts == expected


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (f"main={KEY}", "does not begin with namespace/name"),
        (KEY, "does not begin with namespace/name"),
        ("default/main=", "has 0 secrets"),
        (f"default/main={KEY} {KEY} {KEY}", "has 3 secrets"),
        ("default/main=hunter2", "openssl rand"),
        ("default/main=whsec_c2hvcnQ=", "openssl rand"),
        ("default/main=whsec_***", "openssl rand"),
    ],
)
def test_a_wrong_signing_secret_says_how_to_make_a_right_one(
    monkeypatch: pytest.MonkeyPatch, value: str, said: str
) -> None:
    """And does not repeat it."""
    line = problem(monkeypatch, SIGNING_SECRETS=value)
    assert line.startswith("TOCSIN_SIGNING_SECRETS='***'")
    assert said in line
    assert "hunter2" not in line


@pytest.mark.parametrize("value", ["0", "70000", "a", "9-8", "443,", "-1", "1-2-3", "٤٤٣"])
def test_wrong_ports(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """Empty ones are left out; the rest is refused with what is right."""
    if value == "443,":
        monkeypatch.setenv("TOCSIN_WEBHOOK_PORTS", value)
        assert load_settings().ports == (range(443, 444),)
    else:
        assert "such as 443,8000-8999" in problem(monkeypatch, WEBHOOK_PORTS=value)


def test_ports_may_be_ranges_and_toml_numbers() -> None:
    """Both are as people write them."""
    Path("tocsin.toml").write_text('webhook_ports = [443, "8000-8999"]\n')
    assert load_settings().ports == (range(443, 444), range(8000, 9000))


@pytest.mark.parametrize(
    ("variables", "missing"),
    [
        ({"SMTP_HOST": "mail"}, "TOCSIN_SMTP_FROM"),
        ({"SMTP_USERNAME": "u"}, "TOCSIN_SMTP_PASSWORD"),
        ({"SMS_PROVIDER": "twilio"}, "TOCSIN_TWILIO_ACCOUNT_SID"),
        ({"SMS_PROVIDER": "http"}, "TOCSIN_SMS_HTTP_URL"),
    ],
)
def test_a_provider_needs_all_of_its_settings(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], missing: str
) -> None:
    """Found at start, not at the first reminder."""
    line = problem(monkeypatch, **variables)
    assert line.startswith(f"{missing} is not set")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SMTP_FROM", "Tocsin <not an address>"),
        ("SMTP_FROM", "a@b.example\nBcc: c@d.example"),
        ("TWILIO_URL", "http://api.twilio.com"),
        ("TWILIO_FROM", "12345"),
        ("TWILIO_URL", "https://user:secret@api.twilio.com"),
        ("SMS_HTTP_URL", "https://sms.example.com/send?key=secret"),
        ("SMS_HTTP_BODY", "{"),
        ("SMS_HTTP_BODY", "[]"),
        ("FCM_CREDENTIALS_FILE", "gone.json"),
        ("WEBHOOK_CA_FILE", "gone.pem"),
        ("TEMPLATES_DIR", "gone"),
        ("CHANNELS", "webhook,fax"),
    ],
)
def test_wrong_values_are_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """With what is right."""
    line = problem(monkeypatch, **{name: value})
    assert line.startswith(f"TOCSIN_{name}=")
    assert "Right: " in line


def test_a_mail_password_needs_tls_but_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the clear it would be anybody's."""
    given = {
        "SMTP_HOST": "mail.example.com",
        "SMTP_FROM": "a@b.example",
        "SMTP_USERNAME": "u",
        "SMTP_PASSWORD": "p",
        "SMTP_TLS": "none",
    }
    assert problem(monkeypatch, **given).startswith("TOCSIN_SMTP_TLS='none'")
    monkeypatch.setenv("TOCSIN_SMTP_HOST", "127.0.0.1")
    assert load_settings().smtp_tls == "none"


async def test_a_file_that_holds_something_else_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With what was expected in it; its content is not shown."""
    path = tmp_path / "file"
    path.write_text("hunter2")
    for name, more in {
        "WEBHOOK_CA_FILE": {},
        "PROVIDER_CA_FILE": {},
        "FCM_CREDENTIALS_FILE": {},
        "APNS_KEY_FILE": {
            "APNS_KEY_ID": "ABC123DEFG",
            "APNS_TEAM_ID": "ABC123DEFG",
            "APNS_TOPIC": "com.example.tea",
        },
    }.items():
        with monkeypatch.context() as patch:
            for variable, value in {name: str(path), **more}.items():
                patch.setenv(f"TOCSIN_{variable}", value)
            with pytest.raises(ConfigError) as wrong:
                async with open_channels(load_settings(), SystemClock()):
                    pass
        assert str(wrong.value).startswith(f"TOCSIN_{name}='{path}': not ")
        assert "hunter2" not in str(wrong.value)


def test_a_scheduler_may_name_what_dispatchers_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    """It needs no credentials then; without the list it goes by what is configured with it."""
    monkeypatch.setenv("TOCSIN_CHANNELS", "webhook,email")
    assert load_settings().served == {"webhook", "email"}
    monkeypatch.delenv("TOCSIN_CHANNELS")
    monkeypatch.setenv("TOCSIN_SMTP_HOST", "mail.example.com")
    monkeypatch.setenv("TOCSIN_SMTP_FROM", "Tocsin <a@b.example>")
    assert load_settings().served == {"webhook", "log", "email"}


async def test_a_dispatcher_without_the_provider_of_a_served_kind_does_not_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would end each such delivery as failed."""
    monkeypatch.setenv("TOCSIN_CHANNELS", "webhook,email")
    with pytest.raises(ConfigError, match="TOCSIN_CHANNELS names email"):
        async with open_channels(load_settings(), SystemClock()):
            pass

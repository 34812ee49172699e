"""The e-mail channel against a real mail server with TLS."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from dispatcher.channels.email import EmailSender
from dispatcher.channels.masking import Mask
from dispatcher.channels.port import ATTEMPT_TIMEOUT, Outcome, Outgoing
from dispatcher.channels.smtp import SmtpPool, SmtpServer
from dispatcher.channels.templates import Templates
from reminders.clock import ManualClock
from reminders.model.definition import Email
from tests.standins.sending import KEY, NOW, outgoing
from tests.standins.smtp import MailServer, cut, hang_up, mail_server, silence
from tests.standins.tls import Authority

PASSWORD = "pass word"
SHORT = timedelta(seconds=1)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Its file is what TOCSIN_PROVIDER_CA_FILE names."""
    return Authority.make(tmp_path)


@asynccontextmanager
async def sending(
    server: MailServer, authority: Authority, **changes: Any
) -> AsyncIterator[EmailSender]:
    """A sender as the process makes it, with differences."""
    options = {"size": 4, "idle_limit": timedelta(seconds=30), "timeout": timedelta(seconds=8)}
    options |= {name: changes.pop(name) for name in list(changes) if name in options}
    templates = changes.pop("templates", Templates(None))
    given = {
        "host": "localhost",
        "port": server.port,
        "tls": "starttls",
        "username": "tocsin",
        "password": PASSWORD,
        "context": authority.client(),
    }
    pool = SmtpPool(
        SmtpServer(**(given | changes)),  # type: ignore[arg-type]
        size=options["size"],  # type: ignore[arg-type]
        idle_limit=options["idle_limit"],  # type: ignore[arg-type]
    )
    try:
        yield EmailSender(
            ManualClock(NOW),
            pool,
            sender="Tocsin <reminders@example.com>",
            mask=Mask([PASSWORD]),
            templates=templates,
            timeout=options["timeout"],  # type: ignore[arg-type]
        )
    finally:
        await pool.close()


def mail(params_json: str = '{"title":"Tea","text":"It is ready."}', **fields: Any) -> Outgoing:
    """To Ada."""
    return outgoing(Email(to="ada@example.com", **fields), params_json)


async def test_the_message_is_exactly_this(authority: Authority) -> None:
    """By STARTTLS and AUTH; what a reader and a mailbox need, and the delivery key."""
    async with mail_server(authority.server("localhost")) as server:
        async with sending(server, authority) as sender:
            result = await sender.send(mail('{"title":"Thé à 5 h","text":"C\'est prêt.\\n.\\n"}'))
        assert (result.outcome, result.status_code) == (Outcome.OK, 250)
        assert not result.acknowledged  # a relay has it, nobody has read it
        assert result.provider_event_id == f"{KEY}@example.com"
        assert "queued as 4F1" in result.excerpt
        assert server.logins == [(b"tocsin", PASSWORD.encode())]
        assert server.envelopes == [("reminders@example.com", ["ada@example.com"], True)]
        (message,) = server.mails
        headers = {name: str(value) for name, value in message.items()}
        assert headers.pop("Date") == "Sun, 29 Mar 2026 01:00:01 +0000"
        assert headers == {
            "From": "Tocsin <reminders@example.com>",
            "To": "ada@example.com",
            "Subject": "Thé à 5 h",
            "Message-ID": f"<{KEY}@example.com>",
            "Auto-Submitted": "auto-generated",
            "X-Event-Id": KEY,
            "MIME-Version": "1.0",
            "Content-Type": 'text/plain; charset="utf-8"',
            "Content-Transfer-Encoding": headers["Content-Transfer-Encoding"],
        }
        assert headers["Content-Transfer-Encoding"] in ("quoted-printable", "base64")
        assert message.get_content() == "C'est prêt.\n.\n"


async def test_a_template_makes_text_and_html(authority: Authority, tmp_path: Path) -> None:
    """Two ways to read the same, the HTML escaped."""
    folder = tmp_path / "templates/default/tea/email/default"
    folder.mkdir(parents=True)
    (folder / "subject.txt").write_text("{{ drink }} for you")
    (folder / "text.txt").write_text("{{ drink }} is ready")
    (folder / "html.html").write_text("<b>{{ drink }}</b> is ready")
    templates = Templates(tmp_path / "templates")
    async with (
        mail_server(authority.server("localhost")) as server,
        sending(server, authority, templates=templates) as sender,
    ):
        sent = outgoing(Email(to="a@b.example"), '{"drink":"Tea & <milk>"}', template_id="tea")
        assert (await sender.send(sent)).outcome is Outcome.OK
        (message,) = server.mails
        assert message["Subject"] == "Tea & <milk> for you"
        text, html = message.iter_parts()
        assert text.get_content() == "Tea & <milk> is ready\n"
        assert html.get_content() == "<b>Tea &amp; &lt;milk&gt;</b> is ready\n"
        missing = await sender.send(
            outgoing(Email(to="a@b.example"), '{"dish":"x"}', template_id="tea")
        )
        assert (missing.outcome, missing.error_class) == (
            Outcome.PERMANENT,
            "template_variable_missing",
        )
        assert len(server.mails) == 1
    templates.close()


async def test_no_text_of_a_caller_becomes_a_header(authority: Authority) -> None:
    """Line ends in a title are blanks in the subject; an address that holds one is no address."""
    async with (
        mail_server(authority.server("localhost")) as server,
        sending(server, authority) as sender,
    ):
        evil = "Hi\\r\\nBcc: eve@example.com\\r\\n\\r\\nBody\\u0000\\u2028x"
        assert (await sender.send(mail(f'{{"title":"{evil}"}}'))).outcome is Outcome.OK
        (message,) = server.mails
        assert message["Subject"] == "Hi Bcc: eve@example.com Body x"
        assert message["Bcc"] is None
        assert server.envelopes[0][1] == ["ada@example.com"]
        for to in ("a@b.example\r\nRCPT TO:<eve@c.example>", "a@b.example,c@d.example", "a b"):
            result = await sender.send(outgoing(Email(to=to)))
            assert (result.outcome, result.error_class) == (Outcome.PERMANENT, "address_invalid")
        assert len(server.mails) == 1


# --- connections ----------------------------------------------------------------------------------


async def test_a_connection_is_used_again_and_each_by_one_at_a_time(authority: Authority) -> None:
    """Twenty at once over three connections, then some more over the same."""
    async with (
        mail_server(authority.server("localhost")) as server,
        sending(server, authority, size=3) as sender,
    ):
        results = await asyncio.gather(*(sender.send(mail()) for _ in range(20)))
        results += [await sender.send(mail()) for _ in range(5)]
        assert {result.outcome for result in results} == {Outcome.OK}
        assert len(server.mails) == 25
        assert len(server.connections) == 3
        assert len(server.logins) == 3


async def test_a_refused_address_does_not_cost_the_connection(authority: Authority) -> None:
    """It goes on with the next message, on a clean slate."""
    async with (
        mail_server(authority.server("localhost")) as server,
        sending(server, authority) as sender,
    ):
        server.steps["RCPT"] = lambda _: "550 5.1.1 no such user"
        assert (await sender.send(mail())).error_class == "smtp_550"
        server.steps.clear()
        assert (await sender.send(mail())).outcome is Outcome.OK
        assert len(server.connections) == 1


async def test_what_is_idle_too_long_is_closed(authority: Authority) -> None:
    """By us, before the server tires of it."""
    async with (
        mail_server(authority.server("localhost")) as server,
        sending(server, authority, idle_limit=timedelta(milliseconds=1)) as sender,
    ):
        assert (await sender.send(mail())).outcome is Outcome.OK
        await asyncio.wait_for(server.closed.wait(), 5)
        assert (await sender.send(mail())).outcome is Outcome.OK
        assert len(server.connections) == 2


async def test_a_connection_that_the_server_closed_costs_nothing(authority: Authority) -> None:
    """It is asked before it is used, so no attempt fails for having kept it."""
    async with (
        mail_server(authority.server("localhost")) as server,
        sending(server, authority) as sender,
    ):
        assert (await sender.send(mail())).outcome is Outcome.OK
        hang_up(server.connections[0])
        assert (await sender.send(mail())).outcome is Outcome.OK
        assert len(server.connections) == 2


async def test_who_finds_no_connection_in_time_has_said_nothing(authority: Authority) -> None:
    """Transient, and no attempt of the server's; the place that gets free is used."""
    async with (
        mail_server(authority.server("localhost")) as server,
        sending(server, authority, size=1, timeout=SHORT) as sender,
    ):
        await sender._pool.places.acquire()
        result = await sender.send(mail())
        assert (result.outcome, result.error_class) == (Outcome.TRANSIENT, "provider_busy")
        assert server.connections == []
        waiting = asyncio.create_task(sender.send(mail()))
        sender._pool.places.release()
        assert (await waiting).outcome is Outcome.OK


# --- answers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "answer", "outcome", "error_class"),
    [
        ("RCPT", "450 4.2.0 greylisted", Outcome.TRANSIENT, "smtp_450"),
        ("RCPT", "550 5.1.1 no such user", Outcome.PERMANENT, "smtp_550"),
        ("RCPT", "452 4.5.3 too many", Outcome.TRANSIENT, "smtp_452"),
        ("DATA", "451 4.3.0 try later", Outcome.TRANSIENT, "smtp_451"),
        ("DATA", "552 5.3.4 too big", Outcome.PERMANENT, "smtp_552"),
        ("MAIL", "553 5.7.1 not your sender", Outcome.TRANSIENT, "smtp_553"),
        ("RCPT", cut, Outcome.TRANSIENT, "disconnected"),
        ("RCPT", silence, Outcome.TRANSIENT, "timeout"),
        ("DATA", cut, Outcome.UNKNOWN, "disconnected"),
        ("DATA", silence, Outcome.UNKNOWN, "timeout"),
    ],
)
async def test_what_an_answer_means(
    authority: Authority, step: str, answer: Any, outcome: Outcome, error_class: str
) -> None:
    """Whose fault it is, whether it may pass, and whether the message may be on its way."""
    async with (
        mail_server(authority.server("localhost")) as server,
        sending(
            server, authority, timeout=SHORT if answer is silence else ATTEMPT_TIMEOUT
        ) as sender,
    ):
        server.steps[step] = answer if callable(answer) else lambda _: answer
        result = await sender.send(mail())
        assert (result.outcome, result.error_class) == (outcome, error_class)
        if isinstance(answer, str):
            assert result.status_code == int(answer[:3])
            assert answer[4:9] in result.excerpt


async def test_a_wrong_password_is_ours_and_never_repeated(authority: Authority) -> None:
    """Transient, for the receiver has no part in it; the password is in nothing that is kept."""
    async with (
        mail_server(authority.server("localhost")) as server,
        sending(server, authority) as sender,
    ):
        server.password = "another"
        result = await sender.send(mail())
        assert (result.outcome, result.error_class) == (Outcome.TRANSIENT, "provider_auth")
        assert result.status_code == 535
        assert server.mails == []


@pytest.mark.parametrize("fault", ["none offered", "authority", "name"])
async def test_without_right_tls_nothing_is_said(authority: Authority, fault: str) -> None:
    """Neither password nor message goes to who can't prove to be the mail server."""
    name = "elsewhere.example" if fault == "name" else "localhost"
    context = None if fault == "none offered" else authority.server(name)
    stranger = fault == "authority"
    changes = {"context": Authority.make(Path(authority.file).parent).client()} if stranger else {}
    async with (
        mail_server(context) as server,
        sending(server, authority, **changes) as sender,
    ):
        result = await sender.send(mail())
        assert (result.outcome, result.error_class) == (Outcome.TRANSIENT, "tls")
        assert (server.mails, server.logins) == ([], [])


async def test_a_server_that_offers_no_auth_is_not_used_without(authority: Authority) -> None:
    """It would take mail from anybody, or is not the one that was meant."""
    async with (
        mail_server(authority.server("localhost"), auth=False) as server,
        sending(server, authority) as sender,
    ):
        result = await sender.send(mail())
        assert (result.outcome, result.error_class) == (Outcome.TRANSIENT, "provider_auth")
        assert server.mails == []


async def test_tls_from_the_start(authority: Authority) -> None:
    """Port 465."""
    async with (
        mail_server(authority.server("localhost"), implicit=True) as server,
        sending(server, authority, tls="tls") as sender,
    ):
        assert (await sender.send(mail())).outcome is Outcome.OK
        assert server.envelopes[0][2]


async def test_a_closed_port_is_a_connect_error(authority: Authority) -> None:
    """The server may be restarting."""
    async with mail_server(None) as gone:
        port = gone.port
    async with sending(MailServer(port=port), authority) as sender:
        result = await sender.send(mail())
        assert (result.outcome, result.error_class) == (Outcome.TRANSIENT, "connect")

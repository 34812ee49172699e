"""A mail server in the test's own loop: aiosmtpd, with TLS, AUTH and faults at any step."""

import asyncio
import ssl
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from typing import Any, cast

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

Step = Callable[[SMTP], Any]
"""What a step answers, given the connection; awaited if it can be."""


@dataclass
class MailServer:
    """What arrived, and what is to go wrong."""

    port: int = 0
    mails: list[EmailMessage] = field(default_factory=list)
    envelopes: list[tuple[str | None, list[str], bool]] = field(default_factory=list)
    """Sender, recipients, and whether it came by TLS."""
    logins: list[tuple[bytes, bytes]] = field(default_factory=list)
    connections: list[SMTP] = field(default_factory=list)
    """All there ever were."""
    most_at_once: int = 0
    steps: dict[str, Step] = field(default_factory=dict)
    """By MAIL, RCPT, DATA: an answer in place of the usual one."""
    password: str = "pass word"
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    """A connection ended."""

    def authenticate(
        self, _server: SMTP, _session: Session, _envelope: Envelope, _how: str, data: Any
    ) -> AuthResult:
        """Of aiosmtpd."""
        given = cast("LoginPassword", data)
        self.logins.append((given.login, given.password))
        right = given.password.decode() == self.password
        return AuthResult(success=right, handled=False)

    async def handle_MAIL(  # noqa: N802 - aiosmtpd's names
        self, server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        """Of aiosmtpd."""
        envelope.mail_from = address
        return await self._step("MAIL", server)

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's names
        self, server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        """Of aiosmtpd."""
        envelope.rcpt_tos.append(address)
        return await self._step("RCPT", server)

    async def handle_DATA(  # noqa: N802 - aiosmtpd's names
        self, server: SMTP, _session: Session, envelope: Envelope
    ) -> str:
        """Of aiosmtpd."""
        content = (envelope.original_content or b"").replace(b"\r\n", b"\n")
        self.mails.append(BytesParser(policy=default).parsebytes(content))
        by_tls = _transport(server).get_extra_info("sslcontext") is not None
        self.envelopes.append((envelope.mail_from, list(envelope.rcpt_tos), by_tls))
        return await self._step("DATA", server)

    async def _step(self, name: str, server: SMTP) -> str:
        step = self.steps.get(name)
        if step is None:
            return "250 2.0.0 Ok: queued as 4F1" if name == "DATA" else "250 2.1.0 Ok"
        answer = step(server)
        return str(await answer) if asyncio.iscoroutine(answer) else str(answer)


class _Connection(SMTP):
    """Tells the server that it came and went."""

    mail_server: MailServer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self not in self.mail_server.connections:  # it is made again by STARTTLS
            self.mail_server.connections.append(self)
            alive = [each for each in self.mail_server.connections if each.transport is not None]
            self.mail_server.most_at_once = max(self.mail_server.most_at_once, len(alive))

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self.mail_server.closed.set()


def cut(server: SMTP) -> str:
    """The connection is gone before the answer."""
    hang_up(server)
    return ""


def hang_up(server: SMTP) -> None:
    """Ends the connection without a word."""
    _transport(server).abort()


def _transport(server: SMTP) -> asyncio.Transport:
    return cast("asyncio.Transport", server.transport)


async def silence(_server: SMTP) -> str:
    """No answer, ever."""
    await asyncio.Event().wait()
    return ""


@asynccontextmanager
async def mail_server(
    context: ssl.SSLContext | None, *, implicit: bool = False, auth: bool = True
) -> AsyncIterator[MailServer]:
    """Listens on a free port of loopback; `context` None: it offers no TLS."""
    it = MailServer()

    def connection() -> SMTP:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns of what some tests are about: AUTH in clear
            return make()

    def make() -> SMTP:
        made = _Connection(
            it,
            hostname="mail.example",
            tls_context=None if implicit else context,
            require_starttls=context is not None and not implicit,
            authenticator=it.authenticate if auth else None,
            auth_required=auth,
            auth_require_tls=context is not None and not implicit,
        )
        made.mail_server = it
        return made

    loop = asyncio.get_running_loop()
    server = await loop.create_server(connection, "127.0.0.1", 0, ssl=context if implicit else None)
    it.port = server.sockets[0].getsockname()[1]
    try:
        yield it
    finally:
        server.close()
        for each in it.connections:
            if each.transport is not None:
                hang_up(each)
        await server.wait_closed()

"""Connections to the mail server: a few, kept open while there is mail, each used by one at a time.

    place ─▶ idle one? RSET answers? ─▶ it ─┐
               └─ no ─▶ connect, TLS, AUTH ─┴▶ MAIL, RCPT, DATA ─▶ back, or closed after an error

The wait for a place is no part of the attempt: nothing was said to anybody yet.

A server may close what is idle at any time, so one that waited is asked first (`RSET`); that a send
fails is then no artefact of keeping it.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Literal

import aiosmtplib
import msgspec

IDLE_LIMIT = timedelta(seconds=30)
"""Shorter than the minutes after which servers close a connection."""


class SmtpServer(msgspec.Struct, frozen=True, kw_only=True):
    """Where, and as whom."""

    host: str
    port: int = 587
    tls: Literal["starttls", "tls", "none"] = "starttls"
    username: str | None = None
    password: str | None = None
    context: ssl.SSLContext
    """What certificates are believed."""


class ServerLacks(aiosmtplib.SMTPException):
    """The server can't do what the configuration asks for."""

    def __init__(self, error_class: str, said: str) -> None:
        super().__init__(said)
        self.error_class = error_class


class SmtpPool:
    """At most `size` connections at a time. Needs a running loop."""

    def __init__(
        self, server: SmtpServer, *, size: int, idle_limit: timedelta = IDLE_LIMIT
    ) -> None:
        self._server = server
        self.places = asyncio.Semaphore(size)
        """Hold one while using a connection."""
        self._idle_limit_s = idle_limit.total_seconds()
        self._idle: dict[aiosmtplib.SMTP, asyncio.TimerHandle] = {}

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[aiosmtplib.SMTP]:
        """One that is ready for MAIL. An exception inside closes it, but for a refusal.

        Raises:
            aiosmtplib.SMTPException, OSError: There is none to be had.
        """
        client = await self._reused() or await self._fresh()
        try:
            yield client
        except aiosmtplib.SMTPResponseException:
            self._keep(client)
            raise
        except BaseException:
            client.close()
            raise
        self._keep(client)

    async def close(self) -> None:
        """Ends the idle ones; who is under way closes its own."""
        while self._idle:
            client, timer = self._idle.popitem()
            timer.cancel()
            client.close()

    async def _reused(self) -> aiosmtplib.SMTP | None:
        while self._idle:
            client, timer = self._idle.popitem()  # the newest: others may get old and go
            timer.cancel()
            try:
                await client.rset()
            except (aiosmtplib.SMTPException, OSError):
                client.close()
            except BaseException:
                client.close()
                raise
            else:
                return client
        return None

    async def _fresh(self) -> aiosmtplib.SMTP:
        server = self._server
        client = aiosmtplib.SMTP(
            hostname=server.host,
            port=server.port,
            use_tls=server.tls == "tls",
            start_tls=False,  # below: the library would go on without it, or not say what is wrong
            tls_context=server.context if server.tls != "none" else None,
            timeout=None,  # the attempt is bounded as a whole
        )
        try:
            await self._introduce(client)
        except BaseException:
            client.close()
            raise
        return client

    async def _introduce(self, client: aiosmtplib.SMTP) -> None:
        server = self._server
        await client.connect()
        await client.ehlo()
        if server.tls == "starttls":
            if not client.supports_extension("starttls"):
                raise ServerLacks("tls", "it offers no STARTTLS, and nothing goes without")
            await client.starttls()
            await client.ehlo()
        if server.username is not None and server.password is not None:
            if not client.supports_extension("auth"):
                raise ServerLacks("provider_auth", "it offers no AUTH")
            await client.login(server.username, server.password)

    def _keep(self, client: aiosmtplib.SMTP) -> None:
        def expire() -> None:
            if self._idle.pop(client, None) is not None:
                client.close()

        if client.is_connected:
            loop = asyncio.get_running_loop()
            self._idle[client] = loop.call_later(self._idle_limit_s, expire)

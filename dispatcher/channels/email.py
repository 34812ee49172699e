"""The e-mail channel: one message to one address, given to a mail server by SMTP.

    Message-ID: <delivery key@domain of the sender>, the same on every attempt: mailboxes and people
    can tell a repeat. Text always, HTML where the template has it.

What the server answers:

| answer                                 | outcome   | error class                                |
|----------------------------------------|-----------|--------------------------------------------|
| 2xx after the message                  | ok        | (a relay has it: delivered, not confirmed) |
| 4xx                                    | transient | `smtp_450`, …                              |
| 5xx to RCPT, DATA or the message       | permanent | `smtp_550`, …                              |
| 5xx before: it is about us             | transient | `smtp_554`, …                              |
| AUTH refused; STARTTLS not offered     | transient | `provider_auth`, `tls`                     |
| all our connections stay in use        | transient | `provider_busy`                            |
| no connection, cut before the message  | transient | `connect`, `disconnected`, `timeout`       |
| cut or silent after DATA               | unknown   | `disconnected`, `timeout`                  |

SMTP has no Retry-After, and its 4xx do not tell "too many" from "not now" reliably.
"""

import asyncio
import ssl
from dataclasses import dataclass
from datetime import timedelta
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, parseaddr

import aiosmtplib

from dispatcher.channels.masking import Mask
from dispatcher.channels.messages import Message, message_of
from dispatcher.channels.port import (
    ATTEMPT_TIMEOUT,
    Destination,
    Outcome,
    Outgoing,
    Result,
    printable,
)
from dispatcher.channels.smtp import ServerLacks, SmtpPool
from dispatcher.channels.templates import NO_TEMPLATES, TemplateError, Templates
from reminders.addresses import email_problem
from reminders.model.definition import Channel, Email
from reminders.ports import Clock

_POLICY = SMTP.clone(cte_type="7bit")  # whatever the servers on its way can do


MAIL_SERVER = Destination(name="smtp", provider=True)


class EmailSender:
    """Sends through one mail server."""

    def __init__(
        self,
        clock: Clock,
        pool: SmtpPool,
        *,
        sender: str,
        mask: Mask | None = None,
        templates: Templates = NO_TEMPLATES,
        timeout: timedelta = ATTEMPT_TIMEOUT,
    ) -> None:
        """`sender`: a mailbox such as `Tocsin <reminders@example.com>`."""
        name, self._address = parseaddr(sender)
        self._from = Address(display_name=name, addr_spec=self._address)
        self._clock = clock
        self._pool = pool
        self._mask = mask or Mask()
        self._templates = templates
        self._timeout_s = timeout.total_seconds()

    def destination(self, channel: Channel) -> Destination:
        """The mail server: all go through it."""
        _target(channel)
        return MAIL_SERVER

    async def send(self, outgoing: Outgoing) -> Result:
        """One message."""
        target = _target(outgoing.channel)
        problem = email_problem(target.to)
        if problem is not None:
            return _failed(Outcome.PERMANENT, "address_invalid", problem)
        try:
            message = await message_of(self._templates, outgoing, "email", subject=target.subject)
        except TemplateError as error:
            return error.result
        composed = self._compose(outgoing, target.to, message)
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._pool.places.acquire()
        except TimeoutError:
            said = "all connections to the mail server are in use"
            return _failed(Outcome.TRANSIENT, "provider_busy", said)
        try:
            return await self._attempt(target.to, composed)
        finally:
            self._pool.places.release()

    async def _attempt(self, to: str, composed: EmailMessage) -> Result:
        progress = _Progress()
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._hand_over(to, composed, progress)
        except (aiosmtplib.SMTPException, TimeoutError, OSError, ValueError) as error:
            return self._judge(error, progress)

    def _compose(self, outgoing: Outgoing, to: str, message: Message) -> EmailMessage:
        composed = EmailMessage(policy=_POLICY)
        composed["From"] = self._from
        composed["To"] = Address(addr_spec=to)
        composed["Subject"] = message.title
        composed["Date"] = format_datetime(self._clock.now())
        composed["Message-ID"] = self._message_id(outgoing)
        composed["Auto-Submitted"] = "auto-generated"  # RFC 3834: no out-of-office answers
        composed["X-Event-Id"] = outgoing.delivery_key
        composed.set_content(message.text)
        if message.html is not None:
            composed.add_alternative(message.html, subtype="html")
        return composed

    def _message_id(self, outgoing: Outgoing) -> str:
        return f"<{outgoing.delivery_key}@{self._from.domain}>"

    async def _hand_over(self, to: str, message: EmailMessage, progress: "_Progress") -> Result:
        async with self._pool.connection() as client:
            progress.connected = True
            await client.mail(self._address)
            progress.accepted = True
            await client.rcpt(to)
            progress.handed_over = True
            response = await client.data(message.as_bytes())
        return Result(
            outcome=Outcome.OK,
            status_code=response.code,
            excerpt=self._excerpt(response.message),
            provider_event_id=str(message["Message-ID"]).strip("<>"),
        )

    def _judge(self, error: Exception, progress: "_Progress") -> Result:
        if isinstance(error, aiosmtplib.SMTPAuthenticationError):
            said = self._excerpt(error.message)
            return _failed(Outcome.TRANSIENT, "provider_auth", said, code=error.code)
        if isinstance(error, aiosmtplib.SMTPResponseException) and error.code >= 400:
            final = error.code >= 500 and progress.accepted
            outcome = Outcome.PERMANENT if final else Outcome.TRANSIENT
            return _failed(
                outcome, f"smtp_{error.code}", self._excerpt(error.message), code=error.code
            )
        outcome = Outcome.UNKNOWN if progress.handed_over else Outcome.TRANSIENT
        return _failed(outcome, _error_class(error, progress), self._excerpt(str(error)))

    def _excerpt(self, text: str) -> str:
        return printable(self._mask(text))


@dataclass
class _Progress:
    """How far an attempt got."""

    connected: bool = False
    accepted: bool = False
    """The server takes mail from us: what it refuses now is about the receiver or the message."""
    handed_over: bool = False
    """DATA was begun: the server may have the message."""


def _error_class(error: Exception, progress: _Progress) -> str:
    if isinstance(error, TimeoutError):  # those of the library are, too
        return "timeout"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, (ssl.SSLError, ssl.CertificateError)):
            return "tls"
        cause = cause.__cause__
    if isinstance(error, ServerLacks):
        return error.error_class
    if isinstance(error, aiosmtplib.SMTPResponseException):
        return "protocol"
    return "disconnected" if progress.connected else "connect"


def _failed(outcome: Outcome, error_class: str, said: str, *, code: int = 0) -> Result:
    return Result(
        outcome=outcome, error_class=error_class, excerpt=printable(said), status_code=code
    )


def _target(channel: Channel) -> Email:
    if not isinstance(channel.target, Email):
        raise TypeError(f"not an e-mail: {type(channel.target).__name__}")
    return channel.target

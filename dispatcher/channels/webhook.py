"""The webhook channel: one POST of JSON.

    {"eventId", "payload", "reminderId", "occurrenceId", "plannedLocal", "timeZone", "plannedAt",
     "fireAt", "attempt", "templateId", "userId", "namespace", "channelId"}

`eventId` is the delivery key, and so are the headers `webhook-id` and `x-event-id`. Any 2xx
confirms; what happens after its status line arrived can't change that. Redirects are not followed:
a 3xx is a permanent failure.
"""

import ssl
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Self

import aiohttp
import msgspec
from aiohttp.abc import AbstractResolver

from dispatcher.channels.guard import ForbiddenAddressError, guarded_connector
from dispatcher.channels.port import EXCERPT_LENGTH, Outcome, Outgoing, Result, printable
from reminders.model.definition import Channel, Webhook
from reminders.ports import Clock
from reminders.urls import header_problem, origin, url_problem

TIMEOUT = timedelta(seconds=8)
"""Of a whole attempt, name resolution included."""
MAX_RESPONSE_BYTES = 64 * 1024
"""Read so that the connection can be used again; of a longer answer the connection is closed."""
MAX_RETRY_AFTER = timedelta(hours=6)
"""However long the receiver asks for; `retry.max_age` bounds it as well."""
USER_AGENT = "Tocsin/1"

_RETRYABLE_4XX = frozenset((408, 425, 429))
_NAMED_4XX = frozenset((408, 410, 425, 429))


class Payload(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The body, in the order of its fields."""

    event_id: str
    payload: msgspec.Raw
    reminder_id: str
    occurrence_id: str
    planned_local: datetime
    time_zone: str
    planned_at: datetime
    fire_at: datetime
    attempt: int
    template_id: str | None
    user_id: str
    namespace: str
    channel_id: str


_encode = msgspec.json.Encoder().encode


def body_of(outgoing: Outgoing) -> bytes:
    """The JSON that is sent. `params_json` goes in as it is."""
    occurrence = outgoing.occurrence
    return _encode(
        Payload(
            event_id=outgoing.delivery_key,
            payload=msgspec.Raw(outgoing.params_json),
            reminder_id=outgoing.reminder_id,
            occurrence_id=occurrence.occurrence_id,
            planned_local=occurrence.planned_local,
            time_zone=occurrence.zone,
            planned_at=occurrence.planned_at,
            fire_at=occurrence.fire_at,
            attempt=outgoing.attempt,
            template_id=outgoing.template_id,
            user_id=outgoing.user_id,
            namespace=outgoing.namespace,
            channel_id=outgoing.channel.channel_id,
        )
    )


def headers_of(outgoing: Outgoing, given: dict[str, str]) -> dict[str, str]:
    """Ours, and the caller's where they are allowed."""
    headers = {
        "Content-Type": "application/json",
        "User-Agent": USER_AGENT,
        "webhook-id": outgoing.delivery_key,
        "x-event-id": outgoing.delivery_key,
    }
    if given:
        allowed = {name: given[name] for name in given if header_problem(name, given[name]) is None}
        headers.update(allowed)
    return headers


class WebhookSender:
    """Sends over one shared session. Enter it inside the running loop; leaving closes it."""

    def __init__(
        self,
        clock: Clock,
        *,
        allow_loopback_http: bool = False,
        timeout: timedelta = TIMEOUT,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._clock = clock
        self._allow_loopback_http = allow_loopback_http
        self._timeout = timeout
        self._resolver = resolver
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=guarded_connector(
                allow_loopback=self._allow_loopback_http, resolver=self._resolver
            ),
            timeout=aiohttp.ClientTimeout(total=self._timeout.total_seconds()),
            cookie_jar=aiohttp.DummyCookieJar(),  # no receiver's cookies reach another
            auto_decompress=False,  # a small answer may unpack to a huge one
            trust_env=False,
            skip_auto_headers=("Accept-Encoding",),
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def destination(self, channel: Channel) -> str:
        """Scheme, host and port, as written."""
        return origin(_target(channel).url).lower()

    async def send(self, outgoing: Outgoing) -> Result:
        """One POST."""
        target = _target(outgoing.channel)
        if self._session is None:
            raise RuntimeError("used outside its context")
        problem = url_problem(target.url, allow_loopback_http=self._allow_loopback_http)
        if problem is not None:
            return Result(
                outcome=Outcome.PERMANENT, error_class="url_forbidden", excerpt=printable(problem)
            )
        try:
            async with self._session.post(
                target.url,
                data=body_of(outgoing),
                headers=headers_of(outgoing, target.headers),
                allow_redirects=False,
            ) as response:
                return judge(response, await _excerpt(response), self._clock.now())
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            return failure(error)


def _target(channel: Channel) -> Webhook:
    if not isinstance(channel.target, Webhook):
        raise TypeError(f"not a webhook: {type(channel.target).__name__}")
    return channel.target


async def _excerpt(response: aiohttp.ClientResponse) -> str:
    """Reads the answer so that the connection can be kept, and gives its start."""
    start, size = b"", 0
    try:
        async for chunk in response.content.iter_any():
            if len(start) < 4 * EXCERPT_LENGTH:  # UTF-8: at most 4 bytes a character
                start += chunk[: 4 * EXCERPT_LENGTH]
            size += len(chunk)
            if size > MAX_RESPONSE_BYTES:
                response.close()
                break
    except (aiohttp.ClientError, TimeoutError):
        response.close()  # the status has arrived, and it is what counts
    return printable(start.decode(errors="replace"))


def judge(response: aiohttp.ClientResponse, excerpt: str, now: datetime) -> Result:
    """What a status means."""
    status = response.status
    if 200 <= status < 300:
        return Result(outcome=Outcome.OK, acknowledged=True, status_code=status, excerpt=excerpt)
    retryable = status >= 500 or status in _RETRYABLE_4XX
    asked = response.headers.get("Retry-After") if retryable else None
    return Result(
        outcome=Outcome.TRANSIENT if retryable else Outcome.PERMANENT,
        status_code=status,
        error_class=f"http_{status}" if status in _NAMED_4XX else f"http_{status // 100}xx",
        excerpt=excerpt,
        retry_after=retry_after(asked, now) if asked else None,
    )


def retry_after(value: str, now: datetime) -> timedelta | None:
    """RFC 9110 10.2.3: seconds or an HTTP date; at least 0 and bounded. None if it is neither."""
    value = value.strip()
    if value.isascii() and value.isdigit():
        # Cut first: a number may have any length.
        asked = timedelta(seconds=int(value[:9])) if len(value) <= 9 else MAX_RETRY_AFTER
    else:
        try:
            at = parsedate_to_datetime(value)
        except ValueError:
            return None
        if at.tzinfo is None:
            return None
        asked = at - now
    return min(max(asked, timedelta(0)), MAX_RETRY_AFTER)


def failure(error: Exception) -> Result:
    """What an attempt without an answer means. Most may get better by themselves."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ForbiddenAddressError):
            return Result(
                outcome=Outcome.PERMANENT,
                error_class="url_forbidden",
                excerpt=printable(str(cause)),
            )
        cause = cause.__cause__
    if isinstance(error, aiohttp.InvalidURL):
        return Result(outcome=Outcome.PERMANENT, error_class="url_invalid")
    return Result(
        outcome=Outcome.TRANSIENT, error_class=_error_class(error), excerpt=printable(str(error))
    )


def _error_class(error: Exception) -> str:
    """From the most specific on: aiohttp's errors are subclasses of one another."""
    classes: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], str], ...] = (
        (TimeoutError, "timeout"),
        (aiohttp.ClientConnectorDNSError, "dns"),
        ((aiohttp.ClientSSLError, ssl.SSLError), "tls"),
        (aiohttp.ClientConnectorError, "connect"),
        ((aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, OSError), "disconnected"),
    )
    return next((name for kind, name in classes if isinstance(error, kind)), "protocol")

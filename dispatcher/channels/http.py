"""What HTTP answers mean, and the absence of one: for webhooks and for providers alike."""

from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime

import aiohttp

from dispatcher.channels.masking import Mask
from dispatcher.channels.port import (
    ATTEMPT_TIMEOUT,
    EXCERPT_BYTES,
    Outcome,
    Result,
    printable,
)

MAX_RESPONSE_BYTES = 64 * 1024
"""Read so that the connection can be used again; of a longer answer the connection is closed."""
MAX_RETRY_AFTER = timedelta(hours=6)
"""However long the receiver asks for; `retry.max_age` bounds it as well."""
CONNECT_SHARE = 7 / 8
"""Of an attempt's time, to connect in. What times out later had begun to be sent."""

_RETRYABLE_4XX = frozenset((408, 425, 429))
_NAMED_4XX = frozenset((408, 410, 425, 429))


def time_limits(attempt: timedelta = ATTEMPT_TIMEOUT) -> aiohttp.ClientTimeout:
    """Of one attempt; a failure to connect can be told from a lost answer.

    To the moment: aiohttp would round longer ones up to a whole second, and all that hangs at a
    time would end in the same instant.
    """
    total = attempt.total_seconds()
    return aiohttp.ClientTimeout(total=total, connect=total * CONNECT_SHARE, ceil_threshold=total)


async def start_of(response: aiohttp.ClientResponse, most: int = 4 * EXCERPT_BYTES) -> bytes:
    """Reads the answer so that the connection can be kept, and gives its start.

    What goes wrong now changes nothing: the status has arrived, and it is what counts.
    """
    start, size = b"", 0
    try:
        async for chunk in response.content.iter_any():
            if len(start) < most:
                start += chunk[: most - len(start)]
            size += len(chunk)
            if size > MAX_RESPONSE_BYTES:
                response.close()
                break
    except (aiohttp.ClientError, TimeoutError):
        response.close()
    return start


def excerpt_of(start: bytes, mask: Mask) -> str:
    """What is kept of an answer."""
    return printable(mask(start.decode(errors="replace")))


def outcome_of(status: int) -> Outcome:
    """What a status means where the receiver gives no better reason."""
    if 200 <= status < 300:
        return Outcome.OK
    if status == 429:
        return Outcome.RATE_LIMITED
    retryable = status >= 500 or status in _RETRYABLE_4XX
    return Outcome.TRANSIENT if retryable else Outcome.PERMANENT


def error_class_of(status: int) -> str:
    """A word such as `http_429` or `http_5xx`."""
    return f"http_{status}" if status in _NAMED_4XX else f"http_{status // 100}xx"


def judge(status: int, asked: str | None, excerpt: str, now: datetime) -> Result:
    """What an answer means by its status alone. `asked`: its `Retry-After`."""
    outcome = outcome_of(status)
    if outcome is Outcome.OK:
        return Result(outcome=outcome, acknowledged=True, status_code=status, excerpt=excerpt)
    return Result(
        outcome=outcome,
        status_code=status,
        error_class=error_class_of(status),
        excerpt=excerpt,
        retry_after=wait_of(outcome, asked, now),
    )


def wait_of(outcome: Outcome, asked: str | None, now: datetime) -> timedelta | None:
    """How long to wait, where waiting helps."""
    if outcome not in (Outcome.TRANSIENT, Outcome.RATE_LIMITED):
        return None
    return retry_after(asked, now) if asked else None


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


def failure(error: Exception, mask: Mask) -> Result:
    """What an attempt without an answer means: not sent yet, or nobody knows."""
    if isinstance(error, aiohttp.InvalidURL):  # its message quotes the URL
        return Result(outcome=Outcome.PERMANENT, error_class="url_invalid")
    error_class, outcome = next(
        ((word, outcome) for kind, word, outcome in _FAILURES if isinstance(error, kind)),
        ("protocol", Outcome.UNKNOWN),
    )
    return Result(
        outcome=outcome,
        error_class=error_class,
        excerpt=printable(mask(str(error))),
    )


# From the most specific on: aiohttp's errors are subclasses of one another.
_FAILURES: tuple[
    tuple[type[BaseException] | tuple[type[BaseException], ...], str, Outcome], ...
] = (
    (aiohttp.ConnectionTimeoutError, "connect_timeout", Outcome.TRANSIENT),
    (TimeoutError, "timeout", Outcome.UNKNOWN),
    (aiohttp.ClientConnectorDNSError, "dns", Outcome.TRANSIENT),
    (aiohttp.ClientSSLError, "tls", Outcome.TRANSIENT),
    (aiohttp.ClientConnectorError, "connect", Outcome.TRANSIENT),
    (
        (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, OSError),
        "disconnected",
        Outcome.UNKNOWN,
    ),
)

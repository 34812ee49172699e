"""What the HTTP APIs of providers have in common: one request, its answer, no redirects.

Their addresses come from the configuration and not from callers, so no guard stands between.
"""

import ssl
from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar

import aiohttp
import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from msgspec.structs import replace
from multidict import CIMultiDictProxy

from dispatcher.channels.http import MAX_RESPONSE_BYTES, judge, start_of, time_limits, wait_of
from dispatcher.channels.masking import Mask
from dispatcher.channels.port import Outcome, Result, printable

USER_AGENT = "Tocsin/1"

Key = TypeVar("Key")


def judge_provider(
    status: int,
    headers: Mapping[str, str],
    excerpt: str,
    now: datetime,
    *,
    reason: tuple[Outcome, str] | None = None,
    event_id: str = "",
) -> Result:
    """What a provider's answer means: `reason`, from its own word, else the status.

    That it took a message is no acknowledgement of the receiver's. 401 and 403 are about our own
    credentials. 503 says that nothing was done; another 5xx leaves it open.
    """
    asked = headers.get("Retry-After")
    result = judge(status, asked, excerpt, now)
    outcome, error_class = reason or (result.outcome, result.error_class)
    if result.outcome is Outcome.OK:
        outcome, error_class = Outcome.OK, ""
    elif reason is None and status in (401, 403):
        outcome, error_class = Outcome.TRANSIENT, "provider_auth"
    elif reason is None and status >= 500 and status != 503:
        outcome = Outcome.UNKNOWN
    return replace(
        result,
        outcome=outcome,
        acknowledged=False,
        error_class=error_class,
        provider_event_id=event_id,
        retry_after=wait_of(outcome, asked, now),
    )


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Of a provider."""

    status: int
    headers: CIMultiDictProxy[str]
    body: bytes
    """At most 64 KiB."""

    @property
    def json(self) -> Any:
        """What the body says; `{}` if it is no JSON."""
        try:
            return msgspec.json.decode(self.body)
        except ValueError:
            return {}


def tls_context(ca_file: str | None) -> ssl.SSLContext:
    """Certificates are checked, by the system's authorities and those of the file."""
    context = ssl.create_default_context()
    if ca_file is not None:
        context.load_verify_locations(ca_file)
    return context


def signing_key(pem: str, kind: type[Key]) -> Key:
    """Read once, so that a wrong key stops the process and not a delivery.

    Raises:
        ValueError: It is none of this kind; the message repeats nothing of it.
    """
    try:
        found = load_pem_private_key(pem.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        found = None
    if not isinstance(found, kind):
        raise ValueError(f"no unencrypted {kind.__name__} in PEM")  # noqa: TRY004 - its content
    return found


def provider_session(context: ssl.SSLContext) -> aiohttp.ClientSession:
    """For all providers. Needs a running loop; close it."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=context, limit=0),
        timeout=time_limits(),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
        headers={"User-Agent": USER_AGENT},
        skip_auto_headers=("Accept-Encoding",),
    )


async def post(
    session: aiohttp.ClientSession,
    url: str,
    *,
    headers: Mapping[str, str],
    form: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> Answer:
    """One POST. Raises what `failure` understands."""
    async with session.post(
        url, data=form if form is not None else body, headers=headers, allow_redirects=False
    ) as response:
        found = await start_of(response, MAX_RESPONSE_BYTES)
        return Answer(status=response.status, headers=response.headers, body=found)


def dig(value: Any, path: str) -> Any:
    """What JSON has at `messages.0.id`; None if nothing."""
    for step in path.split("."):
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def text_at(value: Any, path: str, mask: Mask) -> str:
    """The same as a short text that may be kept; empty if there is none."""
    found = dig(value, path)
    return printable(mask(str(found))) if isinstance(found, (str, int)) else ""


def refused(error_class: str, said: str) -> Result:
    """Not sent, and never will be."""
    return Result(outcome=Outcome.PERMANENT, error_class=error_class, excerpt=printable(said))

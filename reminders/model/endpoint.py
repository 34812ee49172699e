"""Where deliveries go, as something that can be healthy, failing or disabled."""

from base64 import b32encode
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from hashlib import blake2b
from zlib import crc32

from msgspec import Struct

from reminders.model.definition import Channel, Email, Push, Sms, Webhook
from reminders.urls import origin

ENDPOINT_BUCKETS = 16
"""Partitions of the list of those in trouble."""
SHOWN_ADDRESS = 512
"""Characters of an address that are kept."""


class Why(StrEnum):
    """Why an endpoint is disabled."""

    FAILING = "failing"
    """Nothing but failures for days."""
    GONE = "gone"
    """It said by itself that it wants nothing more (410 Gone)."""
    MANUAL = "manual"
    """Somebody asked for it."""


class Address(Struct, frozen=True, kw_only=True, gc=False):
    """Which endpoint."""

    namespace: str
    kind: str
    """Of the channel."""
    address: str
    """Whole; what is kept of it is `shown`."""
    exact: bool = True
    """False: several addresses share it (URLs that differ in their query)."""

    @property
    def endpoint_id(self) -> str:
        """`ep_` and 26 characters, the same for ever."""
        return _id_of(self.kind, self.address)

    @property
    def shown(self) -> str:
        """The address, cut."""
        return self.address[:SHOWN_ADDRESS]


def address_of(namespace: str, channel: Channel) -> Address | None:
    """Of a webhook scheme, host, port and path, without query: that may hold a token, or one
    receiver's many names. None for what has no address, or none of its own.
    """
    match channel.target:
        case Webhook(url=url):
            return _webhook(namespace, url)
        case Email(to=to) | Sms(to=to) | Push(to=to) if to:
            kind = type(channel.target).__name__.lower()
            return Address(namespace=namespace, kind=kind, address=to)
    return None


@lru_cache(maxsize=4096)
def _webhook(namespace: str, url: str) -> Address:
    path, _, _ = url.partition("#")
    path, question, _ = path.partition("?")
    start = origin(path)
    address = f"{start.lower()}{path[len(start) :] or '/'}"
    return Address(namespace=namespace, kind="webhook", address=address, exact=not question)


@lru_cache(maxsize=4096)
def _id_of(kind: str, address: str) -> str:
    digest = blake2b(f"{kind}\0{address}".encode(), digest_size=16).digest()
    return f"ep_{b32encode(digest).decode().rstrip('=').lower()}"


class Endpoint(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What is known of an endpoint that fails, failed lately, or is disabled.

    A healthy one has none: nothing is written while all goes well.
    """

    namespace: str
    endpoint_id: str
    kind: str
    address: str
    """Cut at 512 characters."""
    version: int
    """From 1; every change is one more."""
    stamp: int
    """Of what is written plainly about this version, µs; grows with the version."""

    failing_since: datetime | None = None
    """The first failure with no success since. None: it does not fail."""
    run_since: datetime | None = None
    """The same of the failures that came without a long silence between them."""
    failures: int = 0
    """Since then, at least: at most one a minute is counted."""
    last_failure_at: datetime | None = None
    error_class: str = ""
    """Of that failure."""
    last_success_at: datetime | None = None
    """The last one that ended a time of failures."""

    disabled_at: datetime | None = None
    why: Why | None = None
    announced: bool = False
    """The operator was told that it is disabled."""

    @property
    def disabled(self) -> bool:
        """Nothing is sent to it."""
        return self.disabled_at is not None

    @property
    def troubled(self) -> bool:
        """It fails or is disabled."""
        return self.disabled or self.failing_since is not None


def endpoint_bucket(namespace: str, endpoint_id: str) -> int:
    """Of the list of those in trouble."""
    return crc32(f"{namespace}\0{endpoint_id}".encode()) % ENDPOINT_BUCKETS

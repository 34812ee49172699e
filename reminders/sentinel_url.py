"""`redis+sentinel://[[user]:password@]host:port[,host:port…]/service[/database]`, taken apart.

The hosts are those of the sentinels. User and password are those of the Redis servers; the
sentinels are asked without. Pure: the configuration checks by it, the Redis adapter connects by it.
"""

from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

SCHEME = "redis+sentinel"
DEFAULT_PORT = 26379
FORM = f"{SCHEME}://host:port[,host:port…]/service[/database]"


@dataclass(frozen=True, slots=True, kw_only=True)
class SentinelUrl:
    """Where to ask who the master is, and how to log in there."""

    sentinels: tuple[tuple[str, int], ...]
    service: str
    database: int = 0
    username: str | None = None
    password: str | None = field(default=None, repr=False)


def is_sentinel_url(url: str) -> bool:
    """Whether it has this form's scheme."""
    return urlsplit(url).scheme == SCHEME


def parse_sentinel_url(url: str) -> SentinelUrl:
    """The parts.

    Raises:
        ValueError: With what is wrong; the URL is not repeated, it may hold a password.
    """
    parts = urlsplit(url)
    hosts = parts.netloc.rpartition("@")[2]
    service, _, database = parts.path.removeprefix("/").partition("/")
    if parts.scheme != SCHEME or not hosts or not service:
        raise ValueError(f"no such URL: write {FORM}")
    if parts.query or parts.fragment:
        raise ValueError(f"nothing may follow the service and the database: write {FORM}")
    if database and not database.isdigit():
        raise ValueError(f"the database is no number: write {FORM}")
    return SentinelUrl(
        sentinels=tuple(_address(host) for host in hosts.split(",")),
        service=unquote(service),
        database=int(database or 0),
        username=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password) if parts.password else None,
    )


def _address(text: str) -> tuple[str, int]:
    """One sentinel: `name`, `name:port`, `[v6]:port`."""
    try:
        parts = urlsplit(f"//{text.strip()}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or (port is not None and port == 0):
        # not repeated: with a `/` in a password, it is a part of that
        raise ValueError(f"one of the hosts is not host:port: write {FORM}")
    return host, port or DEFAULT_PORT

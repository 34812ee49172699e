"""Where a request goes, and its bytes (RFC 9112)."""

import re
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import quote, urlsplit

from msgspec import Struct

_PORTS = {"http": 80, "https": 443}
_MARKS = "!$&'()*+,-./:;=?@_~%"
"""What may stand in a path or query besides letters and digits (RFC 3986). An escape stays one."""
_TARGET = re.compile(rf"/[A-Za-z0-9{re.escape(_MARKS)}]*")


class Origin(Struct, frozen=True, kw_only=True):
    """Scheme, host and port."""

    name: str
    """As a URL begins; the same however it was written."""
    secure: bool
    host: str
    """A name as written, or an address without brackets; in lower case."""
    port: int
    authority: str
    """What `Host` says: without the scheme's own port, and without a name's last dot."""

    @property
    def server_name(self) -> str:
        """What the certificate must be for."""
        return self.host.rstrip(".")


@lru_cache(maxsize=4096)
def origin_of(text: str) -> Origin:
    """Of `https://hooks.example:8443`. Raises ValueError where it is none."""
    parts = urlsplit(text)
    default = _PORTS.get(parts.scheme)
    if default is None or not parts.hostname:
        raise ValueError("neither http:// nor https:// with a host")
    host, port = parts.hostname, parts.port or default
    shown = f"[{host}]" if ":" in host else host.rstrip(".")
    authority = shown if port == default else f"{shown}:{port}"
    return Origin(
        name=f"{parts.scheme}://{authority}",
        secure=parts.scheme == "https",
        host=host,
        port=port,
        authority=authority,
    )


def target_of(rest: str) -> str:
    """What follows the origin in a URL, as the request line has it: no fragment, all escaped that
    must be.
    """
    path = rest.partition("#")[0]
    if not path.startswith("/"):
        path = "/" + path
    return path if _TARGET.fullmatch(path) else quote(path, safe=_MARKS)


def encode(origin: Origin, target: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """A POST. Raises ValueError for what would be read as something else: line ends in a header,
    anything but ASCII.
    """
    fields = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    head = (
        f"POST {target} HTTP/1.1\r\nHost: {origin.authority}\r\nAccept: */*\r\n"
        f"{fields}Content-Length: {len(body)}\r\n\r\n"
    )
    lines = len(headers) + 5
    if head.count("\r") != lines or head.count("\n") != lines or "\0" in head:
        raise ValueError("a line end or NUL in a header")
    return head.encode("ascii") + body

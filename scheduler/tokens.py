"""Etags and page tokens: opaque to callers, and checked when they come back.

The checks find mistakes (a token of another list, an etag of another reminder); they are no secret,
for neither gives access to anything that the request itself does not name.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import blake2b
from zlib import crc32

_DIGEST_BYTES = 6


def etag_of(reminder_id: str, version: int) -> str:
    """The etag of a version of a reminder."""
    return f"v{version}-{crc32(f'{reminder_id}.{version}'.encode()):08x}"


def version_of(etag: str, reminder_id: str) -> int | None:
    """The version that an etag stands for; None if it is not one of this reminder."""
    number = etag[1:].partition("-")[0]
    if not (number.isascii() and number.isdecimal()) or len(number) > 18:
        return None
    version = int(number)
    return version if etag == etag_of(reminder_id, version) else None


def seal(position: str, *scope: str) -> str:
    """A page token for a position in the list that `scope` names; empty for the end."""
    if not position:
        return ""
    inner = position.encode()
    return urlsafe_b64encode(_digest(inner, scope) + inner).decode().rstrip("=")


def unseal(token: str, *scope: str) -> str | None:
    """The position; None if the token is not, byte for byte, one of this list."""
    try:
        raw = urlsafe_b64decode(token + "=" * (-len(token) % 4))
        position = raw[_DIGEST_BYTES:].decode()
    except ValueError:
        return None
    return position if position and token == seal(position, *scope) else None


def _digest(inner: bytes, scope: tuple[str, ...]) -> bytes:
    named = "\0".join(scope).encode()
    key = blake2b(named, digest_size=32).digest()
    return blake2b(inner, key=key, digest_size=_DIGEST_BYTES).digest()

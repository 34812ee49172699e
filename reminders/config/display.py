"""Settings as people write them, without passwords."""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from reminders.config.durations import format_duration

MASK = "***"
_HOST_ALONE = re.compile(r"(?:[\w.-]+|\[[0-9A-Fa-f:.]+\])(?:[/?#]|$)")
"""A host with neither credentials nor a port, which could be the start of credentials."""


def shown(name: str, value: Any) -> str:
    """A value in the spelling that the environment takes; empty for one that is not set."""
    match value:
        case None:
            text = ""
        case bool():
            text = str(value).lower()
        case timedelta():
            text = format_duration(value)
        case SecretStr():
            text = MASK
        case Mapping():
            items = {key: shown("", item) for key, item in value.items()}
            text = ",".join(f"{key}:{item}" if key else item for key, item in items.items())
        case list() | tuple():
            text = ",".join(shown("", item) for item in value)
        case _:
            text = _without_password(str(value)) if name.endswith("_url") else str(value)
    return text


def is_secret(field: FieldInfo) -> bool:
    """Whether the value must never be shown, not even a wrong one."""
    return "SecretStr" in str(field.annotation)


def _without_password(url: str) -> str:
    """Of any text, for a wrong value is shown as well: a password with a `/` or a `#` in it, or
    credentials where none belong. In doubt too much is masked. A query may hold a token.
    """
    scheme, separator, rest = url.partition("://") if "://" in url else ("", "", url)
    user = ""
    if not (scheme in ("http", "https") and _HOST_ALONE.match(rest)):
        credentials, at, rest = rest.rpartition("@")
        name, colon, _ = credentials.partition(":")
        user = f"{name}:{MASK}@" if colon else MASK + at if at else ""
    rest, query, _ = rest.partition("?")
    return f"{scheme}{separator}{user}{rest}{query}{MASK if query else ''}"

"""Settings as people write them, without passwords."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from reminders.config.durations import format_duration

MASK = "***"


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
    parts = urlsplit(url)
    if not parts.password:
        return url
    address = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{parts.username or ''}:{MASK}@{address}"))

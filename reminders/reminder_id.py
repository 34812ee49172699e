"""Identifiers of reminders."""

from base64 import b32encode
from secrets import token_bytes


def new_reminder_id() -> str:
    """Unguessable, unique over all namespaces: 25 lower-case ASCII characters, 120 random bits."""
    return "r" + b32encode(token_bytes(15)).decode().lower()

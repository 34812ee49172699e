"""Identifiers of reminders."""

from base64 import b32encode
from secrets import token_bytes

RANDOM_BYTES = 15
"""Of one id: 24 characters of base 32."""


def new_reminder_id() -> str:
    """Unguessable, unique over all namespaces: 25 lower-case ASCII characters, 120 random bits."""
    return new_reminder_ids(1)[0]


def new_reminder_ids(count: int) -> list[str]:
    """So many: drawn together, each costs half."""
    drawn = b32encode(token_bytes(RANDOM_BYTES * count)).decode().lower()
    return ["r" + drawn[at : at + 24] for at in range(0, len(drawn), 24)]

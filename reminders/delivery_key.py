"""The name of one intended delivery, the same for all its attempts (R-DEL-2)."""

import hashlib

_PREFIX = "dlv_"
_HEX_DIGITS = 40
"""160 bits: no two deliveries meet by chance."""


def delivery_key(reminder_id: str, occurrence_id: str, channel_id: str, target: str = "") -> str:
    """44 ASCII characters, opaque; another version, attempt or URL does not change it.

    `target` is the subscriber of a topic, and empty for a user's reminder.
    """
    # None of the first three can hold a NUL, so different parts never join to the same text.
    name = f"{reminder_id}\0{occurrence_id}\0{channel_id}\0{target}"
    return _PREFIX + hashlib.sha256(name.encode()).hexdigest()[:_HEX_DIGITS]

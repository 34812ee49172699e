"""Namespaces that no caller can name, because no caller's may begin with `$`."""

RESERVED = "$"
EVENTS = "$events"
"""Of Tocsin's own reminders to its operator: the operational events."""
EVENTS_SECRET_ID = "events"  # noqa: S105 - the name of one
"""What signs them."""


def is_reserved(namespace: str) -> bool:
    """Whether it is Tocsin's own."""
    return namespace.startswith(RESERVED)

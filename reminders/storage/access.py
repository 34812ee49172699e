"""What the ports share: one session's statements and ways to send them."""

from collections.abc import Mapping
from dataclasses import dataclass

from reminders.storage.bridge import Bridge
from reminders.storage.expiry import Expiry
from reminders.storage.rows import Rows
from reminders.storage.settings import StorageSettings
from reminders.storage.wire import Prepared
from reminders.storage.writer import GroupWriter


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One connected session."""

    settings: StorageSettings
    bridge: Bridge
    prepared: Mapping[str, Prepared]
    rows: Rows
    expiry: Expiry
    creates: GroupWriter
    """New reminders: a flood of them must not delay the steps of those that are there."""
    steps: GroupWriter
    """Everything else that somebody waits for."""
    outcomes: GroupWriter
    """What has happened: nobody waits for it, so it gathers."""

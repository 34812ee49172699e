"""What the user's recipient record lends to a request: addresses, and the zone.

Requests are read without it first, which costs nothing where they say all themselves. What was
refused for something that a record could fill in is read again with it (`scheduler.lookups`).
"""

from typing import Final

from msgspec import Struct

from reminders.lifecycle.problems import shown
from reminders.model.definition import PushProvider, Schedule
from reminders.model.recipient import Recipient

WORDS: Final = {"email": "an e-mail address", "sms": "a number", "push": "a device's token"}


class Reach(Struct, frozen=True, kw_only=True):
    """What a request leans on beside itself."""

    recipient: Recipient | None = None
    read: bool = False
    """Somebody has looked: `recipient` is None where there is no record."""
    trusted: bool = False
    """Channels without an address stay as they are: they were right when they were given."""
    lends: bool = True
    """False: no record stands behind it, as for a topic's subscriber."""
    kept: Schedule | None = None
    """The stored schedule, where an update leaves it: it stays as it is."""

    @property
    def zone(self) -> str:
        """Empty: it has none, or is not known."""
        return self.recipient.time_zone if self.recipient is not None else ""

    def lacks(self, kind: str, provider: PushProvider | None = None) -> str | None:
        """Why a channel of that kind can't do without its own address; None: it can."""
        if self.trusted or self._has(kind, provider):
            return None
        if not self.lends:
            return "has no address: say where to"
        what = WORDS[kind]
        if provider is not None:
            what += f" of {provider.value}"
        said = "has no address"
        if self.recipient is not None:
            said += f", and the recipient record of {shown(self.recipient.user_id)} has none either"
        elif self.read:
            said += ", and the user has no recipient record"
        return f"{said}: say where to, or put {what} into the record (PutRecipient)"

    def _has(self, kind: str, provider: PushProvider | None) -> bool:
        found = self.recipient
        if found is None:
            return False
        if kind == "push":
            return found.token_of(provider) is not None
        return bool(found.email if kind == "email" else found.sms)


UNREAD: Final = Reach()
ALONE: Final = Reach(lends=False)

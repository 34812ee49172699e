"""Recipients."""

from reminders.model.codec import decode_recipient, encode
from reminders.model.recipient import Recipient
from reminders.storage.access import Access
from reminders.storage.bridge import translated


class CassandraRecipients:
    """`reminders.ports.Recipients`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def read(self, namespace: str, user_id: str) -> Recipient | None:
        """One query."""
        bound = self._access.prepared["recipient_read"].bind(namespace, user_id)
        with translated("recipients.read"):
            rows = await self._access.bridge.run(bound)
        return decode_recipient(rows[0][0]) if rows and rows[0][0] is not None else None

    async def put(self, recipient: Recipient, *, expected: int | None) -> bool:
        """One LWT; where that does not apply, a read: it may be an earlier try of our own."""
        place = recipient.namespace, recipient.user_id
        bound = self._access.prepared["recipient_put"].bind(
            recipient.version, encode(recipient), *place, expected
        )
        with translated("recipients.put"):
            rows = await self._access.bridge.run(bound)
        return bool(rows[0][0]) or await self.read(*place) == recipient

    async def delete(self, namespace: str, user_id: str, *, expected: int) -> bool:
        """The same."""
        bound = self._access.prepared["recipient_delete"].bind(namespace, user_id, expected)
        with translated("recipients.delete"):
            rows = await self._access.bridge.run(bound)
        return bool(rows[0][0]) or await self.read(namespace, user_id) is None

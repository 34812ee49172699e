"""Recipients."""

from reminders.memory.store.points import Hook, Points
from reminders.model.recipient import Recipient


class MemoryRecipients(Points):
    """`reminders.ports.Recipients`."""

    def __init__(self, hook: Hook | None) -> None:
        super().__init__(hook)
        self._rows: dict[tuple[str, str], Recipient] = {}

    async def read(self, namespace: str, user_id: str) -> Recipient | None:
        """Looks."""
        await self._point("recipients.read")
        return self._rows.get((namespace, user_id))

    async def put(self, recipient: Recipient, *, expected: int | None) -> bool:
        """Compares and sets."""
        await self._point("recipients.put")
        place = recipient.namespace, recipient.user_id
        stands = self._rows.get(place)
        done = _version(stands) == expected or stands == recipient
        if done:
            self._rows[place] = recipient
        await self._point("recipients.put.done")
        return done

    async def delete(self, namespace: str, user_id: str, *, expected: int) -> bool:
        """Compares and takes away."""
        await self._point("recipients.delete")
        stands = self._rows.get((namespace, user_id))
        done = stands is None or stands.version == expected
        if done:
            self._rows.pop((namespace, user_id), None)
        await self._point("recipients.delete.done")
        return done


def _version(recipient: Recipient | None) -> int | None:
    return recipient.version if recipient is not None else None

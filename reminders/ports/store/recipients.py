"""Where users are reached."""

from typing import Protocol

from reminders.model.recipient import Recipient


class Recipients(Protocol):
    """Where users are reached: one row for each (namespace, user_id), which holds all of a user."""

    async def read(self, namespace: str, user_id: str) -> Recipient | None:
        """The record as it stands."""

    async def put(self, recipient: Recipient, *, expected: int | None) -> bool:
        """Atomically replaces the record of version `expected` (None: there is none); False if
        another one stands there. Linearizable.

        After an error it may have been written, now or later; repeated with the same arguments it
        answers True if its own try had been.
        """

    async def delete(self, namespace: str, user_id: str, *, expected: int) -> bool:
        """Atomically takes away the record of version `expected`; False if another one stands
        there. True also where there is none. Linearizable.
        """

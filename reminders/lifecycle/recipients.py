"""Where users are reached: put, get, delete. Whoever decides by an old version is told."""

from msgspec.structs import replace

from reminders.errors import RecipientNotFound, StoreUnavailable, VersionMismatch
from reminders.lifecycle.writing import stamp_of
from reminders.model.recipient import Recipient
from reminders.platform import Platform

ATTEMPTS = 5
"""Times that a call which takes any version is overtaken by others, until it gives up."""


class Recipients:
    """The use cases."""

    def __init__(self, platform: Platform) -> None:
        self._store = platform.store
        self._clock = platform.clock

    async def find(self, namespace: str, user_id: str) -> Recipient | None:
        """The record, if there is one."""
        return await self._store.recipients.read(namespace, user_id)

    async def get(self, namespace: str, user_id: str) -> Recipient:
        """Raises `RecipientNotFound`."""
        found = await self.find(namespace, user_id)
        if found is None:
            raise RecipientNotFound(user_id=user_id, namespace=namespace)
        return found

    async def put(self, asked: Recipient, *, expected_version: int | None) -> Recipient:
        """The record as it stands then. `asked`: version and times are set here.

        One that changes nothing writes nothing, whatever the version: the repeat of a put whose
        answer was lost must not be told that somebody else was faster. Raises `VersionMismatch`.
        """
        for _ in range(ATTEMPTS):
            stands = await self.find(asked.namespace, asked.user_id)
            if stands is not None and _same(stands, asked):
                return stands
            found = stands.version if stands is not None else None
            if expected_version not in (None, found):
                raise VersionMismatch(actual=found or 0, what="recipient record")
            now = self._clock.now()
            new = replace(
                asked,
                version=max(stamp_of(now), (found or 0) + 1),
                created_at=stands.created_at if stands is not None else now,
                updated_at=now,
            )
            if await self._store.recipients.put(new, expected=found):
                return new
        raise StoreUnavailable(operation="put a recipient: overtaken by others")

    async def delete(self, namespace: str, user_id: str, *, expected_version: int | None) -> None:
        """Raises `RecipientNotFound`, `VersionMismatch`."""
        for _ in range(ATTEMPTS):
            stands = await self.get(namespace, user_id)
            if expected_version not in (None, stands.version):
                raise VersionMismatch(actual=stands.version, what="recipient record")
            if await self._store.recipients.delete(namespace, user_id, expected=stands.version):
                return
        raise StoreUnavailable(operation="delete a recipient: overtaken by others")


def _same(stands: Recipient, asked: Recipient) -> bool:
    kept = {name: getattr(stands, name) for name in ("version", "created_at", "updated_at")}
    return replace(asked, **kept) == stands

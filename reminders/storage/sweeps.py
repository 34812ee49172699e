"""How far walks over all records have come."""

from reminders.storage.access import Access
from reminders.storage.bridge import translated


class CassandraSweeps:
    """`reminders.ports.Sweeps`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def read(self, name: str) -> bytes | None:
        """One query."""
        with translated("sweeps.read"):
            rows = await self._access.bridge.run(self._access.prepared["sweep_read"].bind(name))
        return bytes(rows[0][0]) if rows and rows[0][0] is not None else None

    async def save(self, name: str, state: bytes, *, expected: bytes | None) -> bool:
        """One LWT."""
        with translated("sweeps.save"):
            rows = await self._access.bridge.run(
                self._access.prepared["sweep_save"].bind(state, name, expected)
            )
        return bool(rows[0][0])

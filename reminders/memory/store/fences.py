"""Cancelled groups."""

from collections.abc import Collection, Mapping
from datetime import datetime

from reminders.memory.store.points import Hook, Points


class MemoryFences(Points):
    """`reminders.ports.Fences`."""

    def __init__(self, hook: Hook | None) -> None:
        super().__init__(hook)
        self._fences: dict[tuple[str, str], datetime] = {}

    async def put(self, namespace: str, group_id: str, cancelled_at: datetime) -> None:
        """Takes the larger."""
        await self._point("fences.put")
        group = namespace, group_id
        self._fences[group] = max(self._fences.get(group, cancelled_at), cancelled_at)
        await self._point("fences.put.done")

    async def read(self, groups: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], datetime]:
        """Those that are there."""
        if not groups:
            return {}
        await self._point("fences.read")
        return {group: self._fences[group] for group in groups if group in self._fences}

"""Cancelled groups."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime

from reminders.storage.access import Access
from reminders.storage.bridge import together, translated
from reminders.storage.expiry import from_us

READ_AT_ONCE = 50
"""Groups in one query, which the coordinator reads as so many partitions."""


class CassandraFences:
    """`reminders.ports.Fences`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def put(self, namespace: str, group_id: str, cancelled_at: datetime) -> None:
        """Stamped with the value itself."""
        row = self._access.rows.fence(namespace, group_id, cancelled_at)
        await self._access.steps.write((row,), "fences.put")

    async def read(self, groups: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], datetime]:
        """One query for each namespace and `READ_AT_ONCE` groups."""
        if not groups:
            return {}
        names: dict[str, set[str]] = defaultdict(set)
        for namespace, group_id in groups:
            names[namespace].add(group_id)
        with translated("fences.read"):
            found = await together(
                [
                    self._some(namespace, ids[first : first + READ_AT_ONCE])
                    for namespace, ids in ((n, sorted(ids)) for n, ids in names.items())
                    for first in range(0, len(ids), READ_AT_ONCE)
                ]
            )
        return {group: cancelled_at for some in found for group, cancelled_at in some.items()}

    async def _some(self, namespace: str, ids: list[str]) -> dict[tuple[str, str], datetime]:
        bound = self._access.prepared["fences_read"].bind(namespace, ids)
        rows = await self._access.bridge.run(bound)
        return {(namespace, group_id): from_us(us) for group_id, us in rows if us is not None}

"""Which groups were cancelled."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Protocol


class Fences(Protocol):
    """Groups that were cancelled, by (namespace, group_id)."""

    async def put(self, namespace: str, group_id: str, cancelled_at: datetime) -> None:
        """Makes everything of the group void whose record was created up to `cancelled_at`; a
        smaller value than the stored one changes nothing.
        """

    async def read(self, groups: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], datetime]:
        """`cancelled_at` of those that were cancelled; the others are left out."""

"""What ended without having arrived."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from reminders.model.ended import Ended, EndedPlace


class EndedDeliveries(Protocol):
    """What ended `failed` or `expired`, by namespace and UTC hour, oldest first. It leaves as the
    ledger does, which decides whether a row still stands (`model.ended.stands`).
    """

    async def add(self, ended: Sequence[Ended]) -> None:
        """Writes rows; repeating is safe."""

    async def page(
        self, namespace: str, hour: datetime, *, after: EndedPlace | None = None, limit: int
    ) -> list[Ended]:
        """At most `limit` of an hour in the order of their places, strictly after `after`, which
        lies in that hour. Fewer than `limit`: that was all.
        """

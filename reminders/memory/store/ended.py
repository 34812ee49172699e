"""What ended without having arrived."""

from collections.abc import Sequence
from datetime import datetime

from reminders.buckets import hour_of
from reminders.memory.store.cells import Cell
from reminders.memory.store.points import Hook, Points
from reminders.memory.store.stamps import stamp_of
from reminders.model.codec import encode
from reminders.model.ended import Ended, EndedPlace


class MemoryEnded(Points):
    """`reminders.ports.EndedDeliveries`."""

    def __init__(self, hook: Hook | None) -> None:
        super().__init__(hook)
        self._hours: dict[tuple[str, datetime], dict[EndedPlace, Cell[Ended]]] = {}

    async def add(self, ended: Sequence[Ended]) -> None:
        """At once."""
        await self._point("ended.add")
        for one in ended:
            hour = self._hours.setdefault((one.namespace, hour_of(one.ended_at)), {})
            hour.setdefault(one.place, Cell()).put(one, stamp_of(one.ended_at), encode(one))
        await self._point("ended.add.done")

    async def page(
        self, namespace: str, hour: datetime, *, after: EndedPlace | None = None, limit: int
    ) -> list[Ended]:
        """Sorts the hour."""
        await self._point("ended.page")
        cells = self._hours.get((namespace, hour), {})
        places = sorted(place for place in cells if after is None or place > after)
        found = (cells[place].value for place in places[:limit])
        return [one for one in found if one is not None]

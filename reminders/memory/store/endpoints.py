"""Endpoints that fail or are disabled."""

from reminders.memory.store.cells import Cell
from reminders.memory.store.points import Hook, Points
from reminders.model.codec import encode
from reminders.model.endpoint import Endpoint, endpoint_bucket

Name = tuple[str, str]
"""Namespace and id."""


class MemoryEndpoints(Points):
    """`reminders.ports.Endpoints`."""

    def __init__(self, hook: Hook | None) -> None:
        super().__init__(hook)
        self._states: dict[Name, Endpoint] = {}
        self._listed: dict[Name, Cell[Endpoint]] = {}

    async def read(self, namespace: str, endpoint_id: str) -> Endpoint | None:
        """Looks."""
        await self._point("endpoints.read")
        return self._states.get((namespace, endpoint_id))

    async def save(self, endpoint: Endpoint) -> bool:
        """Compares and sets."""
        await self._point("endpoints.save")
        name = endpoint.namespace, endpoint.endpoint_id
        stands = self._states.get(name)
        saved = endpoint.version == (stands.version if stands is not None else 0) + 1
        if saved:
            self._states[name] = endpoint
        await self._point("endpoints.save.done")
        return saved

    def _cell(self, endpoint: Endpoint) -> Cell[Endpoint]:
        return self._listed.setdefault((endpoint.namespace, endpoint.endpoint_id), Cell())

    async def show(self, endpoint: Endpoint) -> None:
        """At once."""
        await self._point("endpoints.show")
        self._cell(endpoint).put(endpoint, endpoint.stamp, encode(endpoint))
        await self._point("endpoints.show.done")

    async def hide(self, endpoint: Endpoint) -> None:
        """At once."""
        await self._point("endpoints.hide")
        self._cell(endpoint).delete(endpoint.stamp)
        await self._point("endpoints.hide.done")

    async def page(
        self,
        bucket: int,
        *,
        namespace: str | None = None,
        after: Name | None = None,
        limit: int,
    ) -> list[Endpoint]:
        """Sorts the bucket."""
        await self._point("endpoints.page")
        names = sorted(
            name
            for name, cell in self._listed.items()
            if cell.value is not None
            and endpoint_bucket(*name) == bucket
            and namespace in (None, name[0])
            and (after is None or name > after)
        )
        found = (self._listed[name].value for name in names[:limit])
        return [one for one in found if one is not None]

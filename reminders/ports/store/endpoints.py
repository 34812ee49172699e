"""Which endpoints fail or are disabled."""

from typing import Protocol

from reminders.model.endpoint import Endpoint


class Endpoints(Protocol):
    """Endpoints that fail, failed lately or are disabled; the others have no row."""

    async def read(self, namespace: str, endpoint_id: str) -> Endpoint | None:
        """As it stands."""

    async def save(self, endpoint: Endpoint) -> bool:
        """Atomically replaces the version before `endpoint.version`, or nothing where that is 1;
        False if another version stands there. Linearizable.

        After an error it may have been saved, now or later: read, and decide anew. One that is not
        disabled leaves some months after its last change.
        """

    async def show(self, endpoint: Endpoint) -> None:
        """Puts a version into the list of those in trouble; a newer one stays."""

    async def hide(self, endpoint: Endpoint) -> None:
        """Takes it out of the list, as of a version; a newer one stays."""

    async def page(
        self,
        bucket: int,
        *,
        namespace: str | None = None,
        after: tuple[str, str] | None = None,
        limit: int,
    ) -> list[Endpoint]:
        """At most `limit` of the list in order of (namespace, endpoint_id), strictly after `after`,
        of one of its `ENDPOINT_BUCKETS` buckets. `namespace`: only that one's. Fewer than `limit`:
        that was all.
        """

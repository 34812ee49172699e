"""Endpoints that fail or are disabled."""

from datetime import timedelta

from reminders.model.codec import decode_endpoint, encode
from reminders.model.endpoint import Endpoint, endpoint_bucket
from reminders.storage.access import Access
from reminders.storage.bridge import translated
from reminders.storage.wire import Mutation, bigint, bigint_integer, framed, integer, text

LIFE = timedelta(days=90)
"""Of what is not disabled, after its last change: much longer than anything counts."""
_LIFE_S = int(LIFE.total_seconds())


class CassandraEndpoints:
    """`reminders.ports.Endpoints`."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._put = access.prepared["troubled_put"].row
        self._delete = access.prepared["troubled_delete"].row

    async def read(self, namespace: str, endpoint_id: str) -> Endpoint | None:
        """One query."""
        statement = self._access.prepared["endpoint_read"]
        with translated("endpoints.read"):
            rows = await self._access.bridge.run(statement.bind(namespace, endpoint_id))
        return decode_endpoint(rows[0][0]) if rows and rows[0][0] is not None else None

    async def save(self, endpoint: Endpoint) -> bool:
        """One LWT."""
        ttl = 0 if endpoint.disabled else _LIFE_S
        expected = endpoint.version - 1 or None
        bound = self._access.prepared["endpoint_save"].bind(
            ttl,
            endpoint.version,
            encode(endpoint),
            endpoint.namespace,
            endpoint.endpoint_id,
            expected,
        )
        with translated("endpoints.save"):
            rows = await self._access.bridge.run(bound)
        return bool(rows[0][0])

    async def show(self, endpoint: Endpoint) -> None:
        """Stamped as its version is."""
        row = self._put(
            *_key(endpoint),
            framed(encode(endpoint)),
            bigint_integer(endpoint.stamp, 0 if endpoint.disabled else _LIFE_S),
        )
        await self._access.outcomes.write((Mutation(row, 1),), "endpoints.show")

    async def hide(self, endpoint: Endpoint) -> None:
        """The same."""
        row = self._delete(bigint(endpoint.stamp), *_key(endpoint))
        await self._access.outcomes.write((Mutation(row, 1),), "endpoints.hide")

    async def page(
        self,
        bucket: int,
        *,
        namespace: str | None = None,
        after: tuple[str, str] | None = None,
        limit: int,
    ) -> list[Endpoint]:
        """One query."""
        last = after or ("", "")  # smaller than every name
        if namespace is None:
            bound = self._access.prepared["troubled_page"].bind(bucket, *last, limit)
        else:
            bound = self._access.prepared["troubled_page_of"].bind(
                bucket, namespace, last[1], limit
            )
        with translated("endpoints.page"):
            rows = await self._access.bridge.run(bound)
        return [decode_endpoint(row) for (row,) in rows if row is not None]


def _key(endpoint: Endpoint) -> tuple[bytes, ...]:
    bucket = endpoint_bucket(endpoint.namespace, endpoint.endpoint_id)
    return integer(bucket), text(endpoint.namespace), text(endpoint.endpoint_id)

"""What ended without having arrived."""

from collections.abc import Sequence
from datetime import datetime
from zlib import crc32

from reminders.buckets import hour_of
from reminders.model.codec import decode_ended, encode
from reminders.model.ended import Ended, EndedPlace
from reminders.storage.access import Access
from reminders.storage.bridge import together, translated
from reminders.storage.expiry import to_us
from reminders.storage.wire import Mutation, bigint, bigint_integer, framed, integer, text

BUCKETS = 8
"""Of an hour: an hour in which ten million fail has partitions of some 300 MB."""


class CassandraEnded:
    """`reminders.ports.EndedDeliveries`."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._put = access.prepared["ended_put"].row

    async def add(self, ended: Sequence[Ended]) -> None:
        """Grouped with what others write; stamped with the time itself."""
        await self._access.outcomes.write(map(self._row, ended), "ended.add")

    def _row(self, one: Ended) -> Mutation:
        at_us = to_us(one.ended_at)
        row = self._put(
            text(one.namespace),
            bigint(to_us(hour_of(one.ended_at)) // 1000),
            integer(_bucket(one)),
            bigint(at_us),
            text(one.reminder_id),
            text(one.occurrence_id),
            text(one.channel_id),
            text(one.target),
            framed(encode(one)),
            bigint_integer(at_us, self._access.expiry.ledger(at_us)),
        )
        return Mutation(row, 1)

    async def page(
        self, namespace: str, hour: datetime, *, after: EndedPlace | None = None, limit: int
    ) -> list[Ended]:
        """One query for each bucket, merged."""
        place = after if after is not None else EndedPlace(hour)
        # Every id is greater than the empty one, so the start of an hour leaves out none.
        bounds = (to_us(place.ended_at), *place[1:], limit)
        statement = self._access.prepared["ended_page"]
        run = self._access.bridge.run
        with translated("ended.page"):
            found = await together(
                [run(statement.bind(namespace, hour, each, *bounds)) for each in range(BUCKETS)]
            )
        rows = (decode_ended(row) for some in found for (row,) in some if row is not None)
        return sorted(rows, key=lambda one: one.place)[:limit]


def _bucket(one: Ended) -> int:
    name = f"{one.reminder_id}\0{one.occurrence_id}\0{one.channel_id}\0{one.target}"
    return crc32(name.encode()) % BUCKETS

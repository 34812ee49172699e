"""The two LWTs of a change, with a sure answer or none.

An LWT whose answer was lost may have been applied, may be under way, or may never have begun. A
read at SERIAL completes or rules out what is under way; what has not begun yet cannot be ruled out,
so where the record stands as before, the same LWT is sent again: `request_id` tells it from
everybody else's. Three verdicts:

    done    the record is as this LWT leaves it: True
    over    the record went on, so this LWT can never apply any more: False
    open    it could still apply: send it again; at last StoreUnavailable
"""

import asyncio
import random
from collections.abc import Callable
from typing import Any

from reminders.errors import StoreUnavailable
from reminders.model.codec import decode_record, encode
from reminders.model.record import Change, Outcome, Record
from reminders.storage.access import Access
from reminders.storage.bridge import UNAVAILABLE, Row, translated

ATTEMPTS = 4
BACKOFF_S = 0.05
"""Before the second attempt, at random up to twice that, then twice as long each time: concurrent
LWTs on one partition time each other out."""

Verdict = Callable[[int | None, bytes | None, str | None, bytes | None], bool | None]
"""From version, record, change_id and changing as they stand: done, over, or None for open."""


class Changes:
    """`begin` and `end`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def begin(self, record: Record, change: Change) -> bool:
        """See `reminders.ports.Records.begin`."""
        changing = encode(change)

        def verdict(
            version: int | None, _record: bytes | None, change_id: str | None, stands: bytes | None
        ) -> bool | None:
            if change_id == change.request_id and version == record.version:
                return stands == changing
            # at the old version it could still apply, also after the change that is there now
            return None if version == record.version - 1 else False

        bound = self._access.prepared["change_begin"].bind(
            self._ttl(record, change),
            record.version,
            encode(record),
            change.request_id,
            changing,
            record.reminder_id,
            record.version - 1,
        )
        return await self._decide("records.begin", bound, change, verdict)

    async def end(self, record: Record, change: Change) -> bool:
        """See `reminders.ports.Records.end`."""
        blob = encode(record)

        def verdict(
            version: int | None,
            stands: bytes | None,
            change_id: str | None,
            _changing: bytes | None,
        ) -> bool | None:
            if change_id == change.request_id and version == change.version:
                return None
            # gone on since: our outcome is among the last ones if it was ours, or one equal to it
            return stands is not None and _outcome(blob, change) == _outcome(stands, change)

        bound = self._access.prepared["change_end"].bind(
            self._ttl(record, change),
            record.version,
            blob,
            record.reminder_id,
            change.version,
            change.request_id,
        )
        return await self._decide("records.end", bound, change, verdict)

    def _ttl(self, record: Record, change: Change) -> int:
        return self._access.expiry.record(record, (*change.revoked, *change.planned))

    async def _decide(self, operation: str, bound: Any, change: Change, verdict: Verdict) -> bool:
        """Where the answer is "not applied" but shows our own id, an earlier try of ours
        applied.
        """
        reminder_id, request_id = change.previous.reminder_id, change.request_id
        with translated(operation):
            for attempt in range(ATTEMPTS):
                if attempt:
                    await asyncio.sleep(BACKOFF_S * 2**attempt * random.random())  # noqa: S311
                try:
                    rows = await self._access.bridge.run(bound)
                except UNAVAILABLE:
                    if attempt == ATTEMPTS - 1:
                        raise
                else:
                    if rows[0][0]:
                        return True
                    if attempt == 0 and request_id not in rows[0]:
                        return False
                decided = verdict(*await self._read(reminder_id))
                if decided is not None:
                    return decided
        raise StoreUnavailable(operation=operation)

    async def _read(self, reminder_id: str) -> Row:
        statement = self._access.prepared["change_read"]
        rows = await self._access.bridge.run(statement.bind(reminder_id))
        return rows[0] if rows else (None, None, None, None)


def _outcome(record: bytes, change: Change) -> Outcome | None:
    outcomes = decode_record(record).outcomes
    return next((o for o in outcomes if o.request_id == change.request_id), None)

"""Cancelling a whole group: one fence, at a cost that does not depend on how many it stops.

```
 1  fence in Cassandra     cancelled_at = now + 2δ: who reads reminders from now on sees them ended
 2  fence in Redis         a key on each shard, one round: first claims are refused, by copies too
                           that scanners read before 1
 3  wait until the clock is past cancelled_at + 2δ, answer
```
A fence is compared with the *record's* creation, which every entry carries: so it stops what a rule
or a change makes later, and a reminder's place in a group never changes. δ bounds the difference of
any two processes' clocks. Hence what was acknowledged before the call was created before
`cancelled_at`, and what begins after the answer is created after it.

The key in Redis lives as long as a void. A copy that is older than that is stale and read again,
and whoever reads entries reads the fences of their groups after that, so it needs no longer. A
server that lost it is no shard's home (MOVED), and what was read before is stale there.

Who looks, and what becomes of a fenced reminder:

| who                         | what                                                               |
|-----------------------------|--------------------------------------------------------------------|
| claim script                | refuses first claims                                               |
| scanner, slices and hints   | does not hold what is fenced                                       |
| scanner, trailing scan      | outcome `cancelled`, handled                                       |
| dispatcher, later attempts  | ends them as `cancelled`                                           |
| expander                    | ends the record of a rule as a cancel does                         |
| get, list, totals           | show it as cancelled                                               |
| changes                     | refuse it as cancelled                                             |

What was claimed before the fence rings. Nothing else has to be cleaned up: an entry is closed, and
on record, when its time comes; its row in the user's list leaves by its TTL and is passed over
until then; a one-shot's record expires with its time. Only a rule's record would stay for ever: so
it is ended when its first entry is closed.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec
import structlog
from msgspec import Struct

from reminders.errors import NotReady
from reminders.lifecycle.occurrences import instant_ms
from reminders.model.definition import Recurring
from reminders.model.entry import DueEntry
from reminders.model.ledger import OccurrenceStatus
from reminders.model.record import Record, Status, Stored
from reminders.platform import Platform
from reminders.ports import Fences, IndexRow

log = structlog.get_logger(__name__)

CLOCKS_APART = timedelta(milliseconds=200)
"""δ. A process whose reference differs from its machine's clock by more than 100 ms does nothing,
so the references of two that act differ by at most twice that, also around a fail-over, while
their machines agree."""
CANCELLED = "group_cancelled"
"""The reason on record of what a fence stopped."""
_ENDED_QUIETLY = (OccurrenceStatus.CANCELLED, OccurrenceStatus.SKIPPED)


class Fenced(Struct, frozen=True):
    """The fences of some groups, as they were read."""

    fences: Mapping[tuple[str, str], datetime]

    def covers(self, namespace: str, group_id: str | None, created_at: datetime | None) -> bool:
        """Whether what was created then is cancelled with its group."""
        if group_id is None or created_at is None or not self.fences:
            return False
        fence = self.fences.get((namespace, group_id))
        return fence is not None and created_at <= fence

    def stops(self, entry: DueEntry) -> bool:
        """Whether an entry's record is cancelled with its group."""
        return self.covers(entry.namespace, entry.group_id, entry.record_created_at)

    def ends(self, record: Record) -> bool:
        """Whether a record is."""
        return self.covers(record.namespace, record.definition.group_id, record.created_at)


async def fences_of(fences: Fences, entries: Iterable[DueEntry]) -> Fenced:
    """Of the groups of these; reads nothing if none has one."""
    groups = {(each.namespace, each.group_id) for each in entries if each.group_id is not None}
    return Fenced(await fences.read(groups) if groups else {})


class Groups:
    """The use cases of a group, and how its end looks to readers."""

    def __init__(self, platform: Platform) -> None:
        self._store = platform.store
        self._claims = platform.coordination.claims
        self._clock = platform.clock
        self._shards = range(platform.limits.shards)

    async def cancel(self, namespace: str, group_id: str) -> datetime:
        """Ends every reminder of the group that was created up to the answer's instant.

        After `Unavailable` it may be in force, wholly or in part: repeat it.
        """
        self._check_clock()
        cancelled_at = instant_ms(self._clock.now() + 2 * CLOCKS_APART)
        await self._store.fences.put(namespace, group_id, cancelled_at)
        await self._claims.fence(self._shards, namespace, group_id, cancelled_at)
        past = cancelled_at + 2 * CLOCKS_APART + timedelta(milliseconds=1)
        await self._clock.sleep_until(past)
        self._check_clock()
        log.info("group.cancelled", namespace=namespace, group_id=group_id)
        return cancelled_at

    def _check_clock(self) -> None:
        if not self._clock.in_bounds():
            raise NotReady(operation="cancel a group")

    # --- reading ----------------------------------------------------------------------------------

    async def seen(self, stored: Stored) -> Stored:
        """A reminder as it is to be seen: cancelled if its group was, though its record says
        nothing of that. To be read from, never to be written back.
        """
        record = stored.record
        group_id = record.definition.group_id
        if group_id is None or record.status not in (Status.SCHEDULED, Status.PAUSED):
            return stored
        found = Fenced(await self._store.fences.read([(record.namespace, group_id)]))
        if not found.ends(record):
            return stored
        status = Status.FIRED if await self._rang(stored) else Status.CANCELLED
        record = msgspec.structs.replace(record, status=status, pause_reason="")
        return msgspec.structs.replace(stored, record=record)

    async def _rang(self, stored: Stored) -> bool:
        """Whether it was a one-shot that had fired by then: the ledger knows."""
        last = stored.current[-1] if stored.current else None
        if isinstance(stored.record.definition.schedule, Recurring) or last is None:
            return False
        if last.occurrence is None or last.key.ring_at > self._clock.now():
            return False
        rows = await self._store.ledger.page(
            last.reminder_id, occurrence_id=last.occurrence.occurrence_id, limit=1
        )
        return bool(rows) and rows[0].ended not in _ENDED_QUIETLY

    async def alive(self, namespace: str, rows: Sequence[IndexRow]) -> list[IndexRow]:
        """Those of a user's rows whose reminder was not cancelled with its group."""
        groups = {(namespace, row.group_id) for row in rows if row.group_id is not None}
        if not groups:
            return list(rows)
        found = Fenced(await self._store.fences.read(groups))
        return [
            row for row in rows if not found.covers(namespace, row.group_id, row.record_created_at)
        ]

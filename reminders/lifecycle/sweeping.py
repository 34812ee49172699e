"""Walking over all records to find and move what is still ahead under older zone data.

```
 page of records ──▶ scheduled, asked for in local time, ahead under older data?
                              └─▶ recompute it: one change procedure each (`changing`) ──▶ report
 position saved ──▶ whoever runs next goes on from there
```
Nothing finds what is pending by zone, and to walk the partitions of due entries would be dearer:
64 shards have 34 million of them a year, most of them empty. So this reads the records, in the
order of the store, at a rate that leaves room for the services.

What new data leaves in its place stays untouched, old edition and all: to restamp it would give
every pending reminder a new version, and every caller a stale etag. So that no process with data in
between recomputes such a one, the newest edition that ever walked is kept with the position.
"""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Protocol, TypeVar

import msgspec
import structlog
from msgspec import Struct
from tenacity import (
    AsyncRetrying,
    retry_if_exception_type,
    stop_after_attempt,
    wait_exponential,
)

from reminders.errors import TocsinError, Unavailable
from reminders.lifecycle.editions import (
    DataNewer,
    Editions,
    EditionUnknown,
    Standing,
    compare,
    in_use,
    local_intent,
    standing,
)
from reminders.lifecycle.moves import Event, Left, Passed, Totals
from reminders.lifecycle.recomputing import Moved
from reminders.model.codec import encode
from reminders.model.record import Status, Stored
from reminders.platform import Platform
from reminders.recurrence import RecurrenceError

T = TypeVar("T")

log = structlog.get_logger(__name__)

SWEEP = "zones"
"""The name of the saved position."""
DEFAULT_RATE = 2000
"""Records a second: about a tenth of a core of one Cassandra node."""
COST_OF_LOOKING = 2
"""What is computed again counts as so many more records: it is read again, with its entries."""
COST_OF_MOVING = 20
"""One that is moved as well counts as so many instead: two LWTs, some ten reads and writes."""
TOGETHER = 8
"""Records that are recomputed at once."""
PAGES_A_SECOND = 4
LARGEST_PAGE = 500
SMALLEST_PAGE = 10
ATTEMPTS = 6
"""Of a step for which a server did not answer, over about half a minute."""
FIRST = -(2**63)
"""Before every position."""
POSITIONS = 2**64


class _State(Struct, frozen=True, kw_only=True, array_like=True):
    """What is saved. Fields are only ever added, last and with defaults."""

    editions: Editions
    """The newest that walked."""
    through: int | None
    """Where to go on; None: the walk was complete."""
    totals: Totals


_decode = msgspec.msgpack.Decoder(_State).decode


class Recompute(Protocol):
    """Moves one reminder: `Changes.recompute`."""

    async def recompute(self, stored: Stored, *, apply: bool) -> Sequence[Moved]:
        """What our data moves; moved, if `apply`."""


class Sweep:
    """One run. With `apply` it moves, and its position survives it; else it only looks, from the
    beginning.
    """

    def __init__(
        self, platform: Platform, recompute: Recompute, *, apply: bool, rate: int = DEFAULT_RATE
    ) -> None:
        self._store = platform.store
        self._clock = platform.clock
        self._recompute = recompute.recompute
        self._apply = apply
        self._rate = rate
        self._page = max(SMALLEST_PAGE, min(LARGEST_PAGE, rate // PAGES_A_SECOND))
        self._ours = in_use()
        self._saved: bytes | None = None
        self._totals = Totals()
        self._cost = 0

    async def run(self) -> AsyncGenerator[Event, None]:
        """All that it finds, in the store's order, and after each page how far it is.

        Raises:
            DataNewer: Newer data than ours walked here.
            EditionUnknown: Our own editions have no place in the order.
            Unavailable: A server did not answer for half a minute; the next run goes on.
        """
        through = await self._begin()
        began = share_of(through) if through is not None else 0.0
        free_at = self._clock.now()
        while True:
            page = await self._patiently(
                partial(self._store.records.scan, through, limit=self._page)
            )
            self._cost = len(page.found)
            async for event in self._look_at(page.found):
                self._count(event)
                yield event
            through = page.through
            if self._apply:
                await self._save(through)
            yield Passed(
                totals=msgspec.structs.replace(self._totals),
                share=1.0 if through is None else share_of(through),
                resumed_at=began,
            )
            if through is None:
                return
            free_at += timedelta(seconds=self._cost / self._rate)
            free_at = max(free_at, self._clock.now())
            await self._clock.sleep_until(free_at)

    # --- one page -------------------------------------------------------------------------------

    async def _look_at(self, found: Sequence[Stored]) -> AsyncGenerator[Event, None]:
        older: list[Stored] = []
        for stored in found:
            self._totals.records += 1
            looked = self._concerned(stored)
            if isinstance(looked, Left):
                yield looked
            elif looked:
                self._totals.older += 1
                older.append(stored)
        for start in range(0, len(older), TOGETHER):
            some = older[start : start + TOGETHER]
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._recomputed(stored), name="recompute") for stored in some
                ]
            results = [task.result() for task in tasks]
            for event in itertools.chain(*(one for one in results if isinstance(one, list))):
                yield event  # also where another one's server was away: it has been moved
            for result in results:
                if isinstance(result, Unavailable):
                    raise result

    def _concerned(self, stored: Stored) -> bool | Left:
        """Whether it has something ahead under older data, or is changing: what comes of that
        nobody knows before it is completed. A paused one is planned anew when it goes on.
        """
        record = stored.record
        if record.status is not Status.SCHEDULED or not local_intent(record.definition):
            return False
        now = self._clock.now()
        try:
            found = {
                standing(record.definition, entry.occurrence, self._ours)
                for entry in stored.current
                if entry.occurrence is not None and entry.key.ring_at > now
            }
        except EditionUnknown as error:
            return _left(stored, str(error))
        if Standing.NEWER in found:
            return _left(stored, "newer data computed it than this process has", newer=True)
        return Standing.OLDER in found or stored.change is not None

    async def _recomputed(self, stored: Stored) -> list[Event] | Unavailable:
        """Errors as values: the others of the page go on."""
        try:
            moved = await self._patiently(partial(self._recompute, stored, apply=self._apply))
        except Unavailable as error:
            return error
        except DataNewer as error:
            return [_left(stored, str(error), newer=True)]
        except (TocsinError, RecurrenceError, EditionUnknown) as error:
            return [_left(stored, str(error))]
        self._cost += COST_OF_MOVING if moved and self._apply else COST_OF_LOOKING
        return [*moved]

    def _count(self, event: Event) -> None:
        totals = self._totals
        if isinstance(event, Left):
            totals.newer += event.newer
            totals.failed += not event.newer
        elif isinstance(event, Moved):
            totals.moved += event.new_instant is not None
            totals.dropped += event.new_instant is None

    # --- the position ---------------------------------------------------------------------------

    async def _begin(self) -> int | None:
        """Where to start; takes note that our data walks here."""
        compare(self._ours, self._ours)
        state = await self._stands()
        if not self._apply:
            return None
        if state is not None and state.editions == self._ours and state.through is not None:
            self._totals = state.totals
            return state.through
        await self._save(FIRST)
        return None

    async def _stands(self) -> _State | None:
        """What is saved. Raises `DataNewer`."""
        self._saved = await self._patiently(partial(self._store.sweeps.read, SWEEP))
        state = None if self._saved is None else _decode(self._saved)
        if state is not None and compare(state.editions, self._ours) is Standing.NEWER:
            raise DataNewer(stored=state.editions, ours=self._ours)
        return state

    async def _save(self, through: int | None) -> None:
        """Whoever saves at the same time walks with the same data, or older: ours may stand."""
        state = encode(_State(editions=self._ours, through=through, totals=self._totals))
        while self._saved != state:
            save = partial(self._store.sweeps.save, SWEEP, state, expected=self._saved)
            if await self._patiently(save):
                self._saved = state
            else:
                await self._stands()

    async def _patiently(self, step: Callable[[], Awaitable[T]]) -> T:
        """Every step here may be repeated."""
        return await AsyncRetrying(
            sleep=self._nap,
            retry=retry_if_exception_type(Unavailable),
            wait=wait_exponential(multiplier=0.5, max=10),
            stop=stop_after_attempt(ATTEMPTS),
            before_sleep=lambda state: log.warning("sweep.waits", attempt=state.attempt_number),
            reraise=True,
        )(step)

    async def _nap(self, seconds: float) -> None:
        await self._clock.sleep_until(self._clock.now() + timedelta(seconds=seconds))


def share_of(position: int) -> float:
    """How much of all records lies before a position of `Records.scan`, 0 to 1."""
    return (position - FIRST) / POSITIONS


def _left(stored: Stored, why: str, *, newer: bool = False) -> Left:
    record = stored.record
    return Left(namespace=record.namespace, reminder_id=record.reminder_id, why=why, newer=newer)

"""One shard while its lease is held."""

import asyncio
from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta

import structlog

from reminders.errors import CoordinationUnavailable, StoreUnavailable
from reminders.lifecycle.grouping import Fenced, fences_of
from reminders.model.entry import DueEntry, EntryState, Fate, Kind
from reminders.platform import Platform
from reminders.ports import ClaimAnswer, Copy, LeaseAnswer
from scanner.metrics import Metrics
from scanner.pace import Pace
from scanner.recent import Recent

log = structlog.get_logger(__name__)

CLAIM_BATCH = 200
"""Entries in one script call: it blocks the server for about 2 ms."""
UNDER_WAY = timedelta(seconds=6)
"""After an answer to its claim, the trailing scan leaves an entry alone for so long, or twice that.
"""
AGAIN = timedelta(milliseconds=100)
"""Between tries while Redis does not answer."""
MAX_BACKLOG = 20_000
"""Entries whose time has come and that wait for their claim: above it, no more are read."""
CATCHING_UP = 50
"""Missed occurrences a second that do not wait for the trailing scan: a rule that rings every
second, and all of whose missed ones ring, catches up, and what is due keeps its time."""
REPLAYED = 100
"""Replays a second at most, and behind all else that waits: what is on time is not delayed."""
MOST_REPLAYS = 2_000
"""That wait for their turn; the trailing scan brings what comes beyond."""
REFIRED = timedelta(seconds=60)
"""After `fires` was told again of an entry, it is not told once more for so long."""


class Lead:
    """The right to ring a shard's entries, and the queue of those whose time has come."""

    def __init__(
        self,
        shard: int,
        token: str,
        *,
        trusted_until: datetime,
        platform: Platform,
        metrics: Metrics,
        later: Callable[["Lead", Copy], None],
    ) -> None:
        self.shard = shard
        self.token = token
        self.trusted_until = trusted_until
        self.lost = asyncio.Event()
        self.congested = False
        """The shard's jobs are not taken fast enough: claim nothing, entries wait in Cassandra."""
        self.began_at: datetime | None = None
        """What is due before it is caught up with; what is due from then on is read in slices."""
        self.read_through: datetime | None = None
        """Everything before it was read into the heap since the lease is held."""
        self.hinted_through = "0"
        self.settled_through: datetime | None = None
        """As far as the settler of this lead knows."""
        self.refused = False
        """The watermark stands before a minute that may have lost entries."""
        self.tasks: list[asyncio.Task[None]] = []
        """Everything that works for the lead; cancelled when it ends."""
        self._store = platform.store
        self._claims = platform.coordination.claims
        self._clock = platform.clock
        self._ahead = platform.limits.claim_ahead
        self._metrics = metrics
        self._later = later
        self._queue: deque[Copy] = deque()
        self._replays: deque[Copy] = deque()
        self._replaying = Pace(platform.clock, REPLAYED)
        self._held: set[str] = set()
        self._answered = Recent(platform.clock, UNDER_WAY)
        self.refired = Recent(platform.clock, REFIRED)
        self.catching_up = Pace(platform.clock, CATCHING_UP)
        """For missed occurrences that surely ring; the trailing scan brings what finds no place."""
        self._wake = asyncio.Event()

    @property
    def oldest_due(self) -> datetime | None:
        """When the entry that waits longest for its claim was to ring."""
        return min((copy.state.entry.key.ring_at for copy in self._queue), default=None)

    @property
    def full(self) -> bool:
        """Whether to read no more: what is due can't be claimed as fast as it comes."""
        return self.congested or len(self._queue) >= MAX_BACKLOG

    def take(self, copy: Copy) -> bool:
        """Whether an entry is new in this lead's hands (heap or queue); then it is now."""
        entry_id = copy.state.entry.key.entry_id
        if entry_id in self._held:
            return False
        self._held.add(entry_id)
        return True

    def under_way(self, entry: DueEntry) -> bool:
        """Whether it is about to be claimed, or was claimed so lately that asking again tells
        nothing.
        """
        entry_id = entry.key.entry_id
        return entry_id in self._held or entry_id in self._answered

    def ring(self, copy: Copy) -> None:
        """Its time has come: claim it next, or behind all that is on time."""
        lane = self._lane(copy)
        if lane is self._replays and len(lane) >= MOST_REPLAYS:
            self._held.discard(copy.state.entry.key.entry_id)
            return
        lane.append(copy)
        self._wake.set()

    def _lane(self, copy: Copy) -> deque[Copy]:
        return self._replays if copy.state.entry.kind is Kind.REPLAY else self._queue

    def end(self, why: str) -> None:
        """Drops everything; the entries are still in Cassandra."""
        if not self.lost.is_set():
            log.info("lead.ended", shard=self.shard, why=why, dropped=len(self._held))
            self.lost.set()
            self._queue.clear()
            self._replays.clear()
            current = asyncio.current_task()
            for task in self.tasks:
                if task is not current:
                    task.cancel()

    async def run(self) -> None:
        """Claims until the lead ends."""
        while not self.lost.is_set():
            batch = [] if self.congested or not self._clock.in_bounds() else self._batch()
            if not batch:
                await self._pause()
                continue
            try:
                await self._claim(batch)
            except CoordinationUnavailable as error:
                for copy in reversed(batch):
                    self._lane(copy).appendleft(copy)
                log.warning("claims.unavailable", shard=self.shard, operation=error.operation)
                await self._clock.sleep_until(self._clock.now() + AGAIN)

    def _batch(self) -> list[Copy]:
        batch = [self._queue.popleft() for _ in range(min(len(self._queue), CLAIM_BATCH))]
        while self._replays and len(batch) < CLAIM_BATCH and self._replaying.take():
            batch.append(self._replays.popleft())
        return batch

    async def drain(self, until: datetime) -> None:
        """Claims what has come due already, then ends. What is left `until` then, others find."""
        while self._queue and not self.lost.is_set() and self._clock.now() < until:
            await self._clock.sleep_until(self._clock.now() + timedelta(milliseconds=10))
        self.end("drained")

    async def _pause(self) -> None:
        if self._queue or self._replays:  # congested, out of bounds, or too soon: look again
            await self._clock.sleep_until(self._clock.now() + AGAIN)
            return
        self._wake.clear()
        await self._wake.wait()

    async def _claim(self, batch: list[Copy]) -> None:
        answers = await self._claims.claim(self.shard, self.token, batch, ahead=self._ahead)
        if isinstance(answers, LeaseAnswer):
            self.end(answers.name.lower())
            return
        self._metrics.claimed(batch, answers, self._clock.now())
        stale = []
        for copy, answer in zip(batch, answers, strict=True):
            if answer is ClaimAnswer.EARLY:
                self._later(self, copy)
                continue
            entry_id = copy.state.entry.key.entry_id
            self._held.discard(entry_id)
            if answer is not ClaimAnswer.VOID:  # that, the trailing scan gets to the bottom of
                self._answered.add(entry_id)
            if answer is ClaimAnswer.STALE:
                stale.append(copy)
        await asyncio.gather(*map(self._read_again, stale))

    async def _read_again(self, copy: Copy) -> None:
        """A copy so old that a void may have come and gone: only what is stored now counts."""
        read_at = self._clock.now()
        try:
            state = await self._store.due.read(copy.state.entry.key)
            fenced = await fences_of(self._store.fences, [copy.state.entry])
        except StoreUnavailable:
            return  # the trailing scan comes by
        if state is not None and is_open(state) and not stopped(fenced, state):
            again = Copy(state=state, read_at=read_at, recheck=True)
            if self.take(again):
                self._later(self, again)


def stopped(fenced: Fenced, state: EntryState) -> bool:
    """Whether a fence stops an entry's first send. Of what a change marked as claimed, somebody was
    told that it rings; everything but a first send looks at the fence before it goes out.
    """
    return (
        state.entry.kind is Kind.OCCURRENCE
        and state.fate is not Fate.CLAIMED
        and fenced.stops(state.entry)
    )


def is_open(state: EntryState) -> bool:
    """Whether the entry waits for its claim, or for the end of what its claim began."""
    return state.handled_at is None and state.fate is not Fate.VOID

"""Slices of the due partitions and hints, into the timer."""

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec
import structlog

from reminders.buckets import MINUTE, minute_of
from reminders.errors import StoreUnavailable
from reminders.lifecycle.catching_up import LATE, overtaken
from reminders.lifecycle.grouping import Fenced, fences_of
from reminders.model.codec import decode_body, decode_entry
from reminders.model.entry import DueEntry, DueKey, EntryState, Fate, Kind
from reminders.platform import Platform
from reminders.ports import Copy
from scanner.lead import Lead, is_open, stopped
from scanner.timer import Timer

log = structlog.get_logger(__name__)

SLICE = timedelta(seconds=10)
"""Of a partition, in one go; a third of the look-ahead if that is shorter."""
PAGE = 500
"""Rows of one read."""
AGAIN = timedelta(milliseconds=500)
BEHIND = timedelta(seconds=15)
"""What is this far past was not read in time: it is left to the trailing scan, which asks the
catch-up policy first."""


class Reader:
    """Reads a lead's shard ahead of time, never further than the look-ahead.

    Writers announce what they write for a time that may have been read already; they reckon with
    the
    same look-ahead.
    """

    def __init__(self, platform: Platform, timer: Timer) -> None:
        self._store = platform.store
        self._hints = platform.coordination.hints
        self._clock = platform.clock
        self._timer = timer
        self._lookahead = platform.limits.lookahead
        self._length = min(SLICE, self._lookahead / 3)

    async def open(self, lead: Lead) -> None:
        """Notes where the hints end before the first slice is read: nothing falls between."""
        lead.hinted_through = await self._hints.last(lead.shard)
        lead.began_at = lead.read_through = self._clock.now()

    async def run(self, lead: Lead) -> None:
        """Until the lead ends."""
        while not lead.lost.is_set():
            try:
                await self._next_slice(lead)
            except StoreUnavailable as error:
                log.warning("slice.unavailable", shard=lead.shard, operation=error.operation)
                await self._clock.sleep_until(self._clock.now() + AGAIN)

    async def _next_slice(self, lead: Lead) -> None:
        assert lead.read_through is not None
        await self._room(lead)
        start = max(lead.read_through, self._clock.now() - BEHIND)
        end = self._slice_end(start)
        await self._clock.sleep_until(end - self._lookahead)
        if not lead.lost.is_set():
            await self._slice(lead, start, end)

    async def _room(self, lead: Lead) -> None:
        """Returns once more may be held in memory."""
        while (self._timer.full or lead.full) and not lead.lost.is_set():
            await self._clock.sleep_until(self._clock.now() + AGAIN)

    async def _slice(self, lead: Lead, start: datetime, end: datetime) -> None:
        """Reads `start <= ring_at < end`, within one minute.

        `read_through` moves before the first page is read: what lands behind a page is announced.
        """
        lead.read_through = end
        try:
            await self._pages(lead, start, end)
        except StoreUnavailable:
            lead.read_through = start
            raise

    async def _pages(self, lead: Lead, start: datetime, end: datetime) -> None:
        after: DueKey | None = None
        while not lead.lost.is_set():
            read_at = self._clock.now()
            states = await self._store.due.slice(
                minute_of(start), lead.shard, after=after, start=start, before=end, limit=PAGE
            )
            fenced = await fences_of(self._store.fences, (state.entry for state in states))
            for state in states:
                if not stopped(fenced, state):
                    self.hold(lead, state, read_at)
            if len(states) < PAGE:
                return
            after = states[-1].entry.key
            await self._room(lead)

    def _slice_end(self, start: datetime) -> datetime:
        minute = minute_of(start)
        slices = (start - minute) // self._length + 1
        return min(minute + MINUTE, minute + slices * self._length)

    def hold(
        self, lead: Lead, state: EntryState, read_at: datetime, *, recheck: bool = False
    ) -> bool:
        """Puts an open entry into the timer, unless it is in the lead's hands already.

        One that may have to be skipped is left to the trailing scan, which comes with `recheck`. A
        missed one that surely rings waits for its place by the lead's pace, and is left to the scan
        only where that is far off: the scan may have found its stretch settled, and then comes back
        in two minutes.
        """
        if not is_open(state) or state.entry.kind is Kind.UNREADABLE:
            return False
        place = None
        if not recheck and _missed(state.entry, read_at):
            place = self._place(lead, state.entry, read_at)
            if place is None:
                return False
        moved = state.entry.kind is Kind.OCCURRENCE and (
            state.entry.key.ring_at - state.entry.promised_at > MINUTE
        )
        told = state.fate is Fate.CLAIMED  # Redis may have known, and forgotten
        copy = Copy(state=state, read_at=read_at, recheck=recheck or moved or told)
        if not lead.take(copy):
            return False
        self._timer.add(lead, copy, not_before=place)
        return True

    def _place(self, lead: Lead, entry: DueEntry, read_at: datetime) -> datetime | None:
        if lead.under_way(entry) or not _rings(entry, read_at):
            return None
        return lead.catching_up.place()

    async def hear(self, lead: Lead, hints: Iterable[tuple[str, bytes, datetime]]) -> None:
        """Hints: held if their slice was read already; otherwise the slice will bring them.

        Whoever finishes an old change dates its hint anew, so a fence has to be read here as well.
        """
        near = [
            (state, written_from)
            for _, raw, written_from in hints
            if (state := _hinted(lead, raw)) is not None
        ]
        try:
            fenced = await fences_of(self._store.fences, (state.entry for state, _ in near))
        except StoreUnavailable:  # the trailing scan finds those of groups
            near = [(state, at) for state, at in near if state.entry.group_id is None]
            fenced = Fenced({})
        for state, written_from in near:
            if not stopped(fenced, state):
                self.hold(lead, state, written_from)


def _hinted(lead: Lead, raw: bytes) -> EntryState | None:
    """None where its slice was not read yet."""
    try:
        entry = decode_entry(raw)
    except msgspec.DecodeError:  # of a newer release, say: only a hint, the row is there
        log.exception("hint.unreadable", shard=lead.shard)
        return None
    if lead.read_through is None or entry.key.ring_at >= lead.read_through:
        return None
    return EntryState(entry=entry, raw=raw)


def _rings(entry: DueEntry, now: datetime) -> bool:
    """Whether a missed one surely rings by its policy: the next one after it waits for that."""
    if not entry.body:
        return False
    body = decode_body(entry.body)
    return (
        overtaken(
            body.catch_up,
            body.catch_up_max_age,
            fire_at=entry.promised_at,
            next_at=entry.next_at,
            now=now,
        )
        is None
    )


def _missed(entry: DueEntry, now: datetime) -> bool:
    """A late occurrence of a rule, put here by a late writer: perhaps it should be skipped."""
    rule = entry.recurs or entry.next_at is not None
    return rule and entry.kind is Kind.OCCURRENCE and now - entry.promised_at > LATE

"""The reference clock: the TIME of one server, carried by the monotonic clock between samples."""

import asyncio
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from redis.asyncio import Redis

from reminders.clock import nap
from reminders.coordination.connection import translated
from reminders.coordination.instants import to_us
from reminders.errors import CoordinationUnavailable

MOST_DRIFT_S = 0.1
"""Between this machine's clock and the reference, before the process must not act (DESIGN §9)."""
LONGEST_CARRY_S = 300.0
"""Age of the last sample. A quartz loses up to 0.1 ms a second: 30 ms by then."""
FIRST_SAMPLES = 5
WINDOW = 8
"""Of so many samples the one with the shortest round trip counts: it errs by half of that."""
WORST_DRIFT = 0.005
"""Of this machine's clock against the reference, at the very worst: fifty times that of a quartz,
and ten times what NTP does to one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One reading of TIME; seconds."""

    offset_s: float
    """Reference minus monotonic clock, half-way through the round trip."""
    round_trip_s: float
    taken_s: float
    """By the monotonic clock, when the answer was there."""

    def at_least_s(self, at_s: float) -> float:
        """What the reference shows when the monotonic clock shows that, at the least: what it said,
        which was past when the answer was there, and the time since.
        """
        said_s = self.offset_s + self.taken_s - self.round_trip_s / 2
        return said_s + (at_s - self.taken_s) * (1 - WORST_DRIFT)


class RedisClock:
    """Implements `ports.Clock`: after a correction backwards it stands still for a while."""

    def __init__(self, client: Redis, *, every: timedelta = timedelta(seconds=1)) -> None:
        self._client = client
        self._every_s = every.total_seconds()
        self._samples: deque[Sample] = deque(maxlen=WINDOW)
        self._best: Sample | None = None
        self._latest_s = 0.0
        self._sampling: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Take the first samples, then go on in the background.

        Raises:
            CoordinationUnavailable: the server does not answer.
        """
        for _ in range(FIRST_SAMPLES):
            await self.sample()
        self._sampling = asyncio.create_task(self._keep_sampling(), name="reference-clock")

    async def close(self) -> None:
        """Stop sampling."""
        if self._sampling is not None:
            self._sampling.cancel()
            await asyncio.gather(self._sampling, return_exceptions=True)

    async def sample(self) -> Sample:
        """Read TIME once."""
        before = time.monotonic()
        with translated("time"):
            seconds, micros = await self._client.time()
        after = time.monotonic()
        sample = Sample(
            offset_s=seconds + micros / 1e6 - (before + after) / 2,
            round_trip_s=after - before,
            taken_s=after,
        )
        if self._best is not None and not _agree(self._best, sample):
            self._samples.clear()  # another server, or a clock that was set: the old ones mislead
        self._samples.append(sample)
        self._best = min(self._samples, key=lambda each: each.round_trip_s)
        return sample

    async def _keep_sampling(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            await self.refresh()  # without an answer it is carried on; in_bounds() watches the age

    def now(self) -> datetime:
        """The reference time; see the port."""
        return datetime.fromtimestamp(self._now_s(), UTC)

    def _now_s(self) -> float:
        if self._best is None:
            raise CoordinationUnavailable(operation="time")
        self._latest_s = max(self._latest_s, time.monotonic() + self._best.offset_s)
        return self._latest_s

    def at_least(self) -> datetime:
        """By whichever sample says most; see the port."""
        if not self._samples:
            raise CoordinationUnavailable(operation="time")
        at_s = time.monotonic()
        return datetime.fromtimestamp(max(each.at_least_s(at_s) for each in self._samples), UTC)

    async def refresh(self) -> None:
        """Takes a sample; see the port."""
        with suppress(CoordinationUnavailable):
            await self.sample()

    def in_bounds(self) -> bool:
        """Whether the reference was read lately and this machine's clock is near it.

        Raises what ended the sampling, if something did.
        """
        if self._sampling is not None and self._sampling.done() and not self._sampling.cancelled():
            self._sampling.result()
        if not self._samples:
            return False
        age_s = time.monotonic() - self._samples[-1].taken_s
        return age_s <= LONGEST_CARRY_S and abs(self.drift()) <= timedelta(seconds=MOST_DRIFT_S)

    def drift(self) -> timedelta:
        """This machine's clock minus the reference as it was last read, not as `now` shows it while
        it stands still: a server with another clock is noticed at once.
        """
        if self._best is None:
            raise CoordinationUnavailable(operation="time")
        return timedelta(seconds=time.time() - time.monotonic() - self._best.offset_s)

    async def sleep_until(self, at: datetime, *, exact: bool = False) -> None:
        """Timers may be early, and the reference be corrected meanwhile: it looks again."""
        at_us = to_us(at)
        while (left_s := at_us / 1e6 - self._now_s()) > 0 or self.now() < at:
            await nap(max(left_s, 0.0), exact=exact)


def _agree(one: Sample, other: Sample) -> bool:
    """Whether two samples can be of one clock: apart by their errors and some drift."""
    drift_s = 0.001 * abs(other.taken_s - one.taken_s)
    error_s = (one.round_trip_s + other.round_trip_s) / 2
    return abs(one.offset_s - other.offset_s) <= error_s + drift_s + 0.001

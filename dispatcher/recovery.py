"""Jobs that run long are kept; jobs that others left are taken over."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

import structlog

from dispatcher.flights import Flights
from dispatcher.settings import DispatcherSettings
from reminders.errors import CoordinationUnavailable
from reminders.platform import Platform
from reminders.ports import Job

AGAIN = timedelta(seconds=1)
"""Between tries while Redis does not answer or the clock is out of bounds."""
ALONE_FROM = 3
"""A crash leaves every job that was under way, so the first redelivery runs among others. One that
was under way in two crashes runs alone from then on."""

Begin = Callable[[Job, datetime], "asyncio.Task[None]"]
"""Starts a job that was given to us at that time."""

log = structlog.get_logger()


class Recovery:
    """One for a process."""

    def __init__(
        self,
        platform: Platform,
        settings: DispatcherSettings,
        flights: Flights,
        room: Callable[[int], Awaitable[None]],
    ) -> None:
        """`room`: returns once so many jobs may be taken, and may be judged by the clock."""
        self._clock = platform.clock
        self._jobs = platform.coordination.jobs
        self._shards: Sequence[int] = range(platform.limits.shards)
        self._settings = settings
        self._flights = flights
        self._room = room

    async def keep(self) -> None:
        """For ever: renews what runs long before others may take it."""
        every = self._settings.keep_every
        while True:
            await self._clock.sleep_until(self._clock.now() + every)
            old = self._flights.untouched_since(self._clock.now() - every)
            if not old:
                continue
            try:
                await self._jobs.touch(self._settings.consumer, old)
            except CoordinationUnavailable as error:
                log.warning("touching.waits", jobs=len(old), operation=error.operation)
            else:
                self._flights.touched(old, self._clock.now())

    async def run(self, begin: Begin) -> None:
        """For ever: takes over what others left."""
        while True:
            await self._room(1)
            try:
                jobs = await self._jobs.reclaim(
                    self._settings.consumer,
                    self._shards,
                    idle=self._settings.claim_idle,
                    count=max(1, self._flights.free // len(self._shards)),
                )
            except CoordinationUnavailable as error:
                log.warning("reclaim.unavailable", operation=error.operation)
                jobs = []
            jobs = [job for job in jobs if job not in self._flights]
            await self._take_over(begin, jobs)
            if not jobs:
                wake = self._clock.now() + self._settings.reclaim_every
                await self._clock.sleep_until(wake)

    async def _take_over(self, begin: Begin, jobs: Sequence[Job]) -> None:
        suspects = [job for job in jobs if job.deliveries >= ALONE_FROM]
        now = self._clock.now()
        for job in suspects:
            self._flights.add(job, now)  # kept while they wait
        tasks = [begin(job, now) for job in jobs if job.deliveries < ALONE_FROM]
        try:
            if suspects and tasks:
                await asyncio.wait(tasks)
            while suspects:
                job = suspects.pop(0)
                log.error("job.suspect", job_id=job.job_id, shard=job.shard, times=job.deliveries)
                begin(job, self._clock.now())
                await self._flights.landed(job)
        finally:
            for job in suspects:
                self._flights.remove(job)

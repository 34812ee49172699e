"""Acknowledges settled jobs in groups: what arrives during a call goes with the next one."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import structlog

from reminders.errors import CoordinationUnavailable
from reminders.ports import Clock, Job, JobStream

BATCH = 500
AGAIN = timedelta(seconds=1)

log = structlog.get_logger()


class Acknowledger:
    """A lost acknowledgement only costs a look into the ledger when the job comes again."""

    def __init__(self, jobs: JobStream, clock: Clock) -> None:
        self._jobs = jobs
        self._clock = clock
        self._settled: list[Job] = []
        self._filled = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()

    def add(self, job: Job) -> None:
        """Nothing is left to do for it."""
        self._settled.append(job)
        self._filled.set()
        self._empty.clear()

    async def run(self) -> None:
        """For ever."""
        while True:
            await self._filled.wait()
            batch = self._settled[:BATCH]
            if await self._done(batch):
                del self._settled[: len(batch)]
            if not self._settled:
                self._filled.clear()
                self._empty.set()

    async def emptied(self) -> None:
        """Returns once everything is acknowledged."""
        await self._empty.wait()

    async def _done(self, batch: Sequence[Job]) -> bool:
        try:
            await self._jobs.done(batch)
        except CoordinationUnavailable as error:
            log.warning("acknowledging.waits", jobs=len(batch), operation=error.operation)
            await self._clock.sleep_until(self._clock.now() + AGAIN)
            return False
        return True

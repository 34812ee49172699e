"""The expander's life: takes messages from `fires`, expands, acknowledges."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from uuid import uuid4

import structlog
from opentelemetry import metrics

from expander.expansion import Expansion
from reminders.errors import CoordinationUnavailable, Unavailable
from reminders.model.codec import decode_entry
from reminders.platform import Platform
from reminders.ports import Job

log = structlog.get_logger(__name__)

CONCURRENCY = 64
"""Expansions under way in one process."""
TAKEN = 100
"""Messages of a shard in one read."""
WAIT = timedelta(milliseconds=500)
IDLE = timedelta(seconds=10)
"""A message that its consumer left for so long is taken over."""
RECLAIM_EVERY = timedelta(seconds=5)
AGAIN = timedelta(milliseconds=500)


class Expander:
    """One process of the expander; run as many as you like."""

    def __init__(self, platform: Platform, expansion: Expansion) -> None:
        self._consumer = str(uuid4())
        self._fires = platform.coordination.fires
        self._expansion = expansion
        self._clock = platform.clock
        self._shards = range(platform.limits.shards)
        self._slots = asyncio.Semaphore(CONCURRENCY)
        self._expanded = metrics.get_meter("tocsin.expander").create_counter(
            "tocsin_expansions", description="Expansions by what they came to"
        )
        self._reading_failed = False

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`; then ends what it began. What it leaves is taken over after `IDLE`."""
        async with asyncio.TaskGroup() as group:
            loops = [
                group.create_task(self._read(group), name="fires"),
                group.create_task(self._reclaim(group), name="fires-reclaim"),
            ]
            await stop.wait()
            for loop in loops:
                loop.cancel()

    def problems(self) -> Sequence[str]:
        """Why this process gets nothing done; empty if it does."""
        return ["the fires stream can't be read"] if self._reading_failed else []

    async def _read(self, group: asyncio.TaskGroup) -> None:
        while True:
            try:
                jobs = await self._fires.read(self._consumer, self._shards, count=TAKEN, wait=WAIT)
                self._reading_failed = False
            except CoordinationUnavailable as error:
                self._reading_failed = True
                log.warning("fires.unavailable", operation=error.operation)
                await self._clock.sleep_until(self._clock.now() + AGAIN)
                continue
            await self._start(group, jobs)

    async def _reclaim(self, group: asyncio.TaskGroup) -> None:
        while True:
            await self._clock.sleep_until(self._clock.now() + RECLAIM_EVERY)
            try:
                jobs = await self._fires.reclaim(
                    self._consumer, self._shards, idle=IDLE, count=TAKEN
                )
            except CoordinationUnavailable:
                continue
            await self._start(group, jobs)

    async def _start(self, group: asyncio.TaskGroup, jobs: Sequence[Job]) -> None:
        for job in jobs:
            await self._slots.acquire()
            group.create_task(self._expand(job), name=f"expand-{job.job_id}")

    async def _expand(self, job: Job) -> None:
        """One bad message stops nothing: it stays and is taken up again, by us or by others."""
        try:
            result = await self._expansion.expand(decode_entry(job.raw))
            await self._fires.done([job])
            self._expanded.add(1, {"result": result.value})
        except Unavailable as error:
            log.warning("expansion.waits", job_id=job.job_id, operation=error.operation)
        except Exception:
            self._expanded.add(1, {"result": "error"})
            log.exception("expansion.failed", job_id=job.job_id, deliveries=job.deliveries)
        finally:
            self._slots.release()

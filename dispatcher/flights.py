"""The jobs that this process holds and has not settled."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from reminders.ports import Job


@dataclass(slots=True)
class _Flight:
    job: Job
    touched_at: datetime
    task: asyncio.Task[None] | None = None


class Flights:
    """Counts them against a capacity, and knows which have to be renewed."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._held: dict[tuple[int, str], _Flight] = {}
        self._removed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, job: Job) -> bool:
        return (job.shard, job.job_id) in self._held

    @property
    def free(self) -> int:
        """How many more may be taken; 0 if a read gave more than were asked for."""
        return max(self._capacity - len(self._held), 0)

    def add(self, job: Job, now: datetime, task: asyncio.Task[None] | None = None) -> None:
        """It was given to us, or (again, with its task) started."""
        self._held[job.shard, job.job_id] = _Flight(job, now, task)

    def remove(self, job: Job) -> None:
        """It is settled, or given up."""
        self._held.pop((job.shard, job.job_id), None)
        self._removed.set()

    async def room(self, jobs: int) -> None:
        """Returns once so many more (at most the capacity) may be taken."""
        await self._until_held(self._capacity - min(jobs, self._capacity))

    async def landed(self) -> None:
        """Returns once none is held."""
        await self._until_held(0)

    def untouched_since(self, then: datetime) -> list[Job]:
        """Those that were given or touched at that time at the latest."""
        return [flight.job for flight in self._held.values() if flight.touched_at <= then]

    def touched(self, jobs: Iterable[Job], now: datetime) -> None:
        """They were renewed."""
        for job in jobs:
            flight = self._held.get((job.shard, job.job_id))
            if flight is not None:
                flight.touched_at = now

    def cancel(self) -> None:
        """Gives up what runs."""
        for flight in list(self._held.values()):
            if flight.task is not None:
                flight.task.cancel()

    async def _until_held(self, at_most: int) -> None:
        while len(self._held) > at_most:
            self._removed.clear()
            await self._removed.wait()

"""The jobs that this process holds and has not settled."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from dispatcher.destinations import Destinations
from reminders.ports import Job


@dataclass(slots=True)
class _Flight:
    job: Job
    touched_at: datetime
    task: asyncio.Task[None] | None = None
    counted: bool = True
    """It is among those that come: its legs are not opened, or there are none."""


class Flights:
    """Counts them, and knows which have to be renewed.

    A job counts as one send until its legs are opened; from then on each counts by itself, in the
    capacity of `destinations`, and not at all while it is aside there or is being recorded.
    """

    def __init__(self, destinations: Destinations, most_held: int) -> None:
        """So many in all."""
        self._destinations = destinations
        self._most_sending = destinations.capacity.shares.seats
        self._most_held = most_held
        self._held: dict[tuple[int, str], _Flight] = {}
        self._coming = 0
        self._moved = destinations.capacity.moved

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, job: Job) -> bool:
        return (job.shard, job.job_id) in self._held

    @property
    def sending(self) -> int:
        """How many sends wait for their turn, or for an answer that may come any moment."""
        return self._coming + self._destinations.pressing

    @property
    def free(self) -> int:
        """How many more may be taken; 0 if a read gave more than were asked for."""
        room = self._destinations.room - self._coming
        return max(min(room, self._most_held - len(self._held)), 0)

    def add(self, job: Job, now: datetime, task: asyncio.Task[None] | None = None) -> None:
        """It was given to us, or (again, with its task) started."""
        before = self._held.get((job.shard, job.job_id))
        if before is None or not before.counted:
            self._coming += 1
        self._held[job.shard, job.job_id] = _Flight(job, now, task)

    def opened(self, job: Job) -> None:
        """Its legs count by themselves from now on, or nothing of it is left to send."""
        flight = self._held.get((job.shard, job.job_id))
        if flight is not None and flight.counted:
            flight.counted = False
            self._coming -= 1
            self._moved.set()

    def remove(self, job: Job) -> None:
        """It is settled, or given up."""
        flight = self._held.pop((job.shard, job.job_id), None)
        if flight is not None and flight.counted:
            self._coming -= 1
        self._moved.set()

    async def room(self, jobs: int) -> None:
        """Returns once so many more (at most what can ever be free) may be taken."""
        wanted = min(jobs, max(1, self._most_sending // 2), self._most_held)
        await self._until(lambda: self.free >= wanted)

    async def landed(self, job: Job | None = None) -> None:
        """Returns once it is not held; without a job: once none is."""
        await self._until(lambda: job not in self if job is not None else not self._held)

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

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._moved.clear()
            await self._moved.wait()

"""The jobs that this process holds and has not settled."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from reminders.ports import Job


@dataclass(slots=True)
class _Flight:
    job: Job
    touched_at: datetime
    task: asyncio.Task[None] | None = None
    sent: bool = False


class Flights:
    """Counts them against two capacities, and knows which have to be renewed."""

    def __init__(self, most_sending: int, most_held: int) -> None:
        """So many that are not sent yet, and so many in all."""
        self._most_sending = most_sending
        self._most_held = most_held
        self._held: dict[tuple[int, str], _Flight] = {}
        self._sent = 0
        self._moved = asyncio.Event()

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, job: Job) -> bool:
        return (job.shard, job.job_id) in self._held

    @property
    def sending(self) -> int:
        """How many are not sent yet."""
        return len(self._held) - self._sent

    @property
    def free(self) -> int:
        """How many more may be taken; 0 if a read gave more than were asked for."""
        return max(min(self._most_sending - self.sending, self._most_held - len(self._held)), 0)

    def add(self, job: Job, now: datetime, task: asyncio.Task[None] | None = None) -> None:
        """It was given to us, or (again, with its task) started."""
        self._held[job.shard, job.job_id] = _Flight(job, now, task)

    def sent(self, job: Job) -> None:
        """Nothing is left to send; it is held until it is settled."""
        flight = self._held.get((job.shard, job.job_id))
        if flight is not None and not flight.sent:
            flight.sent = True
            self._sent += 1
            self._moved.set()

    def remove(self, job: Job) -> None:
        """It is settled, or given up."""
        flight = self._held.pop((job.shard, job.job_id), None)
        if flight is not None and flight.sent:
            self._sent -= 1
        self._moved.set()

    async def room(self, jobs: int) -> None:
        """Returns once so many more (at most what can ever be free) may be taken."""
        wanted = min(jobs, self._most_sending, self._most_held)
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

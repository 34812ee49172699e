"""The server that the in-memory ports share: its data, its identity, its time, and who waits."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import TypeVar

from reminders.ports import Clock, LeaseAnswer

Hook = Callable[[str], Awaitable[None]]
Found = TypeVar("Found")


@dataclass(slots=True)
class Message:
    """One entry of a stream."""

    raw: bytes
    at: datetime
    """When it was added."""
    recheck: bool = False
    written_from: datetime | None = None
    """Set for a hint, which no group of consumers reads."""


@dataclass(slots=True)
class Pending:
    """A message that a consumer has."""

    consumer: str
    since: datetime
    deliveries: int = 1


@dataclass(slots=True)
class Stream:
    """Messages by id, oldest first, and those under way."""

    messages: dict[str, Message] = field(default_factory=dict)
    fresh: list[str] = field(default_factory=list)
    """Ids that no consumer was given yet."""
    pending: dict[str, Pending] = field(default_factory=dict)


@dataclass(slots=True)
class Data:
    """What a server holds, by shard; with each thing that ends, when."""

    leases: dict[int, tuple[str, datetime]] = field(default_factory=dict)
    homes: dict[int, tuple[int, datetime, datetime]] = field(default_factory=dict)
    """The server's identity, since when it is the home, and since when without a break."""
    fired: dict[tuple[int, datetime], tuple[dict[str, str], datetime]] = field(default_factory=dict)
    voids: dict[tuple[int, str], tuple[int, datetime]] = field(default_factory=dict)
    groups: dict[tuple[int, str, str], tuple[datetime, datetime]] = field(default_factory=dict)
    """By shard, namespace and group: what was created up to then is void, and until when that
    stands."""
    streams: dict[tuple[str, int], Stream] = field(default_factory=dict)
    members: dict[str, datetime] = field(default_factory=dict)


class Server:
    """One server: its data, its identity, its time, and who waits for it to change."""

    def __init__(self, clock: Clock, on_point: Hook | None) -> None:
        self.clock = clock
        self.data = Data()
        self.identity = 1
        self.on_point = on_point
        self.on_add: Callable[[str], None] | None = None
        """Told the name of the stream after each append."""
        self._ids = count(1)
        self._changed = asyncio.Event()

    async def _point(self, name: str) -> None:
        if self.on_point is not None:
            await self.on_point(name)

    async def step(self, name: str, work: Callable[[], Found]) -> Found:
        """Do the work in one go, between two points where faults can be injected."""
        await self._point(f"{name}.before")
        found = work()
        await self._point(f"{name}.after")
        return found

    async def wait_for(self, name: str, look: Callable[[], Found], wait: timedelta) -> Found:
        """What `look` finds, as soon as it finds something or `wait` is over."""
        deadline = self.clock.now() + wait
        changed = self._changed  # taken before looking: what comes in between is not missed
        found = await self.step(name, look)
        if found or wait <= timedelta(0):
            return found
        sleeper = asyncio.create_task(self.clock.sleep_until(deadline), name=f"{name} time-out")
        try:
            while not found and not sleeper.done():
                waiter = asyncio.create_task(changed.wait(), name=f"{name} change")
                try:
                    await asyncio.wait({sleeper, waiter}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    waiter.cancel()
                changed = self._changed
                found = await self.step(name, look)
        finally:
            sleeper.cancel()
            with suppress(asyncio.CancelledError):
                await sleeper
        return found

    def copy_data(self) -> Data:
        """As a replica has it."""
        return deepcopy(self.data)

    def home_since(self, shard: int) -> datetime | None:
        """Since when this server is the shard's home; None if it is not."""
        return self._home(shard)[0]

    def known_since(self, shard: int) -> datetime | None:
        """Since when it is so without a break; None if it is not."""
        return self._home(shard)[1]

    def settle_in(self, shard: int) -> None:
        """Becomes the shard's home now, or once more."""
        now = self.clock.now()
        self.data.homes[shard] = (self.identity, now, self.known_since(shard) or now)

    def _home(self, shard: int) -> tuple[datetime | None, datetime | None]:
        identity, since, known = self.data.homes.get(shard, (0, None, None))
        return (since, known) if identity == self.identity else (None, None)

    def fence(self, shard: int, namespace: str, group_id: str) -> datetime | None:
        """What of the group was created up to then is void."""
        now = self.clock.now()
        cancelled_at, until = self.data.groups.get((shard, namespace, group_id), (None, now))
        return cancelled_at if until > now else None

    def holder(self, shard: int) -> str | None:
        """The token whose lease lives."""
        token, until = self.data.leases.get(shard, ("", self.clock.now()))
        return token if until > self.clock.now() else None

    def standing(self, shard: int, token: str) -> LeaseAnswer:
        """What a script checks first."""
        if self.home_since(shard) is None:
            return LeaseAnswer.MOVED
        return LeaseAnswer.HELD if self.holder(shard) == token else LeaseAnswer.LOST

    def stream(self, name: str, shard: int) -> Stream:
        """Made where it is missing."""
        return self.data.streams.setdefault((name, shard), Stream())

    def add(self, name: str, shard: int, message: Message) -> str:
        """Append and wake the readers. Ids never come again, not even after everything was lost."""
        job_id = f"{int(message.at.timestamp() * 1000)}-{next(self._ids)}"
        stream = self.stream(name, shard)
        stream.messages[job_id] = message
        if message.written_from is None:
            stream.fresh.append(job_id)
        self._changed.set()
        self._changed = asyncio.Event()
        if self.on_add is not None:
            self.on_add(name)
        return job_id

    def jobs_of(self, shard: int, minute: datetime) -> dict[str, str]:
        """Dedupe ids claimed in a minute, with their job ids."""
        jobs, until = self.data.fired.get((shard, minute), ({}, self.clock.now()))
        return jobs if until > self.clock.now() else {}

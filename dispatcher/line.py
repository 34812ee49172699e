"""Who is at a host, and who waits for what: the bookkeeping of `destinations`."""

import asyncio
from collections import OrderedDict, deque

from msgspec import Struct

from dispatcher.capacity import Lane, Seat
from dispatcher.standing import Endpoint, Host, TurnedAway


class Place(Seat):
    """Leave to send. `Destinations.leave` it."""

    __slots__ = ("endpoint", "probes", "queue")

    def __init__(self, lane: Lane, queue: "Queue | None", endpoint: Endpoint | None) -> None:
        super().__init__(lane)
        self.queue = queue
        self.endpoint = endpoint
        self.probes = (False, False)


class Waiter(Struct):
    """Somebody in line."""

    endpoint: Endpoint
    since: float
    place: "asyncio.Future[Place | TurnedAway]"


class Queue:
    """At one host: what runs, and who waits for a place or a seat."""

    __slots__ = ("host", "moved_at", "running", "slow", "waiting")

    def __init__(self, host: Host, now: float) -> None:
        self.host = host
        self.running = 0
        self.slow = 0
        """Of these, those that began at endpoints known as slow."""
        self.moved_at = now
        """When the last attempt ended, or the first one began."""
        self.waiting: deque[Waiter] = deque()

    def place(self, lane: Lane) -> bool:
        """Whether there is one. What is slow has a quarter, and leaves the rest to others."""
        if self.running >= self.host.places:
            return False
        return lane is not Lane.SLOW or self.slow < max(1, self.host.places // 4)


class Line:
    """Hosts whose first in line needs a seat of that lane, in turn."""

    __slots__ = ("hosts", "moved_at", "pace_s")

    def __init__(self) -> None:
        self.hosts: OrderedDict[str, Queue] = OrderedDict()
        self.pace_s = 0.0
        self.moved_at = 0.0

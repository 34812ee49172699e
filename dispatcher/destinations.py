"""Who may be sent something now, who waits a moment, and who comes back later.

A slow receiver must not keep others out (convoy #1927). So each attempt needs, in this order:

| asked                                           | else it is turned away as                      |
|-------------------------------------------------|------------------------------------------------|
| nobody asked us to stay away (`Retry-After`)    | `asked`, for as long as that                   |
| a closed breaker, or to be its probe            | `open`, until it lets one through              |
| a token within `max_wait`, where there's a rate | `rate`, for exactly when there will be one     |
| a place at the host and a seat in the process   | `slow`, at once, where it is known to be slow; |
| (`capacity`), now or after a wait in line       | until one may be free; `busy` where the wait   |
|                                                 | is too long                                    |

Whoever is turned away is parked by the caller: a due entry, not an attempt. How long a wait in line
is accepted, `patience` says; the stream holds back the rest (`room`).

So a proven destination finds a seat within a look or two, whatever hangs beside it; unless others
that were proven, too, and hang now hold all seats. They do so for `slow_after`, and for as many
times that as they have places together in seats. Hosts whose first in line needs a seat get them in
turn. Time in which this process stood still or was short of CPU is nobody's slowness (`timepiece`):
else one that is overloaded would put off what it could send. `standing` has what is known of
destinations, and why by host and by endpoint.
"""

import asyncio
from collections import deque
from datetime import timedelta

from msgspec import Struct

from dispatcher.capacity import Capacity, Lane, Shares
from dispatcher.channels.port import Destination, Result
from dispatcher.line import Line, Place, Queue, Waiter
from dispatcher.patience import Patience
from dispatcher.standing import BUSY, Endpoint, Host, Standings, TurnedAway
from dispatcher.timepiece import Timepiece
from reminders.ports import Clock

LOOK_EVERY = timedelta(milliseconds=100)
"""How often it is looked who is slow, and whether those who wait still have a chance."""


class Limits(Struct, frozen=True, kw_only=True):
    """Of one process."""

    seats: int = 512
    max_wait: timedelta = timedelta(seconds=2)
    longest_wait: timedelta = timedelta(seconds=5)
    """Whatever was expected."""
    slow_after: timedelta = timedelta(seconds=1)


class Destinations:
    """One for a process."""

    def __init__(self, clock: Clock, limits: Limits, standings: Standings) -> None:
        self._clock = clock
        self._time = Timepiece(clock)
        self._standings = standings
        self._max_wait_s = limits.max_wait.total_seconds()
        self._longest_wait_s = limits.longest_wait.total_seconds()
        self.capacity = Capacity(Shares.of(limits.seats, limits.slow_after.total_seconds()))
        self._queues: dict[str, Queue] = {}
        """Of hosts that are in use."""
        self._crowded: dict[str, Queue] = {}
        """Of these, those where somebody waits."""
        self._lines = {Lane.PROVEN: Line(), Lane.NEW: Line()}
        self._listed = (self._crowded, *(line.hosts for line in self._lines.values()))
        """Where a queue stands while somebody waits in it."""
        self._patience = Patience(self.capacity, self._lines, self._crowded, self._max_wait_s)
        self._waiting = 0
        self._somebody_waits = asyncio.Event()
        self._somebody_sends = asyncio.Event()

    # --- an attempt -------------------------------------------------------------------------------

    async def enter(self, destination: Destination) -> Place | TurnedAway:
        """A place, after a short wait if need be; or why there is none. `leave` it in any case."""
        if not destination.name:
            place = Place(Lane.PROVEN, None, None)
            self.capacity.take(place)
            return place
        now = self._time.now()
        endpoint = self._standings.find(destination)
        refused = self._refusal(endpoint, now)
        if refused is not None:
            return refused
        lane = self._standings.lane(endpoint)
        queue = self._queue(endpoint.host, now)
        if not queue.waiting and queue.place(lane) and self.capacity.free(lane):
            place = self._begin(queue, endpoint, lane, now)
            return place if endpoint.host.bucket is None else await self._with_token(place)
        refused = self._impatience(queue, lane, len(queue.waiting), now)
        if refused is not None:
            self._tidy(queue)
            return refused
        given = await self._stand_in_line(queue, endpoint, now)
        return await self._with_token(given) if isinstance(given, Place) else given

    def sending(self, place: Place) -> None:
        """From now on the receiver is waited for, and nobody else."""
        self.capacity.sending(place, self._time.awake(self._time.now()))
        self._somebody_sends.set()

    def leave(self, place: Place, result: Result | None = None) -> None:
        """The attempt has ended so; None: none was made."""
        now = self._time.now()
        tardy = place.aside and place.lane is not Lane.SLOW
        self.capacity.leave(place)
        endpoint, queue = place.endpoint, place.queue
        if endpoint is not None and queue is not None:
            awake = self._time.awake(now)
            took_s = awake - place.since if place.since else 0.0
            if place.since and not tardy:  # else it was judged when it went aside
                self._standings.timed(endpoint, place.lane, took_s)
                self._patience.seat_freed(place.lane, took_s, awake)
            self._standings.judge(endpoint, place.probes, result, now)
            endpoint.using -= 1
            queue.running -= 1
            queue.slow -= place.lane is Lane.SLOW
            queue.moved_at = awake
            self._serve(queue, now)
            self._tidy(queue)
        self._serve_lines(now)

    # --- how much there is ------------------------------------------------------------------------

    @property
    def room(self) -> int:
        """How many more may come without waiting long, as far as one can know."""
        seats = self.capacity.shares.seats
        return max(min(seats - self.capacity.seated, max(1, seats // 2) - self._waiting), 0)

    @property
    def pressing(self) -> int:
        """Attempts that wait in line, or whose receiver may answer any moment."""
        return self.capacity.seated + self._waiting

    async def turn(self) -> None:
        """Returns when there is so much room that others are not kept out: for legs of pages."""
        capacity, seats = self.capacity, self.capacity.shares.seats
        while capacity.seated >= max(1, seats // 2) or self._waiting >= max(1, seats // 8):
            capacity.moved.clear()
            await capacity.moved.wait()

    # --- time -------------------------------------------------------------------------------------

    async def keep_seats(self) -> None:
        """For ever: takes back the seats of what does not answer soon.

        It notices by its own delays when this process stands still or is short of CPU.
        """
        while True:
            if self.capacity.oldest is None:
                self._somebody_sends.clear()
                await self._somebody_sends.wait()
            await self._time.look_after(LOOK_EVERY)
            self.age()

    async def keep_line(self) -> None:
        """For ever: turns away those in line who have no chance any more."""
        while True:
            if not self._waiting:
                self._somebody_waits.clear()
                await self._somebody_waits.wait()
            await self._clock.sleep_until(self._clock.now() + LOOK_EVERY)
            self.look()

    def age(self) -> None:
        """Now."""
        now = self._time.now()
        awake = self._time.awake(now)
        for seat in self.capacity.age(awake):
            assert isinstance(seat, Place)
            if seat.endpoint is not None and seat.lane is not Lane.SLOW:
                self._standings.went_aside(seat.endpoint, seat.lane)
                self._patience.seat_freed(seat.lane, awake - seat.since, awake)
        self._serve_lines(now)

    def look(self) -> None:
        """Now."""
        now = self._time.now()
        for queue in reversed(list(self._crowded.values())):  # who came last has the least chance
            kept: deque[Waiter] = deque()
            waiting, queue.waiting = queue.waiting, kept
            for waiter in waiting:
                if waiter.place.done():
                    self._waiting -= 1
                    continue
                lane = self._standings.lane(waiter.endpoint)
                refused = self._impatience(queue, lane, len(kept), now)
                if refused is None and now - waiter.since >= self._longest_wait_s:
                    refused = BUSY
                if refused is None:
                    kept.append(waiter)
                else:
                    self._waiting -= 1
                    waiter.place.set_result(refused)
            self._serve(queue, now)
            self._tidy(queue)
        self.capacity.moved.set()

    # --- the line ---------------------------------------------------------------------------------

    async def _stand_in_line(
        self, queue: Queue, endpoint: Endpoint, now: float
    ) -> Place | TurnedAway:
        waiter = Waiter(endpoint, now, asyncio.get_running_loop().create_future())
        queue.waiting.append(waiter)
        self._waiting += 1
        self._crowded[queue.host.name] = queue
        endpoint.using += 1
        self._serve(queue, now)
        self._somebody_waits.set()
        try:
            return await waiter.place
        except asyncio.CancelledError:
            if waiter.place.done() and not waiter.place.cancelled():
                given = waiter.place.result()
                if isinstance(given, Place):  # in the same instant
                    self.leave(given)
            raise
        finally:
            endpoint.using -= 1

    def _serve(self, queue: Queue, now: float, most: int | None = None) -> None:
        """Gives places, to `most` at most, from the first in line on."""
        while queue.waiting:
            waiter = queue.waiting[0]
            if not waiter.place.done():
                lane = self._standings.lane(waiter.endpoint)
                given = None if most == 0 else self._given(queue, waiter.endpoint, lane, now)
                if given is None:
                    if queue.place(lane) and lane in self._lines:
                        self._lines[lane].hosts.setdefault(queue.host.name, queue)
                    return
                if most is not None:
                    most -= 1
                waiter.place.set_result(given)
            queue.waiting.popleft()
            self._waiting -= 1

    def _given(
        self, queue: Queue, endpoint: Endpoint, lane: Lane, now: float
    ) -> Place | TurnedAway | None:
        """To the first in line; None: nothing yet."""
        refused = self._standings.refusal(endpoint, now)
        if refused is not None:
            return refused
        if queue.place(lane) and self.capacity.free(lane):
            return self._begin(queue, endpoint, lane, now)
        return self._patience.slow(self._time.awake(now)) if lane is Lane.SLOW else None

    def _serve_lines(self, now: float) -> None:
        """Seats go to hosts in turn."""
        for lane, line in self._lines.items():
            while line.hosts and self.capacity.free(lane):
                _, queue = line.hosts.popitem(last=False)
                self._serve(queue, now, most=1)
                self._tidy(queue)

    def _begin(self, queue: Queue, endpoint: Endpoint, lane: Lane, now: float) -> Place:
        place = Place(lane, queue, endpoint)
        if not queue.running:
            queue.moved_at = self._time.awake(now)
        if lane in self._lines and not self.capacity.taken(lane):
            self._lines[lane].moved_at = self._time.awake(now)
        self.capacity.take(place)
        queue.running += 1
        queue.slow += lane is Lane.SLOW
        endpoint.using += 1
        place.probes = self._standings.begin(endpoint, now)
        return place

    async def _with_token(self, place: Place) -> Place | TurnedAway:
        """Holds the place until its token is there; a moment at most."""
        assert place.endpoint is not None
        bucket = place.endpoint.host.bucket
        if bucket is None:
            return place
        now = self._time.now()
        if bucket.wait_s(now) > self._max_wait_s:  # gone while it stood in line
            self.leave(place)
            return TurnedAway(reason="rate", wait_s=bucket.come_back_s(now))
        wait_s = bucket.take(now)
        if wait_s:
            try:
                await self._time.sleep_until(now + wait_s)
            except BaseException:
                self.leave(place)
                raise
        return place

    # --- judging ----------------------------------------------------------------------------------

    def _refusal(self, endpoint: Endpoint, now: float) -> TurnedAway | None:
        refused = self._standings.refusal(endpoint, now)
        bucket = endpoint.host.bucket
        if refused is None and bucket is not None and bucket.wait_s(now) > self._max_wait_s:
            return TurnedAway(reason="rate", wait_s=bucket.come_back_s(now))
        return refused

    def _impatience(self, queue: Queue, lane: Lane, ahead: int, now: float) -> TurnedAway | None:
        """Why it does not wait in line behind so many at its host."""
        awake = self._time.awake(now)
        return self._patience.refusal(queue, lane, ahead, self._waiting, awake)

    def _queue(self, host: Host, now: float) -> Queue:
        queue = self._queues.get(host.name)
        if queue is None:
            queue = self._queues[host.name] = Queue(host, self._time.awake(now))
        return queue

    def _tidy(self, queue: Queue) -> None:
        """Forgets what is not in use."""
        name = queue.host.name
        if queue.waiting:
            return
        for queues in self._listed:  # another queue of that host may stand there by now
            if queues and queues.get(name) is queue:
                del queues[name]
        if not queue.running and self._queues.get(name) is queue:
            del self._queues[name]

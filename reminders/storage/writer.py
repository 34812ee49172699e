"""Group commit.

    callers ──▶ waiting ──▶ a few batches under way ──▶ each caller's future
                 ▲  every completion sends the next batch, so an idle server answers a single
                 │  row at once, and a busy one gets batches of thirty
                 └─ bounded: a caller that brings more waits for room

Where the server is faster than the callers, nothing would ever gather that way, and a batch of one
costs both sides thrice as much for each row as a batch of five. So batches may be paced: behind
one that held several rows, the next one that is not full waits a moment for company (`pacing`).

A batch shares its fate, so one that failed may have failed because of one row or of its size: each
of its mutations is sent again alone, once, with the same stamps. Where the driver knows that the
cluster is not there, nothing is sent again. A mutation that waited for longer than two requests may
take fails unsent: while the store is away callers hear so, instead of a queue of hours.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol

from cassandra import Unavailable
from cassandra.cluster import NoHostAvailable

from reminders.errors import StoreUnavailable
from reminders.pacing import Pace
from reminders.storage.bridge import UNAVAILABLE
from reminders.storage.wire import Mutation

MAX_IN_FLIGHT = 8
MAX_FULL_IN_FLIGHT = 16
"""Beyond `in_flight` only full batches are sent: they hide the way there and back, while items of
few callers had better gather."""
MAX_ITEMS = 32
"""About 42 KiB of ordinary creates. Of 20 each cost Cassandra a tenth to a fifth more."""
MAX_BYTES = 44 * 1024
"""A default cluster refuses a batch of more than 50 KiB; it counts less than these bytes."""
TURN_ITEMS = 2 * MAX_ITEMS
MAX_WAITING_ITEMS = 2_000
MAX_WAITING_BYTES = 8 * 1024 * 1024

NOTHING_THERE = (Unavailable, NoHostAvailable)


Done = Callable[[Any, BaseException | None], None]


class Sender(Protocol):
    """Sends one batch."""

    def send(self, mutations: list[Mutation], done: Done) -> None:
        """Calls `done` in a later turn of the loop, with the driver's error or None."""


class _Call:
    """One caller's mutations: answered once, when the last is."""

    __slots__ = ("error", "open", "operation", "settled")

    def __init__(self, operation: str, settled: asyncio.Future[None]) -> None:
        self.operation = operation
        self.settled = settled
        self.open = 1  # the caller's own, until it has brought everything
        self.error: BaseException | None = None

    def close_one(self, error: BaseException | None = None) -> None:
        self.error = self.error or error
        self.open -= 1
        if self.open or self.settled.done():
            return
        if self.error is None:
            self.settled.set_result(None)
        else:
            self.settled.set_exception(self.error)


class _Item:
    """One mutation on its way."""

    __slots__ = ("call", "mutation", "since")

    def __init__(self, mutation: Mutation, call: _Call, since: float) -> None:
        self.mutation = mutation
        self.call = call
        self.since = since


Landed = Callable[[list[_Item], Any, BaseException | None], None]


class GroupWriter:
    """Sends many callers' mutations in few batches. For one event loop."""

    def __init__(
        self,
        sender: Sender,
        *,
        patience_s: float,
        in_flight: int = MAX_IN_FLIGHT,
        pace_s: float = 0.0,
        linger_s: float = 0.0,
    ) -> None:
        """`in_flight`: batches under way that need not be full. Few: more gathers in each, which
        costs the server less, and a caller waits for a round trip more. `pace_s`: the longest wait
        of a batch that is not full behind one of several rows. `linger_s`: how long one waits for
        company in any case; for what nobody waits for.
        """
        self._sender = sender
        self._most_in_flight = in_flight
        self._pace = Pace(pace_s)
        self._linger_s = linger_s
        self._patience_s = patience_s
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[_Item] = deque()
        self._waiting_bytes = 0
        self._in_flight = 0
        self._scheduled: asyncio.Handle | None = None
        self._at_once = False
        """Of what is scheduled: in the next turn, not after lingering."""
        self._room = asyncio.Event()
        self._room.set()

    async def write(self, mutations: Iterable[Mutation], operation: str) -> None:
        """Returns when all are acknowledged.

        `mutations` is drawn from as there is room, so a generator keeps memory flat.

        Raises:
            StoreUnavailable: Some may not have been written.
        """
        call = _Call(operation, self._loop.create_future())
        now = self._loop.time()
        try:
            for number, mutation in enumerate(mutations, 1):
                while not self._has_room():
                    self._schedule()
                    self._room.clear()
                    await self._room.wait()
                    now = self._loop.time()
                call.open += 1
                self._waiting.append(_Item(mutation, call, now))
                self._waiting_bytes += len(mutation.rows)
                if number % TURN_ITEMS == 0:  # making rows is work: let the loop send meanwhile
                    self._schedule()
                    await asyncio.sleep(0)
                    now = self._loop.time()
            self._schedule()
            call.close_one()
            await call.settled
        finally:
            call.settled.cancel()  # no caller any more: what still waits is not sent

    def _has_room(self) -> bool:
        return len(self._waiting) < MAX_WAITING_ITEMS and self._waiting_bytes < MAX_WAITING_BYTES

    def _schedule(self) -> None:
        """In the loop's next turn, so that callers of one turn share a batch; or a little later."""
        if not self._waiting or not self._may_send():
            return
        delay = self._delay()
        at_once = delay <= 0
        if self._scheduled is not None:
            if self._at_once or not at_once:
                return
            self._scheduled.cancel()
        self._at_once = at_once
        if at_once:
            self._scheduled = self._loop.call_soon(self._pump)
        else:
            self._scheduled = self._loop.call_later(delay, self._pump)

    def _delay(self) -> float:
        """How long what waits now goes on waiting for company, in seconds."""
        if self._is_full():
            return 0.0
        return max(self._linger_s, self._pace.wait_s(self._loop.time()))

    def _pump(self) -> None:
        self._scheduled = None
        while self._waiting and self._may_send():
            if not self._is_full() and self._pace.wait_s(self._loop.time()):
                self._schedule()
                break
            group = self._take()
            if group:
                self._in_flight += 1
                self._pace.begun(len(group), self._loop.time())
                self._send(group, self._landed)
        if self._has_room():
            self._room.set()

    def _may_send(self) -> bool:
        if self._in_flight < self._most_in_flight:
            return True
        return self._is_full() and self._in_flight < MAX_FULL_IN_FLIGHT

    def _is_full(self) -> bool:
        return len(self._waiting) >= MAX_ITEMS or self._waiting_bytes >= MAX_BYTES

    def _take(self) -> list[_Item]:
        group: list[_Item] = []
        size = 0
        too_old = self._loop.time() - self._patience_s
        while self._waiting and len(group) < MAX_ITEMS:
            item = self._waiting[0]
            if group and size + item.mutation.size > MAX_BYTES:
                break
            self._waiting.popleft()
            self._waiting_bytes -= item.mutation.size
            if item.call.settled.done():  # its caller was cancelled
                continue
            if item.since < too_old:
                item.call.close_one(StoreUnavailable(operation=item.call.operation))
                continue
            group.append(item)
            size += item.mutation.size
        return group

    def _send(self, group: list[_Item], landed: Landed) -> None:
        done = partial(landed, group)
        try:
            self._sender.send([item.mutation for item in group], done)
        except Exception as error:  # noqa: BLE001 - whatever it is, the callers must hear of it
            self._loop.call_soon(done, None, error)

    def _landed(self, group: list[_Item], _rows: Any, error: BaseException | None) -> None:
        self._in_flight -= 1
        if error is None:
            for item in group:
                item.call.close_one()
        elif isinstance(error, NOTHING_THERE):
            self._fail(group, error)
        else:
            for item in group:
                if not item.call.settled.done():  # given up: nobody would hear of it
                    self._send([item], self._landed_alone)
        if self._delay() <= 0:
            self._pump()
        else:
            self._schedule()

    def _landed_alone(self, group: list[_Item], _rows: Any, error: BaseException | None) -> None:
        if error is None:
            group[0].call.close_one()
        else:
            self._fail(group, error)

    def _fail(self, group: list[_Item], error: BaseException) -> None:
        for item in group:
            shown: BaseException = error
            if isinstance(error, UNAVAILABLE):
                shown = StoreUnavailable(operation=item.call.operation)
                shown.__cause__ = error
            item.call.close_one(shown)

"""How many attempts run at one destination, and who has to wait.

A slow receiver must not keep others out (convoy #1927): whoever would have to wait too long for a
place at its destination is turned away at once, and parked by the caller.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

REMEMBERED = 4096
"""Destinations whose pace is known, beyond those in use."""
_WEIGHT = 0.2
"""Of the newest attempt in a destination's pace."""


@dataclass(slots=True)
class _Waiter:
    since: float
    place: asyncio.Future[bool]


@dataclass(slots=True)
class _Gate:
    running: int = 0
    pace_s: float = 0.0
    """How long an attempt takes here, lately."""
    moved_at: float = 0.0
    """When the last attempt ended, or the first one began."""
    waiting: deque[_Waiter] = field(default_factory=deque)


class Destinations:
    """Places at destinations. Times are monotonic seconds."""

    def __init__(
        self,
        *,
        places: int,
        max_wait: timedelta,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._places = places
        self._max_wait_s = max_wait.total_seconds()
        self._seconds = seconds
        self._gates: dict[str, _Gate] = {}

    async def enter(self, name: str) -> bool:
        """Takes a place, after a short wait if need be. False: turned away. True: `leave` it."""
        if not name:
            return True
        gate = self._gates.get(name)
        if gate is None:
            gate = self._open(name)
        if gate.running < self._places:
            if not gate.running:
                gate.moved_at = self._seconds()
            gate.running += 1
            return True
        if self._expected_wait_s(gate, len(gate.waiting)) > self._max_wait_s:
            return False
        waiter = _Waiter(self._seconds(), asyncio.get_running_loop().create_future())
        gate.waiting.append(waiter)
        try:
            return await waiter.place
        except asyncio.CancelledError:
            if waiter.place.done() and not waiter.place.cancelled() and waiter.place.result():
                self._free(gate)  # given to us in the same instant
            raise

    def leave(self, name: str, took_s: float) -> None:
        """Gives the place to whoever waits longest. `took_s`: how long the attempt ran."""
        if not name:
            return
        gate = self._gates[name]
        gate.pace_s = took_s if not gate.pace_s else gate.pace_s + _WEIGHT * (took_s - gate.pace_s)
        gate.moved_at = self._seconds()
        self._free(gate)

    def turn_away(self, waited: timedelta) -> None:
        """Turns away who waited so long, and who would wait too long as things have become."""
        before = self._seconds() - waited.total_seconds()
        for gate in self._gates.values():
            kept: deque[_Waiter] = deque()
            for waiter in gate.waiting:
                if waiter.place.done():
                    continue
                late = waiter.since <= before
                if late or self._expected_wait_s(gate, len(kept)) > self._max_wait_s:
                    waiter.place.set_result(False)
                else:
                    kept.append(waiter)
            gate.waiting = kept

    def _expected_wait_s(self, gate: _Gate, ahead: int) -> float:
        """With so many ahead. A destination that does not answer gets slower by the second."""
        pace_s = max(gate.pace_s, self._seconds() - gate.moved_at)
        return (ahead + 1) / self._places * pace_s

    def _free(self, gate: _Gate) -> None:
        while gate.waiting:
            waiter = gate.waiting.popleft()
            if not waiter.place.done():
                waiter.place.set_result(True)
                return
        gate.running -= 1

    def _open(self, name: str) -> _Gate:
        if len(self._gates) >= REMEMBERED:
            idle = [known for known, gate in self._gates.items() if not gate.running]
            for known in idle:
                del self._gates[known]
        gate = self._gates[name] = _Gate()
        return gate

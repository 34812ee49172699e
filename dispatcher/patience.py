"""How long a wait in line would be, and who does not wait so long. Pure.

A wait of `QUICK_S` for a place at the host is always accepted: it is a burst at somebody fast. A
longer one, up to the longest, only as long as those who wait, shared evenly among hosts, leave most
of the line free: they must never hold the stream back.
"""

from collections.abc import Mapping, Sized

from dispatcher.capacity import Capacity, Lane
from dispatcher.line import Line, Queue
from dispatcher.standing import BUSY, WEIGHT, TurnedAway

QUICK_S = 0.5
"""A wait for a place at a host that is always accepted."""
QUICK_NEW_S = 0.1
"""The same for a seat of the few for those whom nobody knows: they may all hang."""
LONGEST_BOOKING_S = 60.0
"""However many were told to come back before: they may be answered at once by then."""


class Patience:
    """Times are seconds in which this process was awake (`timepiece`)."""

    def __init__(
        self, capacity: Capacity, lines: Mapping[Lane, Line], crowded: Sized, most_s: float
    ) -> None:
        """`crowded`: the hosts at which somebody waits. `most_s`: what is expected at most."""
        self._capacity = capacity
        self._lines = lines
        self._crowded = crowded
        self._most_s = most_s
        self._aside_pace_s = capacity.shares.slow_after_s
        """How long what is known to be slow holds its place."""
        self._booked_at = 0.0

    def refusal(
        self, queue: Queue, lane: Lane, ahead: int, waiting: int, awake: float
    ) -> TurnedAway | None:
        """Why one does not wait behind so many at its host, and so many everywhere."""
        if lane is Lane.SLOW:
            return self.slow(awake)
        place_s = self._place_s(queue, ahead, awake)
        seat_s = self._seat_s(lane, ahead, waiting, awake)
        expected_s = max(place_s, seat_s)
        quick = place_s <= QUICK_S and (lane is Lane.PROVEN or seat_s <= QUICK_NEW_S)
        if quick and expected_s <= self._most_s:
            return None
        patient = self._capacity.shares.seats // 8
        crowded = ahead >= max(1, patient // max(1, len(self._crowded)))
        if expected_s > self._most_s or crowded or waiting > patient:
            return BUSY
        return None

    def slow(self, awake: float) -> TurnedAway:
        """What is known to be slow does not wait in line. All being taken, everybody is told
        another time, one after the other as places get free; nothing is kept for them.
        """
        if self._capacity.free(Lane.SLOW):  # but none at its host
            return TurnedAway(reason="slow")
        step_s = self._aside_pace_s / self._capacity.shares.aside
        self._booked_at = min(max(self._booked_at, awake) + step_s, awake + LONGEST_BOOKING_S)
        return TurnedAway(reason="slow", wait_s=self._booked_at - awake)

    def seat_freed(self, lane: Lane, took_s: float, awake: float) -> None:
        """It was held for so long."""
        line = self._lines.get(lane)
        if line is None:
            self._aside_pace_s += WEIGHT * (took_s - self._aside_pace_s)
        else:
            line.pace_s += WEIGHT * (took_s - line.pace_s)
            line.moved_at = awake

    def _place_s(self, queue: Queue, ahead: int, awake: float) -> float:
        """The wait at a host, behind so many. Who does not answer gets slower by the second."""
        host = queue.host
        if queue.running < host.places:
            return 0.0
        pace_s = max(host.pace_s or 0.0, awake - queue.moved_at)
        return (ahead + 1) / host.places * pace_s

    def _seat_s(self, lane: Lane, ahead: int, waiting: int, awake: float) -> float:
        """The wait for a seat, behind so many of the same host: hosts get seats in turn."""
        if self._capacity.free(lane):
            return 0.0
        line, shares = self._lines[lane], self._capacity.shares
        seats = shares.newcomers if lane is Lane.NEW else shares.seats
        pace_s = max(line.pace_s, awake - line.moved_at)
        turns = (ahead + 1) * (len(line.hosts) + 1)
        return min(turns, waiting + 1) / seats * pace_s

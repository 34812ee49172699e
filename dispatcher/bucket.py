"""A token bucket: at most `burst` at once, and `per_s` a second in the long run. Pure.

Kept as the one instant at which the bucket would be full again (generic cell rate algorithm), so it
needs no timer. Times are seconds on any clock that does not go back; intervals are rounded up to
whole µs, so that no window ever holds one too many.
"""

import math

from msgspec import Struct

MICROS = 1_000_000


class Rate(Struct, frozen=True, kw_only=True):
    """How much a destination is sent by one dispatcher."""

    per_s: float
    """More than 0."""
    burst: int = 1
    """Tokens of a full bucket, at least 1."""


class Bucket:
    """Of one destination."""

    __slots__ = ("_booked_us", "_burst_us", "_full_us", "_interval_us")

    def __init__(self, rate: Rate) -> None:
        self._interval_us = math.ceil(MICROS / rate.per_s)
        self._burst_us = (rate.burst - 1) * self._interval_us
        self._full_us = -(10**18)
        self._booked_us = self._full_us

    def wait_s(self, now: float) -> float:
        """How long until there is a token; 0: there is one."""
        return max(0, self._next_us() - _us(now)) / MICROS

    def take(self, now: float) -> float:
        """Takes the next token, now or ahead of its time; how long until it is there."""
        wait_s = self.wait_s(now)
        self._full_us = max(self._full_us, _us(now)) + self._interval_us
        return wait_s

    def come_back_s(self, now: float) -> float:
        """When to ask again: everybody who is told gets another time, one interval apart.

        Nothing is kept for them: whoever comes first takes the token.
        """
        at = max(self._next_us(), self._booked_us + self._interval_us, _us(now))
        self._booked_us = at
        return (at - _us(now)) / MICROS

    def _next_us(self) -> int:
        return self._full_us - self._burst_us


def _us(now: float) -> int:
    return math.floor(now * MICROS)

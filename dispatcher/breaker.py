"""A circuit breaker: who is down is left alone for a while, and then asked by one. Pure.

    CLOSED ── `failures` in a row ──▶ OPEN ── its time is over ──▶ HALF_OPEN: one probe at a time
      ▲                                ▲                              │
      ├────────── any answer ──────────┼──────────────────────────────┤
                                       └── the probe failed: longer ──┘

What began before it opened and ends now tells nothing new, unless it was answered: then all is
well. Times are seconds on any clock that does not go back.
"""

from enum import StrEnum

from msgspec import Struct


class BreakerPolicy(Struct, frozen=True, kw_only=True):
    """When it opens and for how long."""

    failures: int = 5
    """In a row, after which it opens."""
    open_s: float = 5.0
    """How long the first time; doubles with every probe that fails."""
    longest_s: float = 300.0
    """It never stays open for longer than this without a probe being let through."""


class BreakerState(StrEnum):
    """Where it stands."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Breaker:
    """Of one destination."""

    __slots__ = ("_failures", "_opened", "_policy", "_probing", "until")

    def __init__(self, policy: BreakerPolicy) -> None:
        self._policy = policy
        self._failures = 0
        self._opened = 0
        self._probing = False
        self.until = 0.0
        """The end of its time, unless it is closed."""

    @property
    def failures(self) -> int:
        """In a row."""
        return self._failures

    @property
    def closed(self) -> bool:
        """Anybody may begin."""
        return not self._opened

    @property
    def calm(self) -> bool:
        """It is closed, and an answer is no news: the last one was none either."""
        return not (self._failures or self._opened or self._probing)

    def state(self, now: float) -> BreakerState:
        """Where it stands then."""
        if not self._opened:
            return BreakerState.CLOSED
        return BreakerState.OPEN if now < self.until else BreakerState.HALF_OPEN

    def wait_s(self, now: float) -> float:
        """0: an attempt may begin. Else how long to stay away: also while a probe is under way."""
        if not self._opened:
            return 0.0
        if now < self.until:
            return self.until - now
        return self._policy.open_s if self._probing else 0.0

    def begin(self, now: float) -> bool:
        """An attempt begins; whether it is the probe, which must end in one of the next three."""
        if not self._opened or now < self.until or self._probing:
            return False
        self._probing = True
        return True

    def answered(self) -> bool:
        """Somebody answered, whatever. Whether this closed it."""
        closed = self._opened > 0
        self._failures = self._opened = 0
        self._probing = False
        return closed

    def failed(self, now: float, *, probe: bool) -> bool:
        """Nobody there. Whether this opened it (again)."""
        self._failures += 1
        if probe:
            self._probing = False
        if self._failures < self._policy.failures or (self._opened and not probe):
            return False
        self._opened += 1
        doublings = min(self._opened - 1, 32)
        self.until = now + min(self._policy.open_s * 2**doublings, self._policy.longest_s)
        return True

    def untold(self, *, probe: bool) -> None:
        """An attempt ended, and nobody knows more than before."""
        if probe:
            self._probing = False

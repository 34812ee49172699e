"""How many attempts a process has under way, and who may hold how much of it. Pure.

    begins ─▶ a seat ── no answer within `slow_after` ─▶ aside ─▶ ends
                │ at most `seats`; of these a quarter       │ at most `aside` may be there when
                │ for destinations never seen               └ a destination known as slow begins one

Whoever does not answer soon gives up its seat without ending, so a seat is free again after
`slow_after` at the latest: what hangs, however much of it there is, keeps seats from others only
for that long. Those who are known to be slow begin aside, and those who may be (nobody has seen
them yet) have few seats. So a thousand endpoints that hang leave three quarters of the seats alone.

What was proven and hangs now still goes aside when `aside` is full, since it can't be stopped: at
most `seats` do within each `slow_after`, and a destination is known as slow after two of them.
"""

import asyncio
from collections import deque
from enum import Enum

from msgspec import Struct

MICROSECOND_S = 1e-6
"""What a clock tells apart: who wakes at the very time must not miss it by a rounding."""


class Lane(Enum):
    """What is known about how soon a destination answers."""

    PROVEN = "proven"
    """It did, lately."""
    NEW = "new"
    """Nothing."""
    SLOW = "slow"
    """It did not, lately."""


class Shares(Struct, frozen=True, kw_only=True):
    """In attempts."""

    seats: int
    newcomers: int
    """Of the seats, for destinations of which nothing is known."""
    aside: int
    slow_after_s: float

    @classmethod
    def of(cls, seats: int, slow_after_s: float) -> "Shares":
        """A quarter for newcomers, and twice as many beside for what is slow: a thousand that hang
        for 8 s each are cheaper to wait for than to turn away again and again.
        """
        return cls(
            seats=seats,
            newcomers=max(1, seats // 4),
            aside=2 * seats,
            slow_after_s=slow_after_s,
        )


class Seat:
    """An attempt under way. Its owner may derive from it."""

    __slots__ = ("aside", "gone", "lane", "since")

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.since = 0.0
        """When its sending began; 0: not yet."""
        self.aside = lane is Lane.SLOW
        self.gone = False


class Capacity:
    """Counts seats. Times are seconds on any clock that does not go back."""

    def __init__(self, shares: Shares) -> None:
        self.shares = shares
        self.seated = 0
        """Attempts that hold a seat."""
        self.newcomers = 0
        """Of these, to destinations of which nothing is known."""
        self.aside = 0
        """Attempts that hold none (any more)."""
        self.moved = asyncio.Event()
        """Set whenever room may have come about; whoever waits clears it first."""
        self._begun: deque[Seat] = deque()

    def free(self, lane: Lane) -> bool:
        """Whether one more may begin."""
        shares = self.shares
        if lane is Lane.SLOW:
            return self.aside < shares.aside
        if self.seated >= shares.seats:
            return False
        if lane is Lane.PROVEN:
            return True
        return self.newcomers < shares.newcomers and self.aside < shares.aside + shares.seats

    def taken(self, lane: Lane) -> int:
        """How many hold what `free` would give."""
        if lane is Lane.SLOW:
            return self.aside
        return self.newcomers if lane is Lane.NEW else self.seated

    def take(self, seat: Seat) -> None:
        """Begins; call `free` before."""
        if seat.aside:
            self.aside += 1
            return
        self.seated += 1
        self.newcomers += seat.lane is Lane.NEW

    def sending(self, seat: Seat, now: float) -> None:
        """From now on the receiver is waited for, and nobody else."""
        seat.since = now
        while self._begun and self._begun[0].gone:
            self._begun.popleft()
        self._begun.append(seat)

    def leave(self, seat: Seat) -> None:
        """It has ended."""
        seat.gone = True
        if seat.aside:
            self.aside -= 1
        else:
            self._rise(seat)
        self.moved.set()

    def age(self, now: float) -> list[Seat]:
        """Those whose receivers have let wait too long just now; seats go back."""
        slow: list[Seat] = []
        before = now - self.shares.slow_after_s + MICROSECOND_S
        while self._begun and (self._begun[0].gone or self._begun[0].since <= before):
            seat = self._begun.popleft()
            if seat.gone:
                continue
            slow.append(seat)
            if not seat.aside:
                self._rise(seat)
                seat.aside = True
                self.aside += 1
        if slow:
            self.moved.set()
        return slow

    @property
    def oldest(self) -> float | None:
        """When the attempt began that turns slow next."""
        while self._begun and self._begun[0].gone:
            self._begun.popleft()
        return self._begun[0].since if self._begun else None

    def _rise(self, seat: Seat) -> None:
        self.seated -= 1
        self.newcomers -= seat.lane is Lane.NEW

"""Clocks of every zone, by asking `zoneinfo` for `utcoffset` minute by minute. Shares no code.

Minutes are whole numbers since 1970 (UTC), local minutes the same numbers plus the offset: between
1990 and 2050 every offset and every transition of tzdata is in whole minutes, which is checked.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources
from io import BytesIO
from itertools import pairwise
from zoneinfo import ZoneInfo

FIRST_YEAR = 1990
LAST_YEAR = 2050
DAY = 1440
"""Minutes."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAIVE_EPOCH = datetime(1970, 1, 1)
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Rules:
    """One file of tzdata, with all the names that stand for it."""

    names: tuple[str, ...]
    data: bytes = field(repr=False)

    def clock(self) -> ZoneInfo:
        """Read anew, by the standard library alone."""
        return ZoneInfo.from_file(BytesIO(self.data), key=self.names[0])


@dataclass(frozen=True)
class Transition:
    """Clocks jump from one offset to another. All in minutes."""

    at: int
    """The first UTC minute with the new offset."""
    before: int
    after: int

    @property
    def pattern(self) -> tuple[int, int, int]:
        """What makes one transition like another: both offsets, and the local time of day."""
        return (self.before, self.after, (self.at + self.before) % DAY)


def all_rules() -> list[Rules]:
    """Every file of the tzdata package once: links are the same bytes."""
    package = resources.files("tzdata")
    names: dict[bytes, list[str]] = {}
    for name in package.joinpath("zones").read_text(encoding="ascii").split():
        data = package.joinpath("zoneinfo", *name.split("/")).read_bytes()
        names.setdefault(data, []).append(name)
    return [Rules(tuple(known), data) for data, known in names.items()]


def minute_of(at: datetime) -> int:
    """Of an aware instant or, as a local minute, of a naive time; whole minutes only."""
    minutes, rest = divmod(at - (_EPOCH if at.tzinfo else _NAIVE_EPOCH), _MINUTE)
    assert not rest, at
    return minutes


def instant_of(minute: int) -> datetime:
    """Aware, UTC."""
    return _EPOCH + minute * _MINUTE


def local_of(minute: int) -> datetime:
    """Naive."""
    return _NAIVE_EPOCH + minute * _MINUTE


def offset_at(minute: int, clock: ZoneInfo) -> int:
    """Minutes that clocks are ahead of UTC."""
    return _whole_minutes((_EPOCH + minute * _MINUTE).astimezone(clock).utcoffset())


@cache
def _whole_minutes(offset: timedelta | None) -> int:
    assert offset is not None
    minutes, rest = divmod(offset, _MINUTE)
    assert not rest, offset
    return minutes


def transitions(clock: ZoneInfo, *, step: int) -> Iterator[Transition]:
    """From 1990 to 2050. Finds all that no other one takes back within `step` minutes."""
    at = minute_of(datetime(FIRST_YEAR, 1, 1, tzinfo=UTC))
    end = minute_of(datetime(LAST_YEAR + 1, 1, 1, tzinfo=UTC))
    before = offset_at(at, clock)
    while at < end:
        after = offset_at(at + step, clock)
        if after == before:
            at += step
            continue
        low, high = at, at + step
        while high - low > 1:
            middle = (low + high) // 2
            if offset_at(middle, clock) == before:
                low = middle
            else:
                high = middle
        # Two within one step: the search found one of them, and goes on from there.
        at, after = high, offset_at(high, clock)
        if at < end:
            yield Transition(at, before, after)
        before = after


class Window:
    """What clocks show in some days around a transition: pure scanning, no arithmetic."""

    def __init__(self, clock: ZoneInfo, around: int, days: int) -> None:
        self.clock = clock
        self.begins = around - days * DAY
        self.shows = [
            minute + offset_at(minute, clock) for minute in range(self.begins, around + days * DAY)
        ]
        """The local minute at each UTC minute from `begins` on."""
        self.seen: dict[int, list[int]] = {}
        """Local minute → the UTC minutes at which clocks show it."""
        for minute, local in enumerate(self.shows, self.begins):
            self.seen.setdefault(local, []).append(minute)
        self.jumps = [
            minute
            for minute, (last, shown) in enumerate(pairwise(self.shows), self.begins + 1)
            if shown > last + 1
        ]
        """UTC minutes at which clocks leave out some."""

    def reading(self, minute: int) -> tuple[int, int]:
        """The local minute at a UTC minute, and which of its showings this is (PEP 495's fold)."""
        local = self.shows[minute - self.begins]
        return local, self.seen[local].index(minute)

    def jump_over(self, local: int) -> int:
        """The UTC minute at which clocks first show more than a local minute that they never do."""
        return next(at for at in self.jumps if self._before(at) < local < self.reading(at)[0])

    def _before(self, minute: int) -> int:
        return self.reading(minute - 1)[0]

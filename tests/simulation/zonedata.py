"""Zone data that differ from host to host: what an upgrade, machine after machine, brings.

Only one zone is concerned. It has no summer time, and newer data has its clocks further by some
seconds: so what was planned for later in a run moves within it.
"""

import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import tzdata

from reminders.recurrence import zones
from tests.simulation.loop import VirtualLoop
from tests.simulation.patches import replaced
from tests.simulation.process import Process

ZONE = "Africa/Algiers"
OFFSET_S = 3600
NEWER = "2099h"


class Editions:
    """The data that each process computes with."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._load = zones._load
        self._installed = str(tzdata.IANA_VERSION)
        self.outside_s = 0
        """What the world itself computes with; see `as_of`."""

    def shift_s(self) -> int:
        """Of whoever computes now."""
        process = self._loop.current
        return process.zone_shift_s if isinstance(process, Process) else self.outside_s

    def load(self, name: str) -> ZoneInfo:
        """Stands for `zones._load`."""
        shift_s = self.shift_s() if name == ZONE else 0
        return fixed(name, OFFSET_S + shift_s) if shift_s else self._load(name)

    @property
    def IANA_VERSION(self) -> str:  # noqa: N802 - as in tzdata
        """The release."""
        return NEWER if self.shift_s() else self._installed

    @contextmanager
    def as_of(self, shift_s: int) -> Iterator[None]:
        """What the world computes meanwhile, it computes with this shift."""
        before, self.outside_s = self.outside_s, shift_s
        try:
            yield
        finally:
            self.outside_s = before

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """The code under test computes by them."""
        sys.modules["tzdata"] = _Package(self)  # type: ignore[assignment]
        try:
            with replaced((zones, "_load", self.load)):
                yield
        finally:
            sys.modules["tzdata"] = tzdata


class _Package(SimpleNamespace):
    """The tzdata package, but for its release."""

    def __init__(self, editions: Editions) -> None:
        super().__init__(**vars(tzdata))
        del self.IANA_VERSION
        self._editions = editions

    def __getattr__(self, name: str) -> object:
        if name == "IANA_VERSION":
            return self._editions.IANA_VERSION
        raise AttributeError(name)


@cache
def fixed(name: str, offset_s: int) -> ZoneInfo:
    """A zone that never changes (RFC 8536, version 2, no transitions)."""
    head = b"TZif2" + bytes(15)
    counts = struct.pack(">6l", 0, 0, 0, 0, 1, 4)
    body = struct.pack(">lbb", offset_s, 0, 0) + b"SIM\0"
    hours, rest = divmod(offset_s, 3600)
    footer = f"\n<SIM>-{hours:02}:{rest // 60:02}:{rest % 60:02}\n".encode()
    return ZoneInfo.from_file(BytesIO((head + counts + body) * 2 + footer), key=name)

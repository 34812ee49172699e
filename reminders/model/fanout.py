"""How far the fan-out of a topic's occurrence has come: counts, by page and in all."""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct


class Standing(StrEnum):
    """How a delivery of a fan-out counts."""

    OPEN = "open"
    TAKEN = "taken"
    STOPPED = "stopped"
    FAILED = "failed"


class TargetCounts(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """How many deliveries of a fan-out stand how."""

    open: int = 0
    """Not ended: an attempt is under way, or the next one is an entry of its own."""
    taken: int = 0
    stopped: int = 0
    """Cancelled or expired."""
    failed: int = 0

    @property
    def targets(self) -> int:
        """All of them."""
        return self.open + self.taken + self.stopped + self.failed

    def __add__(self, other: "TargetCounts") -> "TargetCounts":
        return TargetCounts(
            open=self.open + other.open,
            taken=self.taken + other.taken,
            stopped=self.stopped + other.stopped,
            failed=self.failed + other.failed,
        )


class PageCount(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What a page of a fan-out came to: when all that it sent was on record, or parked."""

    bucket: int
    page: int
    """From 1."""
    last: bool = False
    """Nothing comes behind it."""
    paused: int = 0
    """Subscribers left out because they are paused."""
    filtered: int = 0
    """Left out by their filter."""
    counts: TargetCounts = TargetCounts()
    why: str = ""
    """Set where the fan-out ended here before its end: a stable word."""


class Fanout(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """How far an occurrence of a topic's reminder has come, as it was counted last."""

    topic_id: str
    started_at: datetime
    subscribers: int = 0
    """Of the topic, about when it began; 0: not counted yet."""
    paused: int = 0
    filtered: int = 0
    counts: TargetCounts = TargetCounts()
    counted_at: datetime | None = None
    """None: not yet."""
    next_at: datetime | None = None
    """When it is counted again; None: not any more, it has ended."""
    per_second: float = 0.0
    """Subscribers that were told or left out, lately."""
    why: str = ""
    """Set where it ended before its end: a stable word."""
    replayed: bool = False
    """Some of it was sent again, so that only the deliveries themselves can be counted."""
    only_subscriber: str = ""
    """Of a test send: nobody else is told."""

    @property
    def passed(self) -> int:
        """Subscribers that were told or left out."""
        return self.counts.targets + self.paused + self.filtered

    @property
    def finished(self) -> bool:
        """Every delivery has ended."""
        return self.counted_at is not None and self.next_at is None

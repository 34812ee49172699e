"""Instants at the edge to Redis: whole microseconds or milliseconds since 1970."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_us(at: datetime) -> int:
    """Exact until the year 2255 (2**53 µs, which Lua's numbers hold as well)."""
    if at.tzinfo is None:
        raise ValueError("a naive datetime is no instant")
    return round(at.timestamp() * 1_000_000)


def from_us(us: int) -> datetime:
    """Aware UTC."""
    return EPOCH + timedelta(microseconds=us)


def to_ms(span: timedelta) -> int:
    """Whole milliseconds, at least one if the span is not zero: a life of 0 ms is an error."""
    return max(round(span / timedelta(milliseconds=1)), 1) if span else 0

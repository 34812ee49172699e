"""Stamps of outcomes and ledger rows: their own time."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def stamp_of(at: datetime) -> int:
    """µs since 1970."""
    return (at - _EPOCH) // _MICROSECOND

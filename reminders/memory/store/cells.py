"""Cells that the last write wins, by its stamp."""

from typing import Any, Generic, TypeVar

V = TypeVar("V")

_NEVER = -(2**63)
BY_CONSENSUS = 2**63
"""The stamp of what an LWT wrote: plain writes of the same cells are stamped behind the clock."""


class Cell(Generic[V]):
    """One value with its stamp; None where it was never written, or was deleted."""

    __slots__ = ("_rank", "value")

    def __init__(self) -> None:
        self.value: V | None = None
        self._rank: tuple[int, bool, Any] = (_NEVER, False, b"")

    def put(self, value: V, stamp: int, order: Any) -> None:
        """Larger stamp wins; at equal stamps the larger `order`, the value's stored form."""
        rank = (stamp, False, order)
        if rank > self._rank:
            self.value, self._rank = value, rank

    def delete(self, stamp: int) -> None:
        """At equal stamps, a deletion wins over any value."""
        rank = (stamp, True, b"")
        if rank[:2] > self._rank[:2]:
            self.value, self._rank = None, rank

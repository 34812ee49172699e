"""How far apart batches that are not full begin, so that company gathers. Pure.

Behind one that had several, the next one waits; the longer, the more there were, since so many more
will come meanwhile. Whoever comes alone waits for nothing, and makes nobody wait.
"""

BUSY = 4
"""Behind so many, the next one waits for the longest time."""


class Pace:
    """Times are seconds on any clock that does not go back."""

    __slots__ = ("_longest_s", "_next_at")

    def __init__(self, longest_s: float) -> None:
        """0: nobody waits."""
        self._longest_s = longest_s
        self._next_at = 0.0

    def begun(self, count: int, now: float) -> None:
        """A batch of so many began."""
        if count > 1:
            self._next_at = now + min(count, BUSY) / BUSY * self._longest_s

    def wait_s(self, now: float) -> float:
        """How long the next one waits."""
        return max(self._next_at - now, 0.0)

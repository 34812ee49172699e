"""What time it is, for all processes alike."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """The reference clock (R-CLK). Never goes back within a process."""

    def now(self) -> datetime:
        """Aware UTC, by the reference server."""

    def in_bounds(self) -> bool:
        """Whether the process may act: sampled lately, and local drift at most 100 ms."""

    async def sleep_until(self, at: datetime) -> None:
        """Returns once `now() >= at`, not before."""

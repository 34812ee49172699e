"""What time it is, for all processes alike."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """The reference clock (R-CLK). Never goes back within a process."""

    def now(self) -> datetime:
        """Aware UTC, by the reference server."""

    def at_least(self) -> datetime:
        """What the reference surely shows by now, however wrong this machine's clock runs."""

    async def refresh(self) -> None:
        """Asks the reference again, so that `at_least` comes close; does nothing if it can't."""

    def in_bounds(self) -> bool:
        """Whether the process may act: sampled lately, and local drift at most 100 ms."""

    async def sleep_until(self, at: datetime, *, exact: bool = False) -> None:
        """Returns once `now() >= at`, not before; a millisecond or two later, or `exact`: at once,
        which costs up to half a millisecond of CPU each time.
        """

"""Planning that takes long: in a thread, so that one caller's rule does not hold up all others.

A rule that names next to nothing costs up to `MAX_STEPS` of pure computing, 0.1 to 0.3 s, and
whoever likes may send a batch of them. So it is planned in haste first, which is enough for nearly
all rules; one that is not settled by then is planned again in a thread, one at a time.
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

HASTY_STEPS: Final = 1_000
"""Of work, a few milliseconds: what is planned between two turns of the event loop."""
AT_ONCE: Final = 1
"""Threads that compute hold up the loop by turns; more of them would not be faster."""


class TakesLong(Exception):
    """Haste was not enough."""


class Aside:
    """One line of those who wait for the thread; for one event loop."""

    def __init__(self, patience: timedelta | None = None) -> None:
        """`patience`: how long one waits for its turn; None: for as long as it takes."""
        self._free = asyncio.Semaphore(AT_ONCE)
        self._patience_s = patience.total_seconds() if patience is not None else None

    async def run(self, compute: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What `compute` returns or raises; it must be pure. Raises `TimeoutError` if its turn did
        not come in time.
        """
        async with asyncio.timeout(self._patience_s):
            await self._free.acquire()
        work = asyncio.create_task(asyncio.to_thread(compute, *args, **kwargs), name="aside")
        work.add_done_callback(self._done)
        return await asyncio.shield(work)

    def _done(self, work: "asyncio.Task[Any]") -> None:
        """Only now: a thread can't be stopped, so who gave up still has it."""
        self._free.release()
        if not work.cancelled():
            work.exception()  # heard, also where nobody waits for it any more

"""How much of fan-outs a process has in hand at once, however many and however large they are."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from reminders.ports import Clock

PAGES = 4
"""Pages that are handed out at once: their subscribers are in memory."""
WAITING = 28
"""Pages that wait for that: each is a job taken, which leaves less room for others."""
LONGEST_WAIT = timedelta(seconds=4)
"""Then a page comes back later: an open entry holds its minute's watermark."""
UNSETTLED = 2_048
"""Deliveries under way, or not on record yet: what a crash now would repeat."""


class Room:
    """Bounds pages, sends and unsettled deliveries of all fan-outs together.

    A page is out of hand once its last send has begun, so one slow receiver holds its own place and
    not those of the page.
    """

    def __init__(self, clock: Clock, turn: Callable[[], Awaitable[None]]) -> None:
        """`turn`: returns when fan-outs may begin one more send."""
        self._clock = clock
        self._turn = turn
        self._pages = asyncio.Semaphore(PAGES)
        self._waiting = 0
        self._unsettled = asyncio.Semaphore(UNSETTLED)

    async def take_page(self) -> bool:
        """Whether a page may be handed out, after a short wait; then `give_page` has to follow."""
        if not self._pages.locked():
            return await self._pages.acquire()
        if self._waiting >= WAITING:
            return False
        self._waiting += 1
        try:
            return await self._taken_in_time()
        finally:
            self._waiting -= 1

    async def _taken_in_time(self) -> bool:
        taking = asyncio.create_task(self._pages.acquire(), name="dispatcher-page")
        until = self._clock.now() + LONGEST_WAIT
        waking = asyncio.create_task(self._clock.sleep_until(until), name="dispatcher-page-wait")
        try:
            await asyncio.wait((taking, waking), return_when=asyncio.FIRST_COMPLETED)
        except BaseException:
            if taking.done():
                self._pages.release()
            raise
        finally:
            waking.cancel()
            if not taking.done():
                taking.cancel()
        return taking.done()

    def give_page(self) -> None:
        """Its last send has begun."""
        self._pages.release()

    async def enter(self) -> None:
        """Returns when one more may be sent; then `settled` has to follow."""
        await self._unsettled.acquire()
        try:
            await self._turn()
        except BaseException:
            self._unsettled.release()
            raise

    def settled(self) -> None:
        """A delivery is on record, or will be by an entry of its own."""
        self._unsettled.release()

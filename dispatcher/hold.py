"""What is handed over ahead of its time waits here for the very instant."""

import asyncio
from datetime import datetime, timedelta

from reminders.alarms import Alarms
from reminders.ports import Clock

REFRESH_EVERY = timedelta(milliseconds=50)
"""While something is held. The worst of clocks drifts by a quarter of a millisecond meanwhile."""

LIKELY = timedelta(milliseconds=0.5)
"""By so much, at most, the reference is expected to be less sure than this machine's clock: waking
again for the rest of it would cost more than it is late.
"""


class Hold:
    """Lets go what it holds at its time, never early by the reference clock.

    Scanners claim a little ahead (`Limits.claim_ahead`), so that the hand-over is over when the
    time comes. The claim was checked by the reference itself, and so is this: it does not trust
    that this machine's clock runs as it should.
    """

    def __init__(self, clock: Clock, *, at_once: int) -> None:
        """`at_once`: of many that come due together, so many start before the loop has a turn."""
        self._clock = clock
        self._alarms: Alarms[tuple[datetime, asyncio.Future[None]]] = Alarms(
            clock, self._let_go, at_once=at_once
        )
        self._filled = asyncio.Event()

    async def until(self, at: datetime) -> None:
        """Returns when that time has surely come."""
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        unsure = self._clock.now() - self._clock.at_least()
        self._alarms.add(at + min(unsure, LIKELY), (at, gate))
        self._filled.set()
        await gate

    async def run(self) -> None:
        """For ever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._alarms.run(), name="hold-alarms")
            group.create_task(self._keep_sure(), name="hold-sure")

    async def _keep_sure(self) -> None:
        while True:
            if not self._alarms:
                self._filled.clear()
                await self._filled.wait()
            await self._clock.refresh()
            await self._clock.sleep_until(self._clock.now() + REFRESH_EVERY)

    def _let_go(self, held: tuple[datetime, "asyncio.Future[None]"]) -> None:
        at, gate = held
        if gate.done():  # its job was cancelled
            return
        short = at - self._clock.at_least()
        if short > timedelta(0):
            self._alarms.add(self._clock.now() + short, held)
        else:
            gate.set_result(None)

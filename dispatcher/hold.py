"""What is handed over ahead of its time waits here for the very instant."""

import asyncio
from datetime import datetime, timedelta

from msgspec import Struct

from reminders.alarms import Alarms
from reminders.ports import Clock

REFRESH_EVERY = timedelta(milliseconds=50)
"""While something is held. The worst of clocks drifts by a quarter of a millisecond meanwhile."""

LIKELY = timedelta(milliseconds=0.5)
"""By so much, at most, the reference is expected to be less sure than this machine's clock: waking
again for the rest of it would cost more than it is late.
"""


GRAIN = timedelta(milliseconds=4)
"""How late what need not be exact may be, so that some of it shares a wake."""


class _Held(Struct, frozen=True):
    """One job that waits."""

    at: datetime
    gate: asyncio.Future[None]
    alarms: "Alarms[_Held]"


class Hold:
    """Lets go what it holds at its time, never early by the reference clock.

    Scanners claim a little ahead (`Limits.claim_ahead`), so that the hand-over is over when the
    time comes. The claim was checked by the reference itself, and so is this: it does not trust
    that this machine's clock runs as it should.
    """

    def __init__(self, clock: Clock, *, at_once: int) -> None:
        """`at_once`: of many that come due together, so many start before the loop has a turn."""
        self._clock = clock
        self._exact: Alarms[_Held] = Alarms(clock, self._let_go, at_once=at_once)
        self._coarse: Alarms[_Held] = Alarms(clock, self._let_go, at_once=at_once, grain=GRAIN)
        self._filled = asyncio.Event()

    async def until(self, at: datetime, *, exact: bool = True) -> None:
        """Returns when that time has surely come; at once, or with others within `GRAIN`, which
        costs less CPU.
        """
        alarms = self._exact if exact else self._coarse
        held = _Held(at, asyncio.get_running_loop().create_future(), alarms)
        unsure = self._clock.now() - self._clock.at_least()
        alarms.add(at + min(unsure, LIKELY), held)
        self._filled.set()
        await held.gate

    async def run(self) -> None:
        """For ever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._exact.run(), name="hold-exact")
            group.create_task(self._coarse.run(), name="hold-coarse")
            group.create_task(self._keep_sure(), name="hold-sure")

    async def _keep_sure(self) -> None:
        while True:
            if not self._exact and not self._coarse:
                self._filled.clear()
                await self._filled.wait()
            await self._clock.refresh()
            await self._clock.sleep_until(self._clock.now() + REFRESH_EVERY)

    def _let_go(self, held: _Held) -> None:
        if held.gate.done():  # its job was cancelled
            return
        short = held.at - self._clock.at_least()
        if short > timedelta(0):
            held.alarms.add(self._clock.now() + short, held)
        else:
            held.gate.set_result(None)

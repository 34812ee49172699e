"""All services in one world on memory adapters: what is sent, is sent by the real dispatcher."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from dispatcher.channels.port import NOBODY, Destination, Outcome, Outgoing, Result
from dispatcher.service import Dispatcher
from dispatcher.settings import DispatcherSettings
from expander.expansion import Expansion
from expander.service import Expander
from reminders.model.definition import Channel
from reminders.model.ledger import LedgerRow
from tests.unit.lifecycle.world import World, running
from tests.unit.scanner.harness import scanner_of

OK = Result(outcome=Outcome.OK, acknowledged=True, status_code=200)


@dataclass
class Receiver:
    """Implements `ChannelSender`, for all kinds but webhooks: remembers what came, and when."""

    world: World
    came: dict[str, list[datetime]] = field(default_factory=lambda: defaultdict(list))
    """By occurrence id, of all reminders."""
    attempts: list[Outgoing] = field(default_factory=list)
    answer: Callable[[Outgoing], Result] = lambda _: OK
    on_send: Callable[[Outgoing], Awaitable[None]] | None = None

    def destination(self, channel: Channel) -> Destination:
        """Nobody is burdened."""
        del channel
        return NOBODY

    async def send(self, outgoing: Outgoing) -> Result:
        """As told."""
        if self.on_send is not None:
            await self.on_send(outgoing)
        self.attempts.append(outgoing)
        self.came[outgoing.occurrence.occurrence_id].append(self.world.now)
        return self.answer(outgoing)

    @property
    def ids(self) -> list[str]:
        """What came, once for each time, in local order."""
        return sorted(name for name, times in self.came.items() for _ in times)

    def late(self, after: datetime) -> timedelta:
        """By how much the latest of those promised from then on came after its time."""
        return max(
            (
                at - one.occurrence.fire_at
                for one in self.attempts
                for at in self.came[one.occurrence.occurrence_id]
                if one.occurrence.fire_at >= after
            ),
            default=timedelta(0),
        )


@asynccontextmanager
async def everything(world: World, made: type[Receiver] = Receiver) -> AsyncIterator[Receiver]:
    """A scanner, an expander and a dispatcher at work."""
    stop = asyncio.Event()
    receiver = made(world)
    dispatcher = Dispatcher(
        world.platform,
        DispatcherSettings(read_wait=timedelta(milliseconds=200)),
        world.reminders.changes.finish,
        world.reminders.backfills.turn,
        dict.fromkeys(("log", "email", "sms", "push"), receiver),
    )
    expander = Expander(world.platform, Expansion(world.platform, world.reminders))
    services = (scanner_of(world), expander, dispatcher)
    async with running(*(service.run(stop) for service in services)):
        await world.clock.run_until(world.now)
        yield receiver


def reasons(rows: list[LedgerRow]) -> dict[str, int]:
    """How many occurrences did not ring, by the ledger's reason; runs counted whole."""
    counts: dict[str, int] = defaultdict(int)
    for row in rows:
        if row.ended is not None:
            counts[row.reason] += row.skipped_count or 1
    return dict(counts)

"""Scanners that run in a world, with or without the rest, and what came of it."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

from expander.expansion import Expansion
from expander.service import Expander
from reminders.model.entry import DueEntry, EntryState, Kind
from reminders.model.ledger import OccurrenceStatus
from reminders.ports import ClaimAnswer, Copy
from scanner.lead import Lead
from scanner.metrics import Metrics
from scanner.reader import Reader
from scanner.service import Scanner
from scanner.timer import Timer
from tests.unit.lifecycle.world import World, behind_the_scenes


def scanner_of(world: World) -> Scanner:
    """A process of its own."""
    return Scanner(world.platform, world.reminders.changes.finish)


@asynccontextmanager
async def at_work(
    world: World, *scanners: Scanner, dispatch: bool = True, expand: bool = True
) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Everything runs; the scanners' tasks, to let them die. What fails, fails the test."""
    stop = asyncio.Event()
    others: list[Coroutine[Any, Any, None]] = []
    if dispatch:
        others.append(world.dispatch_for_ever())
    if expand:
        others.append(
            Expander(world.platform, Expansion(world.platform, world.reminders)).run(stop)
        )
    tasks = [asyncio.create_task(scanner.run(stop)) for scanner in scanners]
    helpers = [asyncio.create_task(other) for other in others]
    await world.clock.run_until(world.now)
    try:
        yield tasks
        for task in (*tasks, *helpers):
            if task.done() and not task.cancelled():
                task.result()
    finally:
        for task in (*tasks, *helpers):
            task.cancel()
        await asyncio.gather(*tasks, *helpers, return_exceptions=True)


async def die(task: asyncio.Task[None]) -> None:
    """As by kill -9: nothing is released."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


class Claimed:
    """Counts the answers to claims."""

    def __init__(self, world: World) -> None:
        self.answers: list[tuple[datetime, str, ClaimAnswer]] = []
        """When, the dedupe id, what."""
        self.earliest = timedelta.max
        """How far from its time anything was claimed, at least."""
        claims = world.coordination.claims
        claim = claims.claim

        async def listen(shard: int, token: str, copies: list[Copy], **how: Any) -> Any:
            answers = await claim(shard, token, copies, **how)
            if isinstance(answers, list):
                self.answers += [
                    (world.now, copy.state.entry.dedupe_id, answer)
                    for copy, answer in zip(copies, answers, strict=True)
                ]
                for copy, answer in zip(copies, answers, strict=True):
                    if answer is ClaimAnswer.CLAIMED:
                        late_by = world.now - copy.state.entry.key.ring_at
                        self.earliest = min(self.earliest, late_by)
            return answers

        claims.claim = listen  # type: ignore[method-assign, assignment]

    def of(self, answer: ClaimAnswer) -> list[str]:
        """The dedupe ids that got it."""
        return [name for _, name, each in self.answers if each is answer]


async def a_lead(world: World, timer: Timer | None = None) -> Lead:
    """Of shard 0, as a scanner makes it."""
    await world.take_lease()
    timer = timer or Timer(world.clock)
    lead = Lead(
        0,
        "tester",
        trusted_until=world.now + timedelta(days=1),
        platform=world.platform,
        metrics=Metrics(),
        later=timer.again,
    )
    with behind_the_scenes():
        await Reader(world.platform, timer).open(lead)
    return lead


async def copy_of(world: World, entry: DueEntry) -> Copy:
    """As read now."""
    state = await world.state(entry)
    assert isinstance(state, EntryState)
    return Copy(state=state, read_at=world.now)


async def occurrence_states(world: World, reminder_id: str) -> list[EntryState]:
    """Without the entries that look after changes."""
    return [s for s in await world.entries(reminder_id) if s.entry.kind is Kind.OCCURRENCE]


async def reasons(world: World, reminder_id: str) -> dict[str, str]:
    """Why occurrences did not ring, by their local time."""
    rows = await world.ledger(reminder_id)
    return {
        row.occurrence.occurrence_id.partition("T")[2]: row.reason
        for row in rows
        if row.ended is OccurrenceStatus.SKIPPED
    }


async def put_unwatched(world: World, entry: DueEntry) -> None:
    """On disk, with nobody told."""
    with behind_the_scenes():
        await world.store.due.put([entry], stamp=1)


def rang_at(world: World, reminder_id: str) -> list[object]:
    """When a one-shot rang."""
    return [
        at for name, times in world.rung.items() for at in times if name.startswith(reminder_id)
    ]

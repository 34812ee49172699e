"""Updates, pauses and resumes amid claims, deliveries and expansions, interleaved from a seed.

Whatever the order: a rule that is updated rings each of its occurrences once and leaves none out;
of one that is paused and resumed, what did not ring is on record, and nothing is both.
"""

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from expander.expansion import Expansion
from reminders.errors import AlreadyFired, CoordinationUnavailable
from reminders.lifecycle import Changed
from reminders.model.codec import decode_entry
from reminders.model.definition import At
from reminders.model.record import Status
from tests.unit.lifecycle.model_scanner import ModelScanner
from tests.unit.lifecycle.test_changing_races import now_and_then, shuffled
from tests.unit.lifecycle.world import NOON, SECOND, World, behind_the_scenes, every

SEEDS = range(60)
EVERY_TEN = every("FREQ=SECONDLY;INTERVAL=10")


class Busy:
    """A rule every ten seconds, with all that works on it."""

    def __init__(self, world: World, reminder_id: str) -> None:
        self.world = world
        self.reminder_id = reminder_id
        self.scanner = ModelScanner(world, reminder_id)
        self.expansion = Expansion(world.platform, world.reminders)

    @classmethod
    async def made(cls) -> "Busy":
        """At noon, when its first occurrence is due."""
        world = await World.led()
        busy = cls(world, await world.create(EVERY_TEN))
        world.clock.advance(timedelta(milliseconds=1))
        await busy.scanner.read()
        return busy

    async def expand(self) -> None:
        """What was handed on to the expanders."""
        with behind_the_scenes():
            jobs = await self.world.coordination.fires.read("e", [0], count=5, wait=timedelta(0))
        for job in jobs:
            await self.expansion.expand(decode_entry(job.raw))

    async def amid(self, chance: Any, *work: Any) -> None:
        """Works on it while the work goes on."""

        async def pass_time() -> None:
            self.world.clock.advance(chance.randrange(12) * SECOND)

        await asyncio.gather(
            *work,
            now_and_then(chance, 5, pass_time),
            now_and_then(chance, 6, self.scanner.ring),
            now_and_then(chance, 6, self.scanner.read),
            now_and_then(chance, 6, self.expand),
            now_and_then(chance, 6, self.expand),
            now_and_then(chance, 4, self.world.dispatch),
        )

    async def afterwards(self, seconds: int = 200) -> None:
        """All goes its way, nobody in between."""
        self.world.on_point = None
        for _ in range(seconds // 10):
            self.world.clock.advance(10 * SECOND)
            await self.scanner.everything()
            await self.expand()

    @property
    def rung(self) -> dict[str, int]:
        """How often each occurrence rang."""
        return {name.rpartition(".")[2]: len(times) for name, times in self.world.rung.items()}


def named(seconds: int) -> str:
    """The occurrence so long after noon."""
    return (NOON + seconds * SECOND).strftime("%Y%m%dT%H%M%S")


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_rule_that_is_updated_amid_all_rings_each_occurrence_once(seed: int) -> None:
    """Several updates, at any moment; in the end with the last one's content."""
    busy = await Busy.made()
    chance = shuffled(busy.world, seed)
    answers: list[Changed] = []

    async def update(number: int) -> None:
        for _ in range(chance.randrange(200)):
            await asyncio.sleep(0)
        answers.append(await busy.world.update(busy.reminder_id, template_id=f"t{number}"))

    await busy.amid(chance, *(update(number) for number in range(chance.randrange(1, 4))))
    await busy.afterwards()
    rung = busy.rung
    assert set(rung.values()) == {1}, rung
    assert sorted(rung) == [named(10 * each) for each in range(len(rung))]
    assert len(rung) >= 20
    for changed in answers:
        assert all(rung[each.occurrence_id] == 1 for each in changed.answers)


@pytest.mark.parametrize("seed", SEEDS)
async def test_of_a_rule_that_is_paused_and_resumed_amid_all_nothing_is_lost_or_doubled(
    seed: int,
) -> None:
    """Each occurrence rang once, or is in a row of what was skipped in the pause."""
    busy = await Busy.made()
    chance = shuffled(busy.world, seed)
    paused: list[Changed] = []

    async def pause_and_resume() -> None:
        for _ in range(chance.randrange(200)):
            await asyncio.sleep(0)
        paused.append(await busy.world.pause(busy.reminder_id, "x"))
        busy.scanner.first_claims.clear()
        for _ in range(chance.randrange(200)):
            await asyncio.sleep(0)
        assert busy.scanner.first_claims == []
        await busy.world.resume(busy.reminder_id)

    await busy.amid(chance, pause_and_resume())
    await busy.afterwards()
    rung = busy.rung
    assert set(rung.values()) == {1}, rung
    skipped: list[str] = []
    for row in await busy.world.ledger(busy.reminder_id):
        if row.ended is not None:
            first = (row.occurrence.planned_at - NOON) // SECOND
            skipped += [named(first + 10 * each) for each in range(row.skipped_count)]
    assert not set(skipped) & set(rung)
    everything = sorted({*skipped, *rung})
    assert everything == [named(10 * each) for each in range(len(everything))]
    for answer in paused[0].answers:
        assert not answer.was_fired or rung[answer.occurrence_id] == 1


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_one_shot_that_is_changed_in_all_ways_while_it_is_claimed_agrees(
    seed: int,
) -> None:
    """Updates, pauses and resumes against its claim: it rings once, or stays paused and silent."""
    world = await World.led()
    reminder_id = await world.create(At(instant=NOON))
    scanner = ModelScanner(world, reminder_id)
    world.clock.advance(timedelta(milliseconds=1))
    await scanner.read()
    chance = shuffled(world, seed)

    async def tolerant(call: Any) -> None:
        with suppress(AlreadyFired, CoordinationUnavailable):
            await call

    calls = [
        world.pause(reminder_id, "x"),
        world.update(reminder_id, template_id="t"),
        world.resume(reminder_id),
        world.pause(reminder_id, "y"),
    ]
    chance.shuffle(calls)
    await asyncio.gather(
        *map(tolerant, calls),
        now_and_then(chance, 3, scanner.ring),
        now_and_then(chance, 3, scanner.read),
        now_and_then(chance, 3, world.dispatch),
        now_and_then(chance, 2, lambda: world.reminders.get("ns", reminder_id)),
    )
    world.on_point = None
    for _ in range(20):
        world.clock.advance(20 * SECOND)
        await scanner.everything()
        await scanner.read()
    stored = await world.stored(reminder_id)
    assert stored.change is None
    assert len(world.rings) == int(stored.record.status is not Status.PAUSED)

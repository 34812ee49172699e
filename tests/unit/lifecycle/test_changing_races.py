"""Changes, claims, deliveries and expansions in random interleavings, each from a seed.

Every step of everybody may be overtaken by everybody else. Whatever the order: a caller who was
told "not fired" never sees that occurrence ring, one who was told "fired" sees it ring once, and
what stands in the end rings once.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from expander.expansion import Expansion
from reminders.errors import AlreadyEnded, AlreadyFired, CoordinationUnavailable
from reminders.lifecycle import Changed
from reminders.model.codec import decode_entry
from reminders.model.definition import At
from reminders.model.record import Status
from tests.unit.lifecycle.model_scanner import ModelScanner
from tests.unit.lifecycle.world import NOON, SECOND, World, behind_the_scenes, every

SEEDS = range(60)


def shuffled(world: World, seed: int) -> random.Random:
    """Lets others run at any point, for a random while."""
    chance = random.Random(seed)

    async def point(_: str) -> None:
        for _turn in range(chance.choice((0, 0, 1, 2, 5))):
            await asyncio.sleep(0)

    world.on_point = point
    return chance


async def now_and_then(
    chance: random.Random, times: int, work: Callable[[], Awaitable[Any]]
) -> None:
    """The work, so many times, with pauses."""
    for _ in range(times):
        for _ in range(chance.randrange(30)):
            await asyncio.sleep(0)
        await work()


def told(answers: list[Changed], refused: list[Exception]) -> Callable[..., Awaitable[None]]:
    """Calls, and keeps what was answered."""

    async def call(change: Awaitable[Changed]) -> None:
        try:
            answers.append(await change)
        except (AlreadyFired, AlreadyEnded, CoordinationUnavailable) as error:
            refused.append(error)

    return call


async def afterwards(world: World, scanner: ModelScanner, seconds: int = 400) -> None:
    """Everything comes due and is claimed, late copies included."""
    world.on_point = None
    for _ in range(seconds // 20):
        world.clock.advance(20 * SECOND)
        await scanner.everything()


@pytest.mark.parametrize("seed", SEEDS)
async def test_concurrent_changes_of_a_one_shot_and_its_claim_agree(seed: int) -> None:
    """Reschedules to times of their own, perhaps a cancel, while the first is being claimed."""
    world = await World.led()
    reminder_id = await world.create(At(instant=NOON))
    scanner = ModelScanner(world, reminder_id)
    world.clock.advance(timedelta(milliseconds=1))
    await scanner.read()
    chance = shuffled(world, seed)
    answers: list[Changed] = []
    refused: list[Exception] = []
    call = told(answers, refused)
    changes = [
        call(world.reschedule(reminder_id, At(instant=NOON + (10 + 10 * n) * SECOND)))
        for n in range(chance.randrange(1, 4))
    ]
    if chance.random() < 0.5:
        changes.append(call(world.cancel(reminder_id)))
    await asyncio.gather(
        *changes,
        now_and_then(chance, 3, scanner.ring),
        now_and_then(chance, 3, scanner.read),
        now_and_then(chance, 3, world.dispatch),
        now_and_then(chance, 2, lambda: world.reminders.get("ns", reminder_id)),
    )
    await afterwards(world, scanner)
    stored = await world.stored(reminder_id)
    assert stored.change is None
    counts = {name.rpartition(".")[2]: len(times) for name, times in world.rung.items()}
    assert set(counts.values()) <= {1}, counts
    for changed in answers:
        for answer in changed.answers:
            assert counts.get(answer.occurrence_id, 0) == int(answer.was_fired), (answer, counts)
    expected = 0 if stored.record.status is Status.CANCELLED else 1
    assert len(counts) == expected, (counts, stored.record.status, refused)
    if any(isinstance(error, AlreadyFired) for error in refused):
        assert counts.keys() == {"20260601T120000Z"} or not counts


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_rule_that_is_cancelled_amid_expansions_falls_silent(seed: int) -> None:
    """After the answer nothing is claimed for the first time; what was not fired never rings."""
    world = await World.led()
    reminder_id = await world.create(every("FREQ=SECONDLY;INTERVAL=10"))
    scanner = ModelScanner(world, reminder_id)
    expansion = Expansion(world.platform, world.reminders)
    world.clock.advance(timedelta(milliseconds=1))
    await scanner.read()
    chance = shuffled(world, seed)

    async def expand() -> None:
        with behind_the_scenes():
            jobs = await world.coordination.fires.read("e", [0], count=5, wait=timedelta(0))
        for job in jobs:
            await expansion.expand(decode_entry(job.raw))

    async def pass_time() -> None:
        world.clock.advance(chance.randrange(12) * SECOND)

    cancelled: list[Changed] = []

    async def cancel() -> None:
        for _ in range(chance.randrange(200)):
            await asyncio.sleep(0)
        cancelled.append(await world.cancel(reminder_id))
        scanner.first_claims.clear()

    await asyncio.gather(
        cancel(),
        now_and_then(chance, 6, pass_time),
        now_and_then(chance, 6, scanner.ring),
        now_and_then(chance, 6, scanner.read),
        now_and_then(chance, 6, expand),
        now_and_then(chance, 6, expand),
        now_and_then(chance, 4, world.dispatch),
    )
    await afterwards(world, scanner)
    (changed,) = cancelled
    assert scanner.first_claims == []
    counts = {name.rpartition(".")[2]: len(times) for name, times in world.rung.items()}
    assert set(counts.values()) <= {1}, counts
    for answer in changed.answers:
        assert counts.get(answer.occurrence_id, 0) == int(answer.was_fired), (answer, counts)


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_rule_that_is_rescheduled_amid_expansions_rings_its_new_times_only(
    seed: int,
) -> None:
    """From the answer on the new rule's occurrences ring, each once, and the rule goes on."""
    world = await World.led()
    reminder_id = await world.create(every("FREQ=SECONDLY;INTERVAL=10"))
    scanner = ModelScanner(world, reminder_id)
    expansion = Expansion(world.platform, world.reminders)
    await scanner.read()
    chance = shuffled(world, seed)

    async def expand() -> None:
        with behind_the_scenes():
            jobs = await world.coordination.fires.read("e", [0], count=5, wait=timedelta(0))
        for job in jobs:
            await expansion.expand(decode_entry(job.raw))

    start = (NOON + 3 * SECOND).replace(tzinfo=None)
    rule = every("FREQ=SECONDLY;INTERVAL=20", start_local=start)
    answers: list[Changed] = []

    async def reschedule() -> None:
        for _ in range(chance.randrange(100)):
            await asyncio.sleep(0)
        answers.append(await world.reschedule(reminder_id, rule))

    await asyncio.gather(
        reschedule(),
        now_and_then(chance, 4, scanner.ring),
        now_and_then(chance, 4, scanner.read),
        now_and_then(chance, 4, expand),
        now_and_then(chance, 3, world.dispatch),
    )
    world.on_point = None
    for _ in range(10):
        world.clock.advance(10 * SECOND)
        await scanner.everything()
        await expand()
    counts = {name.rpartition(".")[2]: len(times) for name, times in world.rung.items()}
    assert set(counts.values()) <= {1}, counts
    fired = {a.occurrence_id: a.was_fired for a in answers[0].answers}
    old = {name for name in counts if name.endswith("0")}
    assert {name for name, was_fired in fired.items() if was_fired} <= old
    assert not {name for name, was_fired in fired.items() if not was_fired} & old
    new = [f"20260601T12{at // 60:02}{at % 60:02}" for at in range(3, 100, 20)]
    assert sorted(set(counts) - old) == new

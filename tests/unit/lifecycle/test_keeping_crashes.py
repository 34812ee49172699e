"""An update, a pause or a resume dies at any step, and anybody finishes it.

These keep the promise, or put it off: whatever dies, an occurrence that stands rings exactly once,
one that was silenced does not, and what a resume passes over is in the ledger and does not ring.
"""

from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from reminders.model.definition import At
from reminders.model.record import Status
from tests.unit.lifecycle.model_scanner import ModelScanner
from tests.unit.lifecycle.support import Case, tolerant
from tests.unit.lifecycle.world import MINUTE, NOON, SECOND, World, every

DUE = At(instant=NOON)
NEAR = At(instant=NOON + 5 * SECOND)
FAR = At(instant=NOON + 10 * MINUTE)
RULE = every("FREQ=MINUTELY;INTERVAL=2;COUNT=2")


CASES = {
    "near": Case(NEAR),
    "due": Case(DUE),
    "claimed": Case(DUE, claimed=True),
    "delivered": Case(DUE, claimed=True, delivered=True),
    "far": Case(FAR),
    "rule": Case(RULE),
    "rule, one claimed": Case(RULE, claimed=True),
    "rule, one delivered": Case(RULE, claimed=True, delivered=True),
}
Change = Callable[[World, str], Awaitable[Any]]
UPDATE: Change = lambda world, name: world.update(name, template_id="t", request_id="r")  # noqa: E731
PAUSE: Change = lambda world, name: world.pause(name, "x", request_id="r")  # noqa: E731
RESUME: Change = lambda world, name: world.resume(name, request_id="s")  # noqa: E731


async def prepare(case: Case) -> tuple[World, ModelScanner, str]:
    """With a scanner that holds everything in its heap."""
    world = await World.led()
    reminder_id = await world.create(case.schedule)
    scanner = ModelScanner(world, reminder_id)
    world.clock.advance(timedelta(milliseconds=1))
    await scanner.read()
    if case.claimed:
        await world.claim((await world.stored(reminder_id)).current[0])
    if case.delivered:
        await world.dispatch()
    return world, scanner, reminder_id


async def live_through(world: World, scanner: ModelScanner) -> None:
    """Everything that was planned comes due, and voids leave Redis."""
    for seconds in (0, 5, 30, 40, 125, 200, 300, 600, 900):
        world.clock.move_to(max(world.now, NOON + seconds * SECOND))
        await scanner.everything()
        await scanner.read()


def rung(world: World) -> Counter[str]:
    """How often each occurrence rang."""
    return Counter(name.rpartition(".")[2] for name in world.rings)


def ids(case: Case) -> set[str]:
    """What it was to ring."""
    if case.schedule is RULE:
        return {"20260601T120000", "20260601T120200"}
    assert isinstance(case.schedule, At)
    return {case.schedule.instant.strftime("%Y%m%dT%H%M%SZ")}


FINISHERS: dict[str, Callable[[World, str, Change], Awaitable[Any]]] = {
    "get": lambda world, name, _: world.reminders.get("ns", name),
    "repeat": lambda world, name, change: tolerant(change(world, name)),
    "unavailable": lambda world, name, change: tolerant(change(world, name)),
}


async def at_every_step(
    case: str,
    change: Change,
    finisher: str,
    check: Callable[[World, str, object], Awaitable[None]],
    *,
    before: Change | None = None,
) -> None:
    """`before` goes well; `change` dies, or a server fails it, at one step after the other."""
    step = 0
    while True:
        world, scanner, reminder_id = await prepare(CASES[case])
        if before is not None:
            await before(world, reminder_id)
            world.clock.advance(SECOND)
        fail = world.unavailable_at if finisher == "unavailable" else world.dies_at
        failed = await fail(step, tolerant(change(world, reminder_id)))
        if finisher in FINISHERS:
            await FINISHERS[finisher](world, reminder_id, change)
        await live_through(world, scanner)
        assert (await world.stored(reminder_id)).change is None
        await check(world, reminder_id, (step, world.points))
        if not failed:
            break
        step += 1
    assert step > 8 or case in ("claimed", "delivered")


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("finisher", [*FINISHERS, "nobody"])
async def test_an_update_that_dies_at_any_step_rings_every_occurrence_once(
    case: str, finisher: str
) -> None:
    """Under the old version or the new one; where it was refused, under the old one."""

    async def check(world: World, _: str, what: object) -> None:
        assert rung(world) == Counter(ids(CASES[case])), what

    await at_every_step(case, UPDATE, finisher, check)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("finisher", [*FINISHERS, "nobody"])
async def test_a_pause_that_dies_at_any_step_silences_what_it_says(
    case: str, finisher: str
) -> None:
    """What it recorded as fired rings once, the rest never; died before it began, all rings."""

    async def check(world: World, reminder_id: str, what: object) -> None:
        record = (await world.stored(reminder_id)).record
        expected = ids(CASES[case])
        if record.outcomes:
            answers = record.outcomes[0].answers
            expected -= {each.occurrence_id for each in answers if not each.was_fired}
            assert record.status in (Status.PAUSED, Status.FIRED)
        assert rung(world) == Counter(expected), what

    await at_every_step(case, PAUSE, finisher, check)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("finisher", [*FINISHERS, "nobody"])
async def test_a_resume_that_dies_at_any_step_rings_what_it_kept(case: str, finisher: str) -> None:
    """A one-shot rings, at once where its time has passed; a rule rings what is still to come, as
    often as it has left, and has the rest in the ledger.
    """
    rule = CASES[case].schedule is RULE

    async def check(world: World, reminder_id: str, what: object) -> None:
        record = (await world.stored(reminder_id)).record
        rows = [row for row in await world.ledger(reminder_id) if row.ended is not None]
        if record.status is Status.PAUSED:
            paused = record.outcomes[-1].answers
            silent = {each.occurrence_id for each in paused if not each.was_fired}
            assert rung(world) == Counter(ids(CASES[case]) - silent), what
            return
        if not rule:
            assert rung(world) == Counter(ids(CASES[case])), what
            assert not rows
            return
        assert rung(world).total() == 2, what
        assert set(rung(world).values()) == {1}, what
        skipped = {row.occurrence.occurrence_id for row in rows}
        assert skipped == ({"20260601T120000"} if not CASES[case].claimed else set()), what
        assert not skipped & set(rung(world))

    await at_every_step(case, RESUME, finisher, check, before=PAUSE)


@pytest.mark.parametrize("case", ["near", "due", "rule", "rule, one claimed"])
@pytest.mark.parametrize("change", ["update", "pause"])
@pytest.mark.parametrize("led_again", [False, True])
async def test_redis_losing_everything_after_a_death_rings_nothing_twice(
    case: str, change: str, led_again: bool
) -> None:
    """Who finishes goes by what is on disk; in doubt it was fired, and rings."""
    step = 0
    while True:
        world, scanner, reminder_id = await prepare(CASES[case])
        call = {"update": UPDATE, "pause": PAUSE}[change]
        died = await world.dies_at(step, tolerant(call(world, reminder_id)))
        await world.dispatch()
        world.coordination.lose_everything()
        scanner.heap.clear()  # it is told MOVED
        if led_again:
            await world.take_lease()
        await world.reminders.changes.finish(reminder_id)
        await live_through(world, scanner)
        record = (await world.stored(reminder_id)).record
        expected = ids(CASES[case])
        if change == "pause" and record.outcomes:
            answers = record.outcomes[0].answers
            expected -= {each.occurrence_id for each in answers if not each.was_fired}
        assert rung(world) == Counter(expected), (step, world.points)
        if not died:
            break
        step += 1

"""A change dies at any step, and anybody finishes it: both see to the same promise.

Whatever is recorded in the end is what happens: an occurrence that was "not fired" never rings, one
that was "fired" rings exactly once; of a rescheduled one-shot exactly one time rings; and the
record does not stay `changing` once the finish entry has rung.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from reminders.model.definition import At, LocalTime, Policies
from reminders.model.entry import DueEntry
from reminders.model.record import Status
from reminders.recurrence import Overlap
from tests.unit.lifecycle.model_scanner import ModelScanner
from tests.unit.lifecycle.support import Case, tolerant
from tests.unit.lifecycle.world import (
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    Crash,
    World,
    behind_the_scenes,
    every,
)

NEW = At(instant=NOON + 40 * SECOND)
DUE = At(instant=NOON)
NEAR = At(instant=NOON + 5 * SECOND)
FAR = At(instant=NOON + 10 * MINUTE)
RULE = every("FREQ=MINUTELY;INTERVAL=2;COUNT=2")
TWICE = LocalTime(date="2026-10-25", time="02:30", zone="Europe/Paris")


CASES = {
    "near": Case(NEAR),
    "due": Case(DUE),
    "claimed": Case(DUE, claimed=True),
    "delivered": Case(DUE, claimed=True, delivered=True),
    "far": Case(FAR),
    "rule": Case(RULE),
    "rule, one claimed": Case(RULE, claimed=True),
}
CHANGES: dict[str, Callable[[World, str], Awaitable[Any]]] = {
    "cancel": lambda world, name: world.cancel(name, request_id="r"),
    "reschedule": lambda world, name: world.reschedule(name, NEW, request_id="r"),
}


async def prepare(case: Case) -> tuple[World, ModelScanner, str, tuple[DueEntry, ...]]:
    """With a scanner that holds everything in its heap."""
    world = await World.led()
    reminder_id = await world.create(case.schedule)
    entries = (await world.stored(reminder_id)).current
    scanner = ModelScanner(world, reminder_id)
    world.clock.advance(timedelta(milliseconds=1))
    await scanner.read()
    if case.claimed:
        await world.claim(entries[0])
    if case.delivered:
        await world.dispatch()
    return world, scanner, reminder_id, entries


async def live_through(world: World, scanner: ModelScanner) -> None:
    """Everything that was planned comes due, and voids leave Redis."""
    for seconds in (0, 5, 30, 40, 125, 200, 600, 900):
        world.clock.move_to(max(world.now, NOON + seconds * SECOND))
        await scanner.everything()


async def check(world: World, reminder_id: str, old: tuple[DueEntry, ...], what: object) -> None:
    """What is recorded is what happened."""
    stored = await world.stored(reminder_id)
    assert stored.change is None, what
    first = next((o for o in stored.record.outcomes if o.version == 2), None)
    ids = {entry.occurrence.occurrence_id: entry.dedupe_id for entry in old if entry.occurrence}
    new_id = f"{reminder_id}.{(NOON + 40 * SECOND).strftime('%Y%m%dT%H%M%SZ')}"
    expected = dict.fromkeys(ids.values(), 1) | {new_id: 0}
    if first is not None:
        expected |= {ids[answer.occurrence_id]: int(answer.was_fired) for answer in first.answers}
        expected[new_id] = int(first.applied and first.action == "reschedule")
    counts = {name: len(world.rung.get(name, ())) for name in expected}
    assert counts == expected, (what, first)
    assert set(world.rung) <= set(expected), what


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("finisher", ["get", "repeat", "nobody"])
async def test_a_change_that_dies_at_any_step_keeps_the_promise(
    case: str, change: str, finisher: str
) -> None:
    """Whoever finishes it: a read, a repeat, or nobody but the finish entry."""
    step = 0
    while True:
        world, scanner, reminder_id, old = await prepare(CASES[case])
        died = await world.dies_at(step, tolerant(CHANGES[change](world, reminder_id)))
        if finisher == "get":
            await world.reminders.get("ns", reminder_id)
        elif finisher == "repeat":
            await tolerant(CHANGES[change](world, reminder_id))
        await live_through(world, scanner)
        await check(world, reminder_id, old, (step, world.points))
        if not died:
            break
        step += 1
    assert step > 8


@pytest.mark.parametrize("case", ["due", "claimed", "rule, one claimed"])
@pytest.mark.parametrize("change", CHANGES)
async def test_a_change_whose_finisher_dies_as_well_keeps_the_promise(
    case: str, change: str
) -> None:
    """Two deaths at any two steps; then the finish entry."""
    first = 0
    while True:
        second = 0
        while True:
            world, scanner, reminder_id, old = await prepare(CASES[case])
            died = await world.dies_at(first, tolerant(CHANGES[change](world, reminder_id)))
            again = died and await world.dies_at(
                second, world.reminders.changes.finish(reminder_id)
            )
            await live_through(world, scanner)
            await check(world, reminder_id, old, (first, second))
            if not again:
                break
            second += 1
        if not died:
            break
        first += 1
    assert first > 8


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("change", CHANGES)
async def test_a_change_that_a_server_fails_at_any_step_keeps_the_promise(
    case: str, change: str
) -> None:
    """The caller repeats it until it is answered; the answer is what is recorded."""
    step = 0
    while True:
        world, scanner, reminder_id, old = await prepare(CASES[case])
        failed = await world.unavailable_at(step, tolerant(CHANGES[change](world, reminder_id)))
        await tolerant(CHANGES[change](world, reminder_id))
        await live_through(world, scanner)
        await check(world, reminder_id, old, step)
        if not failed:
            break
        step += 1


@pytest.mark.parametrize("case", ["near", "due", "claimed", "rule, one claimed"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(("dispatched", "led_again"), [(True, False), (True, True), (False, True)])
async def test_redis_losing_everything_after_a_death_keeps_the_promise(
    case: str, change: str, dispatched: bool, led_again: bool
) -> None:
    """It forgets claims and revocations; who finishes goes by what is on disk.

    Also where a scanner has made the empty server the shard's home, so that nobody is told.
    """
    step = 0
    while True:
        world, scanner, reminder_id, old = await prepare(CASES[case])
        died = await world.dies_at(step, tolerant(CHANGES[change](world, reminder_id)))
        if dispatched:
            await world.dispatch()
        world.coordination.lose_everything()
        scanner.heap.clear()  # it is told MOVED
        if led_again:
            await world.take_lease()
        await world.reminders.changes.finish(reminder_id)
        await live_through(world, scanner)
        await check(world, reminder_id, old, (step, world.points))
        if not died:
            break
        step += 1


@pytest.mark.parametrize("case", ["near", "due"])
async def test_who_finds_the_new_entries_written_does_not_doubt_the_old_time(case: str) -> None:
    """Somebody wrote them, who had asked before Redis lost everything, and died. The new time even
    rings before anybody comes back: in doubt, the old one would ring as well.
    """
    world, scanner, reminder_id, old = await prepare(CASES[case])
    step = next(i for i, point in enumerate(await _points("reschedule", case)) if "end" in point)
    await world.dies_at(step, tolerant(CHANGES["reschedule"](world, reminder_id)))
    world.coordination.lose_everything()
    scanner.heap.clear()
    world.clock.move_to(NOON + 40 * SECOND)
    await scanner.trail()
    await live_through(world, scanner)
    await check(world, reminder_id, old, world.points)
    assert len(world.rings) == 1


async def test_new_entries_written_after_the_change_was_refused_never_ring() -> None:
    """One who had found "not fired" stalls; Redis loses everything; another is in doubt, refuses
    and ends the change; then the first one writes the new entries, and dies before he can see that
    he lost.
    """
    world, scanner, reminder_id, old = await prepare(CASES["due"])

    async def meanwhile(point: str) -> None:
        if point == "records.add_live":
            world.coordination.lose_everything()
            scanner.heap.clear()
            with behind_the_scenes():
                await world.reminders.changes.finish(reminder_id)
        if point == "records.end":
            raise Crash

    world.on_point = meanwhile
    with pytest.raises(Crash):
        await CHANGES["reschedule"](world, reminder_id)
    world.on_point = None
    await live_through(world, scanner)
    await check(world, reminder_id, old, world.points)
    assert world.rings == [old[0].dedupe_id]


async def test_a_change_never_stays_in_progress_after_its_finish_entry_rang() -> None:
    """Died right after it began, far from any other entry of the reminder."""
    world, scanner, reminder_id, _ = await prepare(CASES["far"])
    step = next(
        i for i, point in enumerate(await _points("cancel", "far")) if point == "records.begin.done"
    )
    await world.dies_at(step, tolerant(world.cancel(reminder_id)))
    assert (await world.stored(reminder_id)).change is not None
    world.clock.move_to(NOON + MINUTE)
    await scanner.everything()
    stored = await world.stored(reminder_id)
    assert (stored.change, stored.record.status) == (None, Status.CANCELLED)


async def test_of_a_time_that_rings_twice_each_is_answered_for(world: World) -> None:
    """Died anywhere after the first pass was claimed: it rings, the second does not."""
    step = 0
    while True:
        start = NOON.replace(month=10, day=25, hour=0, minute=30)
        world = await World.led(start=start)
        reminder_id = await world.create(TWICE, policies=Policies(overlap=Overlap.BOTH))
        first, second = (await world.stored(reminder_id)).current
        await world.claim(first)
        died = await world.dies_at(step, tolerant(world.cancel(reminder_id)))
        changed = await world.cancel(reminder_id)
        assert [answer.was_fired for answer in changed.answers] == [True, False]
        scanner = ModelScanner(world, reminder_id)
        for wait in (MINUTE, HOUR, HOUR):
            world.clock.advance(wait)
            await scanner.everything()
        assert world.rings == [first.dedupe_id]
        assert second.key.ring_at < world.now
        if not died:
            break
        step += 1


async def _points(change: str, case: str) -> list[str]:
    world, _, reminder_id, _ = await prepare(CASES[case])
    before = len(world.points)
    await CHANGES[change](world, reminder_id)
    return world.points[before:]

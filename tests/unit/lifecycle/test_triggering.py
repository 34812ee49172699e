"""A trigger rings once, beside the schedule, which does not notice."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from expander.expansion import Expanded, Expansion
from reminders.errors import AlreadyEnded, AlreadyFired, NotFound, NotReady, TocsinError
from reminders.lifecycle import OccurrenceView
from reminders.lifecycle.requests import Call
from reminders.model.codec import decode_body
from reminders.model.definition import At, Policies
from reminders.model.entry import DueEntry, Fate, Kind, Origin
from reminders.model.ledger import OccurrenceStatus
from reminders.model.record import Status
from reminders.ports import ClaimAnswer
from tests.unit.lifecycle.model_scanner import ModelScanner
from tests.unit.lifecycle.world import (
    DAY,
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    Crash,
    World,
    behind_the_scenes,
    every,
)

MS = timedelta(milliseconds=1)
KEY = "20260601T120000Z"


async def trigger(world: World, name: str, request_id: str | None = None) -> OccurrenceView:
    """As the edge calls it."""
    return await world.reminders.trigger("ns", name, request_id=request_id)


async def triggered(world: World, name: str) -> list[DueEntry]:
    """The due entries of triggers."""
    return [
        state.entry
        for state in await world.entries(name)
        if state.entry.occurrence and state.entry.occurrence.origin is Origin.TRIGGER
    ]


async def rings_of(world: World, name: str, scanner: ModelScanner | None = None) -> list[str]:
    """What rings if everything runs; by occurrence id."""
    scanner = scanner or ModelScanner(world, name)
    world.clock.advance(SECOND)
    await scanner.read()
    await scanner.everything()
    return [ring.partition(".")[2] for ring in world.rings]


# --- one ring -------------------------------------------------------------------------------------


async def test_it_rings_once_now_and_is_on_record_as_a_trigger(world: World) -> None:
    """Durable when answered: record, live entry, due entry; found through a hint."""
    name = await world.create(every("FREQ=DAILY", start_local=NOON.replace(tzinfo=None, hour=18)))
    answer = await trigger(world, name)
    assert (answer.occurrence.occurrence_id, answer.status) == (KEY, OccurrenceStatus.PLANNED)
    assert answer.occurrence.origin is Origin.TRIGGER
    with behind_the_scenes():
        heard = await world.coordination.hints.tail({0: "0-0"}, wait=timedelta(0))
    assert len(heard[0]) == 1
    assert await rings_of(world, name) == [KEY]
    (row,) = await world.ledger(name)
    assert row.occurrence.origin is Origin.TRIGGER


async def test_two_triggers_without_an_id_ring_twice(world: World) -> None:
    """Also in the same millisecond, also at the same time."""
    name = await world.create(every("FREQ=DAILY", start_local=NOON.replace(tzinfo=None, hour=18)))
    answers = await asyncio.gather(*(trigger(world, name) for _ in range(5)))
    ids = sorted(answer.occurrence.occurrence_id for answer in answers)
    assert ids == [f"20260601T120000.00{n}Z" if n else KEY for n in (1, 2, 3, 4, 0)]
    assert sorted(await rings_of(world, name)) == ids


async def test_a_repeat_of_a_request_answers_the_same_occurrence(world: World) -> None:
    """Before it rang, after it rang, and days later."""
    name = await world.create(At(instant=NOON + 30 * DAY))
    first = await trigger(world, name, "r")
    assert (await trigger(world, name, "r")).occurrence == first.occurrence
    assert await rings_of(world, name) == [KEY]
    world.clock.advance(5 * DAY)
    again = await trigger(world, name, "r")
    assert (again.occurrence, again.status) == (first.occurrence, OccurrenceStatus.COMPLETED)
    assert (await trigger(world, name, "other")).occurrence != first.occurrence
    assert len(await rings_of(world, name)) == 2


async def test_the_same_id_for_two_reminders_rings_both(world: World) -> None:
    """An id belongs to a call, and a call to a reminder; a create may have it as well."""
    names = [
        await world.create(At(instant=NOON + 30 * DAY), request_id=request_id)
        for request_id in ("r", "s")
    ]
    for name in names:
        await trigger(world, name, "r")
    for name in names:
        await rings_of(world, name)
    assert sorted(world.rings) == sorted(f"{name}.{KEY}" for name in names)


async def test_a_one_shot_of_the_same_instant_is_another_ring(world: World) -> None:
    """Both rang at noon; the keys of their deliveries must differ."""
    name = await world.create(At(instant=NOON))
    assert (await trigger(world, name)).occurrence.occurrence_id == "20260601T120000.001Z"
    assert sorted(await rings_of(world, name)) == ["20260601T120000.001Z", KEY]


async def test_its_one_shot_may_have_fired_long_ago(world: World) -> None:
    """It is asked for now, and expires as from now; the same instant is not taken twice."""
    name = await world.create(At(instant=NOON))
    await rings_of(world, name)
    world.clock.advance(10 * DAY)
    await trigger(world, name)
    (entry,) = await triggered(world, name)
    assert decode_body(entry.body).expire_after == Policies().expire_after
    assert len(await rings_of(world, name)) == 2
    assert (await world.reminders.get("ns", name)).status is Status.FIRED


@pytest.mark.parametrize("way", ["cancel", "unknown", "elsewhere", "clock"])
async def test_what_can_not_be_triggered_is_refused_and_writes_nothing(
    world: World, way: str
) -> None:
    """Cancelled, not there, somebody else's; or our clock is not to be trusted."""
    name = await world.create(At(instant=NOON + HOUR))
    await world.cancel(name)
    world.clock.bounds = way != "clock"
    errors: dict[str, type[TocsinError]] = {"cancel": AlreadyEnded, "clock": NotReady}
    for request_id in (None, "r"):
        with pytest.raises(errors.get(way, NotFound)):
            await world.reminders.trigger(
                "other" if way == "elsewhere" else "ns",
                "r-unknown" if way == "unknown" else name,
                request_id=request_id,
            )
    assert await triggered(world, name) == []


# --- the schedule does not notice -----------------------------------------------------------------


async def test_a_rule_goes_on_unchanged(world: World) -> None:
    """Triggers before and between expansions: COUNT, order and what is ahead stay as they are."""
    expansion = Expansion(world.platform, world.reminders)
    plain, disturbed = [await world.create(every("FREQ=MINUTELY;COUNT=6")) for _ in range(2)]
    for minute in range(7):
        for name in (plain, disturbed):
            for _ in range(3 if name == disturbed else 0):
                await trigger(world, name)
            due = [e for e in (await world.stored(name)).current if e.key.ring_at <= world.now]
            for entry in due[-1:]:
                await world.claim(entry)
                await world.dispatch()
                result = await expansion.expand(entry)
                assert result is (Expanded.WRITTEN if minute < 4 else Expanded.ENDED)
        views = [await world.reminders.get("ns", name) for name in (plain, disturbed)]
        assert [[e.occurrence for e in view.ahead] for view in views[:1]] == [
            [e.occurrence for e in view.ahead] for view in views[1:]
        ]
        stored = [await world.stored(name) for name in (plain, disturbed)]
        assert len(stored[0].live) == len(stored[1].live)
        world.clock.advance(MINUTE)
    assert len([ring for ring in world.rings if ring.startswith(plain)]) == 6
    rung = [ring for ring in world.rings if ring.startswith(disturbed)]
    assert len(rung) == 6  # the triggers wait: nobody claimed them
    await rings_of(world, disturbed)
    assert len([ring for ring in world.rings if ring.startswith(disturbed)]) == 6 + 21


async def test_live_entries_of_triggers_that_rang_do_not_pile_up(world: World) -> None:
    """The next trigger drops them; one that is under way is kept, a cancel must see it."""
    name = await world.create(every("FREQ=DAILY", start_local=NOON.replace(tzinfo=None, hour=18)))
    for _ in range(3):
        await trigger(world, name)
        await rings_of(world, name)
    await trigger(world, name)
    await trigger(world, name)
    with behind_the_scenes():
        beside = await world.store.records.beside(name)
    assert len(beside) == 2


async def test_a_list_shows_what_is_planned_not_what_was_triggered(world: World) -> None:
    """Neither the user's pending ones nor what is ahead."""
    name = await world.create(At(instant=NOON + HOUR))
    await trigger(world, name)
    page, total, _ = await world.reminders.pending("ns", "ann", limit=5, token="")
    assert (total, len(page.items[0].ahead)) == (1, 1)


# --- changes --------------------------------------------------------------------------------------


async def test_a_cancel_right_after_it_sees_it(world: World) -> None:
    """A rule far ahead, so that Redis would not be asked but for the trigger. The scanner holds
    its copy, and is refused.
    """
    name = await world.create(every("FREQ=DAILY", start_local=NOON.replace(tzinfo=None, hour=18)))
    await trigger(world, name)
    scanner = ModelScanner(world, name)
    await scanner.read()
    changed = await world.cancel(name)
    told = {a.occurrence_id: a.was_fired for a in changed.answers}
    assert (changed.was_fired, told[KEY]) == (False, False)
    assert await rings_of(world, name, scanner) == []


async def test_a_cancel_is_told_of_a_claimed_one(world: World) -> None:
    """It rings, and the schedule does not."""
    name = await world.create(every("FREQ=DAILY", start_local=NOON.replace(tzinfo=None, hour=18)))
    await trigger(world, name)
    (entry,) = await triggered(world, name)
    assert await world.claim(entry) is ClaimAnswer.CLAIMED
    changed = await world.cancel(name)
    assert [a.occurrence_id for a in changed.answers if a.was_fired] == [KEY]
    assert await rings_of(world, name) == [KEY]


async def test_a_pause_silences_it_and_says_so(world: World) -> None:
    """Repeated after the pause, its request answers that it was cancelled."""
    name = await world.create(every("FREQ=DAILY", start_local=NOON.replace(tzinfo=None, hour=18)))
    await trigger(world, name, "r")
    paused = await pause(world, name)
    assert [a.was_fired for a in paused.answers if a.occurrence_id == KEY] == [False]
    assert (await trigger(world, name, "r")).status is OccurrenceStatus.CANCELLED
    assert await rings_of(world, name) == []


async def pause(world: World, name: str) -> Any:
    """As the edge calls it."""
    return await world.reminders.pause(Call(namespace="ns", reminder_id=name), "")


async def test_a_paused_reminder_may_be_triggered(world: World) -> None:
    """It rings this once, and stays silent otherwise."""
    name = await world.create(every("FREQ=MINUTELY"))
    await pause(world, name)
    await trigger(world, name)
    world.clock.advance(5 * MINUTE)
    assert await rings_of(world, name) == [KEY]
    assert (await world.stored(name)).record.status is Status.PAUSED


@pytest.mark.parametrize("schedule", ["rule", "one-shot", "fired one-shot"])
async def test_another_schedule_lets_it_ring_all_the_same(world: World, schedule: str) -> None:
    """Carried over into the new version, also where the change is refused."""
    name = await world.create(
        every("FREQ=DAILY", start_local=NOON.replace(tzinfo=None, hour=18))
        if schedule == "rule"
        else At(instant=NOON + (HOUR if schedule == "one-shot" else timedelta(0)))
    )
    rung = await rings_of(world, name)
    await trigger(world, name, "r")
    scanner = ModelScanner(world, name)
    await scanner.read()
    refused = (AlreadyFired,) if schedule == "fired one-shot" else ()
    with suppress(*refused):
        changed = await world.reschedule(name, At(instant=NOON + 2 * HOUR))
        assert [a.occurrence_id for a in changed.answers if a.occurrence_id.endswith("01Z")] == []
    await trigger(world, name, "r")
    assert len(await rings_of(world, name, scanner)) == len(rung) + 1
    states = await world.entries(name)
    old = [s for s in states if s.entry.version == 1 and s.entry.key.ring_at == NOON + SECOND]
    assert [s.fate for s in old] == [Fate.VOID]
    assert (await world.stored(name)).record.version == 2


async def test_whether_a_one_shot_may_be_moved_does_not_depend_on_its_triggers(
    world: World,
) -> None:
    """One that has fired may not, though a trigger has not; one that has not may, though it has."""
    fired = await world.create(At(instant=NOON))
    await rings_of(world, fired)
    await trigger(world, fired)
    with pytest.raises(AlreadyFired):
        await world.reschedule(fired, At(instant=NOON + HOUR))
    ahead = await world.create(At(instant=NOON + HOUR))
    await trigger(world, ahead)
    (entry,) = await triggered(world, ahead)
    await world.claim(entry)
    assert (await world.reschedule(ahead, At(instant=NOON + 2 * HOUR))).view.record.version == 2


# --- faults ---------------------------------------------------------------------------------------


async def test_a_trigger_that_died_anywhere_rings_once_when_repeated() -> None:
    """At every step, by its request id; and at once, or after its minute was settled."""
    step = 0
    while True:
        world = await World.led()
        name = await world.create(
            every("FREQ=DAILY", start_local=NOON.replace(tzinfo=None, hour=18))
        )
        died = await world.dies_at(step, trigger(world, name, "r"))
        if step % 2:
            await rings_of(world, name)
            world.clock.advance(10 * MINUTE)
        answer = await trigger(world, name, "r")
        await rings_of(world, name)
        assert await rings_of(world, name) == [answer.occurrence.occurrence_id], step
        if not died:
            break
        step += 1
    assert step > 10


@pytest.mark.parametrize("change", ["cancel", "pause", "reschedule"])
async def test_a_change_at_any_step_either_sees_it_or_is_seen(change: str) -> None:
    """What was answered as not fired stays silent, and its call is told so; else it rings."""
    step = 0
    while True:
        world = await World.led()
        name = await world.create(
            every("FREQ=DAILY", start_local=NOON.replace(tzinfo=None, hour=18))
        )
        scanner = ModelScanner(world, name)
        passed = {"points": 0, "changed": False}
        changed: list[Any] = []

        async def point(_: str, world: World = world, name: str = name,
                        scanner: ModelScanner = scanner, passed: dict[str, Any] = passed,
                        changed: list[Any] = changed, step: int = step) -> None:  # fmt: skip
            passed["points"] += 1
            if passed["points"] == step + 1:
                passed["changed"] = True
                with behind_the_scenes():
                    await scanner.read()
                    if change == "cancel":
                        changed.append(await world.cancel(name))
                    elif change == "pause":
                        changed.append(await pause(world, name))
                    else:
                        changed.append(await world.reschedule(name, At(instant=NOON + DAY)))

        world.on_point = point
        answer = None
        with suppress(AlreadyEnded):
            answer = await trigger(world, name, "r")
        world.on_point = None
        if not passed["changed"]:
            break
        silenced = {a.occurrence_id for a in changed[0].answers if not a.was_fired}
        rung = await rings_of(world, name, scanner)
        assert not silenced & set(rung), (step, rung)
        if answer is None:
            assert rung == []
        elif answer.occurrence.occurrence_id in silenced:
            assert change != "reschedule"
        else:
            assert rung == [answer.occurrence.occurrence_id], step
        step += 1
    assert step > 10


async def test_an_unanswered_trigger_does_not_ring_days_later(world: World) -> None:
    """It died after its live entry; the next change finds that, and leaves it alone."""
    name = await world.create(every("FREQ=DAILY", start_local=NOON.replace(tzinfo=None, hour=18)))

    async def die(point: str) -> None:
        if point == "records.add_live.done":
            raise Crash

    world.on_point = die
    with pytest.raises(Crash):
        await trigger(world, name)
    world.on_point = None
    assert len(await triggered_live(world, name)) == 1
    assert await triggered(world, name) == []
    world.clock.advance(HOUR)
    changed = await world.reschedule(name, At(instant=NOON + DAY))
    assert [a.occurrence_id for a in changed.answers if a.occurrence_id.endswith("Z")] == []
    assert await rings_of(world, name) == []


async def triggered_live(world: World, name: str) -> tuple[DueEntry, ...]:
    """The live entries of triggers."""
    with behind_the_scenes():
        return await world.store.records.beside(name)


async def test_a_late_writer_moves_it(world: World) -> None:
    """Its minute was settled while the write was held up; it rings now, and once."""
    name = await world.create(every("FREQ=DAILY", start_local=NOON.replace(tzinfo=None, hour=18)))

    async def stall(point: str) -> None:
        if point == "due.put":
            world.on_point = None
            world.clock.advance(10 * MINUTE)

    world.on_point = stall
    await trigger(world, name)
    places = [e.key.ring_at for e in await triggered(world, name)]
    assert places == [NOON, NOON + 10 * MINUTE]
    assert await rings_of(world, name) == [KEY]
    assert all(e.kind is Kind.OCCURRENCE for e in await triggered_live(world, name))

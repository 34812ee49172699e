"""A backfill is asked for, and its pages are turned: what it names, and crashes at every step."""

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from reminders.errors import (
    AlreadyEnded,
    KeyConflict,
    NotFound,
    NotReady,
    NotRecurring,
    ReminderPaused,
)
from reminders.lifecycle import Backfilled, backfilling
from reminders.lifecycle.requests import Call
from reminders.model.definition import At, Policies
from reminders.model.entry import DueEntry, Kind, Origin
from reminders.recurrence import MissingDay
from tests.unit.lifecycle.model_scanner import ModelScanner
from tests.unit.lifecycle.world import (
    DAY,
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    World,
    behind_the_scenes,
    every,
)

DAILY = every("FREQ=DAILY")


async def backfill(world: World, name: str, start: datetime, **options: Any) -> Backfilled:
    """As the edge calls it."""
    given: dict[str, Any] = {"end": None, "validate_only": False, "request_id": None} | options
    return await world.reminders.backfill("ns", name, start=start, **given)


async def pages(world: World, name: str) -> list[DueEntry]:
    """The entries of pages."""
    return [s.entry for s in await world.entries(name) if s.entry.kind is Kind.BACKFILL]


async def past(
    world: World, schedule: Any = DAILY, *, span: timedelta = 10 * DAY, **changes: Any
) -> str:
    """A rule with so much behind it. Its two planned ones are far in the past as well: nobody has
    rung them; a live entry far ahead says that the rule has gone on.
    """
    name = await world.create(schedule, **changes)
    world.clock.advance(span)
    stored = await world.stored(name)
    last = stored.current[-1]
    with behind_the_scenes():
        for entry in stored.current:
            await world.store.due.handled([entry], at=world.now)
        for _ in range(1000):
            ahead = world.reminders.planner.following(stored.record, [last])
            if not ahead:
                break
            last = ahead[0]
            if last.key.ring_at > world.now:
                break
        await world.store.records.add_live([last], stamp=stored.record.stamp)
    return name


async def turn_all(world: World, name: str) -> list[str]:
    """Claims and dispatches whatever comes due within a minute; what rang, in order."""
    scanner = ModelScanner(world, name)
    for _ in range(60):
        world.clock.advance(SECOND)
        await scanner.everything()
    return [ring.partition(".")[2] for ring in world.rung]


# --- what it names --------------------------------------------------------------------------------


async def test_it_names_what_the_rule_names_in_the_range(world: World) -> None:
    """From the start on, until before the end; each with the identity that it always had."""
    name = await past(world)
    answer = await backfill(world, name, NOON + 2 * DAY, end=NOON + 5 * DAY)
    assert [one.occurrence.occurrence_id for one in answer.first] == [
        "20260603T120000",
        "20260604T120000",
        "20260605T120000",
    ]
    assert (answer.count, answer.capped) == (3, False)
    assert {one.occurrence.origin for one in answer.first} == {Origin.BACKFILL}
    assert (await backfill(world, name, NOON + 2 * DAY, end=NOON + 2 * DAY + SECOND)).count == 1
    assert (await backfill(world, name, NOON + 2 * DAY + SECOND, end=NOON + 3 * DAY)).count == 0


async def test_without_an_end_it_goes_up_to_now(world: World) -> None:
    """And no further: what is ahead rings by itself."""
    name = await past(world)
    assert (await backfill(world, name, NOON + 5 * DAY)).count == 5


async def test_before_its_start_a_rule_names_nothing(world: World) -> None:
    """No entry is written either."""
    name = await past(world)
    assert (await backfill(world, name, NOON - 300 * DAY, end=NOON)).count == 0
    assert await pages(world, name) == []


async def test_a_rule_with_a_count_names_no_more_than_that(world: World) -> None:
    """Wherever the range begins."""
    name = await past(world, every("FREQ=DAILY;COUNT=4"))
    assert (await backfill(world, name, NOON)).count == 4
    assert (await backfill(world, name, NOON + 2 * DAY)).count == 2
    assert (await backfill(world, name, NOON + 4 * DAY)).count == 0


async def test_policies_act_as_they_did(world: World) -> None:
    """A month without a 31st has its last day; identities are those of the rule."""
    monthly = every(
        "FREQ=MONTHLY;BYMONTHDAY=31",
        start_local=datetime.fromisoformat("2026-05-31T09:00"),
        zone="Europe/Paris",
    )
    name = await past(
        world, monthly, span=100 * DAY, policies=Policies(missing_day=MissingDay.CLAMP)
    )
    answer = await backfill(world, name, NOON)
    found = [(one.occurrence.occurrence_id, one.occurrence.note) for one in answer.first]
    assert found == [
        ("20260631T090000", "missing_day:clamp"),
        ("20260731T090000", None),
        ("20260831T090000", None),
    ]
    assert answer.first[0].occurrence.planned_local == datetime.fromisoformat("2026-06-30T09:00")


async def test_counts_are_exact_up_to_a_bound_and_the_first_are_shown(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work of an answer is bounded."""
    monkeypatch.setattr(backfilling, "COUNTED", 600)
    name = await past(world, every("FREQ=MINUTELY"), span=DAY / 2)
    answer = await backfill(world, name, NOON, end=NOON + 10 * HOUR, validate_only=True)
    assert (answer.count, answer.capped, len(answer.first)) == (600, False, 100)
    answer = await backfill(world, name, NOON, end=NOON + 11 * HOUR, validate_only=True)
    assert (answer.count, answer.capped) == (600, True)
    assert await pages(world, name) == []


@pytest.mark.parametrize(
    ("way", "error"),
    [
        ("one-shot", NotRecurring),
        ("cancelled", AlreadyEnded),
        ("paused", ReminderPaused),
        ("elsewhere", NotFound),
        ("clock", NotReady),
    ],
)
async def test_what_can_not_be_backfilled_is_refused(
    world: World, way: str, error: type[Exception]
) -> None:
    """And nothing is written."""
    name = await world.create(At(instant=NOON)) if way == "one-shot" else await past(world)
    if way == "cancelled":
        await world.cancel(name)
    if way == "paused":
        await world.reminders.pause(Call(namespace="ns", reminder_id=name), "")
    world.clock.bounds = way != "clock"
    with pytest.raises(error):
        await world.reminders.backfill(
            "other" if way == "elsewhere" else "ns",
            name,
            start=NOON,
            end=None,
            validate_only=False,
            request_id=None,
        )
    assert await pages(world, name) == []


# --- once -----------------------------------------------------------------------------------------


async def test_a_repeat_of_a_request_is_the_same_backfill(world: World) -> None:
    """One entry, also where the end is "now"; another range is a conflict."""
    name = await past(world)
    first = await backfill(world, name, NOON, request_id="r")
    world.clock.advance(2 * MINUTE)
    assert await backfill(world, name, NOON, request_id="r") == first
    assert len(await pages(world, name)) == 1
    with pytest.raises(KeyConflict):
        await backfill(world, name, NOON + DAY, request_id="r")
    await backfill(world, name, NOON, request_id="other")
    assert len({entry.key.entry_id for entry in await pages(world, name)}) == 2


async def test_all_of_it_rings_once_page_by_page(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three pages, a second apart, the last one shorter."""
    monkeypatch.setattr(backfilling, "PAGE", 4)
    name = await past(world)
    await backfill(world, name, NOON)
    rung = await turn_all(world, name)
    assert sorted(rung) == [f"202606{day:02}T120000" for day in range(1, 11)]
    assert len(world.rings) == 10
    assert [e.key.entry_id[-2:] for e in await pages(world, name)] == [".1", ".2", ".3"]
    found = await pages(world, name)
    assert {b.key.ring_at - a.key.ring_at for a, b in pairwise(found)} == {SECOND}


async def test_what_rings_by_itself_is_left_alone(world: World) -> None:
    """The planned ones that nobody handled: claimed by a backfill, their rule would not go on."""
    name = await world.create(DAILY)
    world.clock.advance(DAY + MINUTE)
    assert (await backfill(world, name, NOON)).count == 2
    (page,) = await pages(world, name)
    await world.reminders.backfills.turn(page)
    kinds = {state.entry.kind for state in await world.entries(name)}
    assert kinds == {Kind.OCCURRENCE, Kind.BACKFILL}


async def test_what_is_not_planned_yet_is_left_to_the_expander(world: World) -> None:
    """After downtime: it passes there, and decides by the catch-up policy."""
    name = await world.create(DAILY)
    world.clock.advance(5 * DAY)
    assert (await backfill(world, name, NOON)).count == 2


@pytest.mark.parametrize("late", [timedelta(0), 10 * MINUTE], ids=["at once", "much later"])
async def test_a_backfill_that_died_anywhere_rings_all_once(
    late: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every step of a turn. Its job comes again, at once or when its minute was settled."""
    monkeypatch.setattr(backfilling, "PAGE", 2)
    step = 0
    while True:
        world = await World.led()
        name = await past(world, span=5 * DAY)
        await backfill(world, name, NOON, request_id="r")
        (page,) = await pages(world, name)
        world.clock.advance(SECOND)
        died = await world.dies_at(step, world.reminders.backfills.turn(page))
        if step % 2:
            await turn_all(world, name)
        world.clock.advance(late)
        await world.reminders.backfills.turn(page)
        await turn_all(world, name)
        rung = [ring.partition(".")[2] for ring in world.rings]
        assert sorted(rung) == [f"202606{day:02}T120000" for day in range(1, 6)], step
        if not died:
            break
        step += 1
    assert step > 8


async def test_a_call_that_died_anywhere_is_made_good_by_its_repeat() -> None:
    """By its request id; also after its minute was settled."""
    step = 0
    while True:
        world = await World.led()
        name = await past(world, span=3 * DAY)
        given = {"end": NOON + 3 * DAY, "request_id": "r"}
        died = await world.dies_at(step, backfill(world, name, NOON, **given))
        if step % 2:
            world.clock.advance(10 * MINUTE)
        await backfill(world, name, NOON, **given)
        await turn_all(world, name)
        rung = [ring.partition(".")[2] for ring in world.rings]
        assert sorted(rung) == [f"202606{day:02}T120000" for day in range(1, 4)], step
        if not died:
            break
        step += 1
    assert step > 6


async def test_a_page_of_an_older_version_does_nothing(world: World) -> None:
    """Any change ends a backfill."""
    name = await past(world)
    await backfill(world, name, NOON)
    (page,) = await pages(world, name)
    await world.reschedule(name, every("FREQ=WEEKLY"))
    await world.reminders.backfills.turn(page)
    assert {s.entry.kind for s in await world.entries(name)} <= {
        Kind.OCCURRENCE,
        Kind.BACKFILL,
        Kind.FINISH,
    }

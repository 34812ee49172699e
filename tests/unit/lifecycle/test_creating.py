"""Create: durable when it answers, once for each key, and planned as promised."""

from datetime import datetime
from typing import Any

import pytest
from structlog.testing import capture_logs

from reminders.errors import InvalidRequest, NotReady, StoreUnavailable, Unexpected
from reminders.lifecycle import Created, CreateRequest, Planner
from reminders.model.definition import After, At, LocalTime, Policies
from reminders.model.entry import DueEntry
from reminders.model.record import Record, Status
from reminders.ports import ClaimAnswer
from reminders.recurrence import Gap, Overlap
from tests.unit.lifecycle.support import create_one, hints, request
from tests.unit.lifecycle.world import (
    DAY,
    HOUR,
    NOON,
    SECOND,
    World,
    created,
    every,
)


async def test_a_created_reminder_is_in_all_tables_when_it_is_answered(world: World) -> None:
    """Record, live entry, due entry and index row."""
    answer = await create_one(world, request())
    view = answer.view
    assert (view.status, answer.deduplicated) == (Status.SCHEDULED, False)
    stored = await world.stored(view.record.reminder_id)
    assert stored.record == view.record
    (live,) = stored.current
    assert (await world.state(live)) is not None
    page, total, capped = await world.reminders.pending("ns", "ann", limit=10, token="")
    assert [item.record.reminder_id for item in page.items] == [view.record.reminder_id]
    assert (total, capped) == (1, False)


async def test_only_what_is_due_within_the_look_ahead_is_announced(world: World) -> None:
    """A scanner reads the rest in its own time."""
    await world.create(At(instant=NOON + HOUR))
    assert await hints(world) == []
    await world.create(At(instant=NOON + world.limits.lookahead + SECOND))
    assert len(await hints(world)) == 1


async def test_each_request_of_a_batch_succeeds_or_fails_by_itself(world: World) -> None:
    """A rule that has ended fails alone, and in its place."""
    ended = every("FREQ=DAILY", until=NOON - DAY)
    results = await world.reminders.create(
        [request(), request(schedule=ended), request(user_id="bob")]
    )
    assert isinstance(results[1], InvalidRequest)
    assert results[1].violations[0].reason == "NOTHING_AHEAD"
    assert [created(results[i]).view.record.definition.user_id for i in (0, 2)] == ["ann", "bob"]


async def test_a_bug_that_one_of_a_batch_meets_is_not_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told under the id of a line in the log; callers that have nothing to do with each other
    may be in one batch.
    """
    first = Planner.first

    def plan(self: Planner, record: Record, **given: Any) -> tuple[DueEntry, ...]:
        if record.definition.user_id == "bob":
            raise ZeroDivisionError
        return first(self, record, **given)

    monkeypatch.setattr(Planner, "first", plan)
    with capture_logs() as logs:
        results = await world.reminders.create([request(), request(user_id="bob"), request()])
    assert isinstance(results[1], Unexpected)
    assert [line["incident"] for line in logs] == [results[1].incident]
    for place in (0, 2):
        reminder_id = created(results[place]).view.record.reminder_id
        assert (await world.stored(reminder_id)).record.version == 1


async def test_validate_only_writes_nothing_and_claims_no_key(world: World) -> None:
    """The answer shows the instants, without an id."""
    answer = await create_one(world, request(dedup_key="k", request_id="r", validate_only=True))
    assert answer.view.record.reminder_id == ""
    assert answer.view.ahead[0].key.ring_at == NOON + HOUR
    assert world.points == []


async def test_nothing_is_created_while_the_clock_is_out_of_bounds(world: World) -> None:
    """Its stamps and instants would be wrong."""
    world.clock.bounds = False
    (result,) = await world.reminders.create([request()])
    assert isinstance(result, NotReady)
    assert world.points == []


async def test_a_store_that_is_down_fails_the_create(world: World) -> None:
    """And nothing else happens."""
    assert await world.unavailable_at(0, create_one(world, request()))


# --- times -------------------------------------------------------------------------------------


async def test_a_time_a_little_past_rings_now_and_is_measured_against_its_promise(
    world: World,
) -> None:
    """Up to 60 s: the edge refuses what is older."""
    answer = await create_one(world, request(schedule=At(instant=NOON - 50 * SECOND)))
    (entry,) = answer.view.ahead
    assert entry.key.ring_at == NOON
    assert entry.promised_at == NOON - 50 * SECOND
    assert len(await hints(world)) == 1
    assert await world.claim(entry) is ClaimAnswer.CLAIMED


@pytest.mark.parametrize(
    ("wall", "expected"),
    [
        ("14:30", "2026-06-01T12:30"),
        ("13:59", "2026-06-02T11:59"),
        ("14:00", "2026-06-02T12:00"),
    ],
)
async def test_a_local_time_without_a_date_is_the_next_one_ahead(
    world: World, wall: str, expected: str
) -> None:
    """Noon in UTC is 14:00 in Paris."""
    schedule = LocalTime(date=None, time=wall, zone="Europe/Paris")
    answer = await create_one(world, request(schedule=schedule))
    assert f"{answer.view.ahead[0].key.ring_at:%Y-%m-%dT%H:%M}" == expected


async def test_a_skipped_local_time_is_refused_where_nothing_is_left() -> None:
    """02:30 does not exist on that day, and the policy says to skip."""
    world = World(start=datetime.fromisoformat("2026-03-28T12:00+00:00"))
    schedule = LocalTime(date="2026-03-29", time="02:30", zone="Europe/Paris")
    one = request(schedule=schedule, policies=Policies(gap=Gap.SKIP))
    (result,) = await world.reminders.create([one])
    assert isinstance(result, InvalidRequest)


async def test_a_repeated_local_time_may_ring_twice() -> None:
    """Two occurrences, two entries, one reminder in the list."""
    world = World(start=datetime.fromisoformat("2026-10-24T12:00+00:00"))
    schedule = LocalTime(date="2026-10-25", time="02:30", zone="Europe/Paris")
    one = request(schedule=schedule, policies=Policies(overlap=Overlap.BOTH))
    answer = await create_one(world, one)
    times = [entry.key.ring_at.strftime("%H:%M") for entry in answer.view.ahead]
    assert times == ["00:30", "01:30"]
    page, total, _ = await world.reminders.pending("ns", "ann", limit=10, token="")
    assert (len(page.items), total) == (1, 1)


async def test_jitter_puts_nothing_before_the_creation_that_promises_it(world: World) -> None:
    """However wide it is: what was just made is not late already."""
    rule = every("FREQ=MINUTELY", start_local=NOON.replace(tzinfo=None))
    for _ in range(50):
        one = request(schedule=rule, policies=Policies(jitter=HOUR))
        answer = await create_one(world, one)
        assert all(entry.promised_at >= NOON for entry in answer.view.ahead)


async def test_a_rule_has_two_occurrences_ahead_that_know_their_successors(world: World) -> None:
    """`next_at` is when they are superseded."""
    answer = await create_one(world, request(schedule=every("FREQ=DAILY")))
    assert [entry.key.ring_at for entry in answer.view.ahead] == [NOON, NOON + DAY]
    assert [entry.next_at for entry in answer.view.ahead] == [NOON + DAY, NOON + 2 * DAY]
    assert all(entry.recurs for entry in answer.view.ahead)


async def test_the_last_occurrence_of_a_rule_is_followed_by_nothing(world: World) -> None:
    """No expansion is waited for."""
    answer = await create_one(world, request(schedule=every("FREQ=DAILY;COUNT=2")))
    assert [(e.recurs, e.next_at) for e in answer.view.ahead] == [(True, NOON + DAY), (False, None)]


async def test_lost_answers_of_the_store_never_lose_an_acknowledged_create() -> None:
    """Whatever step is unavailable: the create fails, or what it answered is there."""
    steps = 0
    while True:
        world = World()
        one = request(schedule=After(delay=SECOND), dedup_key="k")
        results: list[object] = []

        async def call(world: World = world, results: list[object] = results) -> None:
            results.extend(await world.reminders.create([request_()]))

        def request_(one: CreateRequest = one) -> CreateRequest:
            return one

        failed = await world.unavailable_at(steps, call())
        if results and isinstance(results[0], Created):
            (entry,) = results[0].view.ahead
            assert (await world.state(entry)) is not None
        elif results:
            assert isinstance(results[0], StoreUnavailable)
        if not failed:
            break
        steps += 1

"""After downtime, through scanner, expander and dispatcher: what rings, what is on record."""

import pytest

from reminders.model.definition import CatchUp, Policies
from reminders.model.ledger import OccurrenceStatus
from tests.unit.lifecycle.world import DAY, HOUR, MINUTE, NOON, SECOND, World, every
from tests.unit.whole.harness import everything, reasons


@pytest.fixture
def world() -> World:
    """At noon, with one shard."""
    return World()


@pytest.mark.parametrize(
    ("policies", "rung", "not_rung"),
    [
        (Policies(), 1, {"superseded": 119}),
        (Policies(catch_up=CatchUp.ALL), 60, {"too_old": 60}),
        (Policies(catch_up=CatchUp.ALL, catch_up_max_age=10 * MINUTE), 10, {"too_old": 110}),
        (Policies(catch_up=CatchUp.NONE), 1, {"catch_up_none": 119}),
        (Policies(catch_up_max_age=SECOND), 1, {"superseded": 119}),
    ],
    ids=["latest", "all", "all of ten minutes", "none", "latest of a second"],
)
async def test_every_missed_occurrence_rings_or_is_on_record_with_its_reason(
    world: World, policies: Policies, rung: int, not_rung: dict[str, int]
) -> None:
    """Two hours down, a rule every minute: 120 missed, each either rings or is in the ledger; those
    that the expander passes over as one row.
    """
    name = await world.create(every("FREQ=MINUTELY"), policies=policies)
    world.clock.advance(2 * HOUR - 50 * SECOND)
    async with everything(world) as receiver:
        await world.clock.run_until(NOON + 2 * HOUR - SECOND)
        assert len(receiver.ids) == len(set(receiver.ids)) == rung
        rows = await world.ledger(name)
        assert reasons(rows) == not_rung
        assert sum(row.ended is OccurrenceStatus.SKIPPED for row in rows) <= 4
        page = await world.reminders.occurrences("ns", name, limit=100, token="")
        runs = [one for one in page.items if one.skipped_count]
        assert sum(one.skipped_count for one in runs) >= sum(not_rung.values()) - 3
        assert all(one.skipped_through is not None for one in runs)
        await world.clock.run_until(NOON + 2 * HOUR + 5 * MINUTE + SECOND)
    assert len(receiver.ids) == rung + 6
    assert receiver.late(after=NOON + 2 * HOUR) < SECOND


async def test_after_a_day_down_a_rule_every_second_is_back_on_time(world: World) -> None:
    """86,400 missed ones are passed over in a few runs; then each rings once, at its second."""
    name = await world.create(every("FREQ=SECONDLY"))
    world.clock.advance(DAY)
    async with everything(world) as receiver:
        await world.clock.run_until(NOON + DAY + 3 * MINUTE)
        assert await world.settled_through() >= NOON + DAY - MINUTE
    missed = reasons(await world.ledger(name))
    assert list(missed) == ["superseded"]
    assert 86_400 - 31 <= missed["superseded"] <= 86_400 + 120
    assert len(await world.ledger(name)) - len(receiver.ids) <= 20
    assert len(receiver.ids) == len(set(receiver.ids))
    assert len(receiver.ids) + missed["superseded"] in range(86_400 + 180, 86_400 + 183)
    assert receiver.late(after=NOON + DAY + 2 * MINUTE) < SECOND


async def test_two_weeks_down_with_a_rule_every_second_wedge_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While 1.2 million missed ones are passed over, in turns, another reminder of the shard rings
    on time and the watermark moves.
    """
    monkeypatch.setattr("expander.expansion.PASSING_S", 0.05)
    fast = await world.create(every("FREQ=SECONDLY"))
    down = NOON + 14 * DAY
    world.clock.move_to(down)
    async with everything(world) as receiver:
        await world.clock.run_until(down + 30 * SECOND)
        early = reasons(await world.ledger(fast))["superseded"]
        other = await world.create(every("FREQ=SECONDLY;INTERVAL=20", start_local=None))
        await world.clock.run_until(down + 5 * MINUTE)
        assert await world.settled_through() > down
    late = [
        receiver.came[one.occurrence.occurrence_id][0] - one.occurrence.fire_at
        for one in receiver.attempts
        if one.reminder_id == other
    ]
    assert len(late) >= 13
    assert max(late) < SECOND
    assert reasons(await world.ledger(fast))["superseded"] > early + 10_000

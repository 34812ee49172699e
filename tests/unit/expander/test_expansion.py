"""One expansion: what comes next, once, whoever repeats it and whatever changes meanwhile."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from expander.expansion import KEPT, Expanded, Expansion
from reminders.lifecycle.catching_up import overtaken
from reminders.model.definition import At, CatchUp, Policies
from reminders.model.entry import DueEntry, EntryState, Fate
from reminders.model.ledger import LedgerRow, OccurrenceStatus
from reminders.ports import ClaimAnswer
from reminders.recurrence import RuleInvalid, zone_data_version
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


def expansion_of(world: World) -> Expansion:
    """A process of its own."""
    return Expansion(world.platform, world.reminders)


async def current(world: World, reminder_id: str) -> tuple[DueEntry, ...]:
    """The live entries of the version that stands."""
    return (await world.stored(reminder_id)).current


async def times(world: World, reminder_id: str) -> list[datetime]:
    """When its entries are due."""
    return [s.entry.key.ring_at for s in await world.entries(reminder_id) if s.entry.occurrence]


async def ring(world: World, entry: DueEntry) -> None:
    """At its time, to its end but for the expansion."""
    world.clock.move_to(max(world.now, entry.key.ring_at))
    assert await world.claim(entry) is ClaimAnswer.CLAIMED
    await world.dispatch()


async def state_of(world: World, entry: DueEntry) -> EntryState:
    """It is there."""
    state = await world.state(entry)
    assert state is not None
    return state


async def test_the_next_occurrence_follows_the_furthest_live_one(world: World) -> None:
    """Two lie ahead again; the fired one is marked."""
    name = await world.create(every("FREQ=DAILY"))
    first, _ = await current(world, name)
    await ring(world, first)
    assert await expansion_of(world).expand(first) is Expanded.WRITTEN
    assert await times(world, name) == [NOON, NOON + DAY, NOON + 2 * DAY]
    assert (await state_of(world, first)).expanded_at is not None
    page, total, _ = await world.reminders.pending("ns", "ann", limit=5, token="")
    assert (total, len(page.items)) == (1, 1)


async def test_the_clock_does_not_matter(world: World) -> None:
    """A message that comes much too late, but before the next one is overtaken."""
    name = await world.create(every("FREQ=DAILY"))
    first, _ = await current(world, name)
    await ring(world, first)
    world.clock.advance(2 * DAY - MINUTE)
    await expansion_of(world).expand(first)
    assert await times(world, name) == [NOON, NOON + DAY, NOON + 2 * DAY]


async def test_a_repeat_writes_nothing_more(world: World) -> None:
    """Nor does a second expander, nor a message sent again after the one ahead was expanded."""
    name = await world.create(every("FREQ=DAILY"))
    first, second = await current(world, name)
    await ring(world, first)
    assert await expansion_of(world).expand(first) is Expanded.WRITTEN
    assert await expansion_of(world).expand(first) is Expanded.THERE
    await ring(world, second)
    assert await expansion_of(world).expand(second) is Expanded.WRITTEN
    assert await expansion_of(world).expand(first) is Expanded.THERE
    assert await expansion_of(world).expand(second) is Expanded.THERE
    assert len(await times(world, name)) == 4


@pytest.mark.parametrize(("zone_data", "skipped"), [("2020a", True), (zone_data_version(), False)])
async def test_what_rang_under_other_zone_data_does_not_ring_again(
    world: World, zone_data: str, *, skipped: bool
) -> None:
    """Newer data may put behind the cursor what rang before it; the ledger remembers.

    With the same data the ledger is not asked: nothing can have changed places.
    """
    name = await world.create(every("FREQ=DAILY"))
    first, second = await current(world, name)
    stored = await world.stored(name)
    third = world.reminders.planner.after(stored.record, [second], limit=1)[0]
    older = [
        replace(each, occurrence=replace(each.occurrence, zone_data=zone_data))
        for each in (first, second)
        if each.occurrence is not None
    ]
    await world.store.records.add_live(older, stamp=stored.record.stamp + 1)
    row = LedgerRow(
        namespace="ns",
        reminder_id=name,
        reminder_version=1,
        occurrence=third,
        ended=OccurrenceStatus.COMPLETED,
    )
    await world.store.ledger.write([row], at=world.now)
    await ring(world, first)
    assert await expansion_of(world).expand(first) is Expanded.WRITTEN
    last = 3 if skipped else 2
    assert await times(world, name) == [NOON, NOON + DAY, NOON + last * DAY]


async def test_what_a_dead_expander_left_unwritten_is_written_also_by_one_that_goes_on(
    world: World,
) -> None:
    """An expansion that has something of its own to write repairs what is ahead of it, too.

    Found by the simulation: of a rule with one occurrence ahead, an expander died between its live
    entry and its due entry; the message came again after that occurrence's time, wrote the one
    after it, and nobody ever missed the one between.
    """
    name = await world.create(every("FREQ=DAILY"))
    first, second = await current(world, name)
    record = (await world.stored(name)).record
    left = world.reminders.planner.following(record, [first, second])
    await world.store.records.add_live(left, stamp=record.stamp)
    await ring(world, second)
    assert await expansion_of(world).expand(second) is Expanded.WRITTEN
    assert await times(world, name) == [NOON + day * DAY for day in range(4)]


async def test_what_a_dead_expander_wrote_too_late_is_moved(world: World) -> None:
    """Into a minute that is settled nobody looks any more."""
    name = await world.create(every("FREQ=DAILY"))
    first, second = await current(world, name)
    await ring(world, first)
    world.clock.advance(DAY + 10 * MINUTE)
    assert second.occurrence is not None
    settled = second.key.minute + MINUTE
    await world.store.progress.advance(0, settled)
    await expansion_of(world).expand(first)
    assert (await state_of(world, second)).fate is Fate.VOID
    moved = [entry for entry in await current(world, name) if entry.key.ring_at > settled]
    assert second.occurrence in [entry.occurrence for entry in moved]


async def test_a_rule_ends_where_it_ends(world: World) -> None:
    """The last one ahead waits for no expansion, so all is settled."""
    name = await world.create(every("FREQ=DAILY;COUNT=3"))
    first, second = await current(world, name)
    await ring(world, first)
    assert await expansion_of(world).expand(first) is Expanded.WRITTEN
    third = (await current(world, name))[-1]
    assert (third.recurs, third.next_at) == (False, None)
    await ring(world, second)
    assert await expansion_of(world).expand(second) is Expanded.ENDED
    assert len(await times(world, name)) == 3


async def test_a_rule_that_cannot_be_computed_any_more_ends_and_blocks_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as one whose zone is gone. Its entry settles; otherwise its shard never would."""
    name = await world.create(every("FREQ=DAILY"))
    first, _ = await current(world, name)
    await ring(world, first)

    def fail(*_: Any, **__: Any) -> None:
        raise RuleInvalid("RRULE", "nothing found")

    monkeypatch.setattr(world.reminders.planner, "after", fail)
    assert await expansion_of(world).expand(first) is Expanded.BROKEN
    assert (await state_of(world, first)).settled


async def test_an_expansion_that_died_anywhere_is_repaired_by_its_redelivery() -> None:
    """Also between live and due entry, and also when the one ahead was expanded in between."""
    step = 0
    while True:
        world = await World.led()
        name = await world.create(every("FREQ=DAILY"))
        first, second = await current(world, name)
        await ring(world, first)
        died = await world.dies_at(step, expansion_of(world).expand(first))
        if step % 2:
            await ring(world, second)
            await expansion_of(world).expand(second)
        await expansion_of(world).expand(first)
        ahead = await times(world, name)
        assert ahead[:3] == [NOON, NOON + DAY, NOON + 2 * DAY], (step, ahead)
        for live in await current(world, name):
            assert (await state_of(world, live)).entry.body
        assert (await state_of(world, first)).settled
        page, _, _ = await world.reminders.pending("ns", "ann", limit=5, token="")
        assert [view.record.reminder_id for view in page.items] == [name]
        if not died:
            break
        step += 1
    assert step > 6


@pytest.mark.parametrize("change", ["cancel", "reschedule"])
async def test_a_change_at_any_step_leaves_nothing_of_the_old_rule(change: str) -> None:
    """Either the change sees our live entry, or we see the change."""
    step = 0
    while True:
        world = await World.led()
        name = await world.create(every("FREQ=DAILY"))
        first, _ = await current(world, name)
        await ring(world, first)
        passed = {"points": 0, "changed": 0}

        async def point(_: str, world: World = world, name: str = name,
                        passed: dict[str, int] = passed, step: int = step) -> None:  # fmt: skip
            passed["points"] += 1
            if passed["points"] == step + 1:
                passed["changed"] = 1
                with behind_the_scenes():
                    if change == "cancel":
                        assert not (await world.cancel(name)).was_fired
                    else:
                        await world.reschedule(name, every("FREQ=WEEKLY"))

        world.on_point = point
        await expansion_of(world).expand(first)
        world.on_point = None
        if not passed["changed"]:
            break
        for state in await world.entries(name):
            entry = state.entry
            if entry.occurrence and entry.version == 1 and entry.key != first.key:
                assert state.fate is Fate.VOID, (step, entry.key)
        listed = (await world.reminders.pending("ns", "ann", limit=5, token=""))[1]
        assert listed == (0 if change == "cancel" else 1)
        step += 1
    assert step > 6


async def test_an_expander_that_was_held_up_cannot_ring_what_was_cancelled_meanwhile(
    world: World,
) -> None:
    """It found the record unchanged and stalls; a cancel ends the rule, too far ahead for Redis.
    It wakes up just before the time and announces it: the hint is dated too early to be believed.
    """
    name = await world.create(every("FREQ=MINUTELY;INTERVAL=5"))
    first, _ = await current(world, name)
    await ring(world, first)

    async def stall(point: str) -> None:
        if point == "users.add":
            world.on_point = None
            with behind_the_scenes():
                assert not (await world.cancel(name)).was_fired
            world.clock.move_to(NOON + 10 * MINUTE - SECOND)

    world.on_point = stall
    await expansion_of(world).expand(first)
    with behind_the_scenes():
        heard = await world.coordination.hints.tail({0: "0-0"}, wait=timedelta(0))
    written_from = heard[0][-1][2]
    third = next(s.entry for s in await world.entries(name) if s.entry.key.ring_at > world.now)
    world.clock.advance(SECOND)
    assert await world.claim(third, read_at=written_from) is ClaimAnswer.STALE


async def test_what_fired_of_an_older_version_is_only_marked(world: World) -> None:
    """The new version has entries of its own."""
    name = await world.create(every("FREQ=DAILY"))
    first, _ = await current(world, name)
    await world.claim(first)
    await world.reschedule(name, every("FREQ=WEEKLY"))
    before = await times(world, name)
    assert await expansion_of(world).expand(first) is Expanded.OVERTAKEN
    assert await times(world, name) == before
    assert (await state_of(world, first)).expanded_at is not None


async def test_a_reminder_that_is_gone_is_only_marked(world: World) -> None:
    """An orphan has no rule."""
    name = await world.create(every("FREQ=DAILY"))
    first, _ = await current(world, name)
    stray = replace(first, reminder_id="gone")
    assert await expansion_of(world).expand(stray) is Expanded.OVERTAKEN


async def test_an_expander_finishes_a_change_that_it_meets(world: World) -> None:
    """And goes by what it comes to."""
    name = await world.create(every("FREQ=DAILY"))
    first, _ = await current(world, name)
    await ring(world, first)

    async def die(point: str) -> None:
        if point == "records.begin.done":
            raise Crash

    world.on_point = die
    with pytest.raises(Crash):
        await world.cancel(name)
    world.on_point = None
    assert await expansion_of(world).expand(first) is Expanded.OVERTAKEN
    assert (await world.stored(name)).change is None


# --- live entries ---------------------------------------------------------------------------------


async def test_live_entries_stay_few_and_enough(world: World) -> None:
    """As many as a read brings: with fewer it would go through all that was ever dropped."""
    name = await world.create(every("FREQ=DAILY"))
    for _ in range(10):
        entry = (await current(world, name))[-2]
        await ring(world, entry)
        await expansion_of(world).expand(entry)
    live = (await world.stored(name)).live
    assert len(live) == KEPT
    assert [e.key.ring_at for e in live] == [NOON + n * DAY for n in (11, 10, 9, 8)]


async def test_a_live_entry_that_may_still_ring_is_kept(world: World) -> None:
    """Its dispatcher has not settled it: a cancel must see it, and its body may stand there."""
    params = '{"x":"' + "y" * 5000 + '"}'
    name = await world.create(every("FREQ=MINUTELY"), params_json=params)
    first, _ = await current(world, name)
    await world.claim(first)
    await expansion_of(world).expand(first)
    for _ in range(6):
        entry = (await current(world, name))[-2]
        world.clock.move_to(entry.key.ring_at)
        await world.claim(entry)
        await expansion_of(world).expand(entry)
    assert first.key in {entry.key for entry in await current(world, name)}
    with behind_the_scenes():
        assert await world.store.records.body(name, first.key.entry_id)
    changed = await world.cancel(name)
    assert {a.occurrence_id for a in changed.answers if a.was_fired} >= {
        first.dedupe_id.rpartition(".")[2]
    }


async def test_handled_entries_of_older_versions_are_dropped(world: World) -> None:
    """What rang when the rule was changed."""
    name = await world.create(every("FREQ=DAILY"))
    first, _ = await current(world, name)
    await world.claim(first)
    await world.reschedule(name, every("FREQ=HOURLY;BYMINUTE=30"))
    assert first.key in {entry.key for entry in (await world.stored(name)).live}
    await world.dispatch()
    entry = (await current(world, name))[0]
    await ring(world, entry)
    await expansion_of(world).expand(entry)
    assert {e.version for e in (await world.stored(name)).live} == {2}


# --- after downtime -------------------------------------------------------------------------------


async def test_a_run_of_overtaken_ones_is_passed_over_in_one_go(world: World) -> None:
    """One row in the ledger; the latest rings, and counts go on as if all had rung."""
    name = await world.create(every("FREQ=MINUTELY;COUNT=100"))
    first, second = await current(world, name)
    await ring(world, first)
    world.clock.move_to(NOON + 30 * MINUTE + 10 * SECOND)
    assert await expansion_of(world).expand(second) is Expanded.WRITTEN
    latest = (await current(world, name))[-1]
    assert latest.occurrence is not None
    assert (latest.occurrence.occurrence_id[-6:], latest.occurrence.ordinal) == ("123000", 31)
    row = next(row for row in await world.ledger(name) if row.ended)
    assert (row.ended, row.reason) == (OccurrenceStatus.SKIPPED, "superseded")
    assert row.occurrence.occurrence_id[-6:] == "120200"
    assert row.skipped_through is not None
    assert (row.skipped_through.occurrence_id[-6:], row.skipped_count) == ("122900", 28)


async def test_a_very_long_run_is_passed_over_in_parts(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An expansion's work is bounded; the next one goes on."""
    monkeypatch.setattr("expander.expansion.RUN", 10)
    monkeypatch.setattr("expander.expansion.PASSING_S", 0)
    name = await world.create(every("FREQ=MINUTELY"))
    _, second = await current(world, name)
    world.clock.move_to(NOON + 30 * MINUTE)
    await expansion_of(world).expand(second)
    assert [row.skipped_count for row in await world.ledger(name)] == [10]
    furthest = (await current(world, name))[-1]
    assert furthest.occurrence is not None
    assert furthest.occurrence.occurrence_id[-6:] == "121200"
    await expansion_of(world).expand(furthest)
    assert [row.skipped_count for row in await world.ledger(name)] == [10, 10]


async def test_a_rule_that_ended_within_the_run_ends(world: World) -> None:
    """All of it too old."""
    policies = Policies(catch_up_max_age=5 * MINUTE)
    name = await world.create(every("FREQ=MINUTELY;COUNT=10"), policies=policies)
    _, second = await current(world, name)
    world.clock.move_to(NOON + DAY)
    assert await expansion_of(world).expand(second) is Expanded.ENDED
    assert [row.skipped_count for row in await world.ledger(name)] == [8]


@pytest.mark.parametrize(
    ("policy", "late", "until_next", "expected"),
    [
        (CatchUp.LATEST, 20 * SECOND, -SECOND, None),
        (CatchUp.LATEST, 40 * SECOND, -SECOND, "superseded"),
        (CatchUp.LATEST, 40 * SECOND, SECOND, None),
        (CatchUp.LATEST, 40 * SECOND, None, None),
        (CatchUp.LATEST, 2 * HOUR, None, "too_old"),
        (CatchUp.ALL, 40 * SECOND, -SECOND, None),
        (CatchUp.ALL, 2 * HOUR, -SECOND, "too_old"),
        (CatchUp.NONE, MINUTE, -SECOND, None),
        (CatchUp.NONE, 2 * MINUTE, SECOND, "catch_up_none"),
    ],
)
def test_which_missed_ones_are_skipped(
    policy: CatchUp, late: timedelta, until_next: timedelta | None, expected: str | None
) -> None:
    """By policy, age and the next one; a little late is not missed."""
    next_at = None if until_next is None else NOON + until_next
    reason = overtaken(policy, HOUR, fire_at=NOON - late, next_at=next_at, now=NOON)
    assert reason == expected


async def test_a_one_shot_has_no_next(world: World) -> None:
    """Were it asked for."""
    name = await world.create(At(instant=NOON + HOUR))
    (entry,) = await current(world, name)
    assert world.reminders.planner.following((await world.stored(name)).record, [entry]) == ()

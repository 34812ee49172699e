"""Changes of rules, and of one-shots that ring twice: an answer for each occurrence."""

from reminders.model.definition import At, LocalTime, Policies
from reminders.model.entry import Fate, Kind
from reminders.model.record import Status
from reminders.ports import ClaimAnswer
from reminders.recurrence import Overlap
from tests.unit.lifecycle.support import only, open_kinds
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

SOON = At(instant=NOON + 10 * SECOND)
LATER = At(instant=NOON + 20 * SECOND)


async def test_a_rule_with_one_claimed_and_one_ahead_answers_for_each(world: World) -> None:
    """The claimed one rings, the other never."""
    reminder_id = await world.create(every("FREQ=HOURLY"))
    first, second = (await world.stored(reminder_id)).current
    await world.claim(first)
    changed = await world.cancel(reminder_id)
    assert [answer.was_fired for answer in changed.answers] == [True, False]
    assert (changed.was_fired, changed.view.status) == (True, Status.CANCELLED)
    await world.dispatch()
    assert world.rings == [first.dedupe_id]
    world.clock.move_to(second.key.ring_at)
    answer = await world.claim(second, read_at=NOON)
    assert answer in (ClaimAnswer.VOID, ClaimAnswer.STALE)


async def test_what_a_rule_rang_long_ago_does_not_count_as_fired(world: World) -> None:
    """Nobody asks about yesterday, though its live entry is still there."""
    reminder_id = await world.create(every("FREQ=DAILY"))
    first, _ = (await world.stored(reminder_id)).current
    await world.claim(first)
    await world.dispatch()
    world.clock.advance(HOUR)
    changed = await world.cancel(reminder_id)
    assert [answer.was_fired for answer in changed.answers] == [False]


async def test_a_rule_that_has_ended_was_fired(world: World) -> None:
    """Its last occurrence counts."""
    reminder_id = await world.create(every("FREQ=DAILY;COUNT=1"))
    await world.claim(await only(world, reminder_id))
    await world.dispatch()
    assert (await world.cancel(reminder_id)).was_fired


async def test_a_rule_is_rescheduled_also_where_one_was_claimed(world: World) -> None:
    """That one rings beside the new ones."""
    reminder_id = await world.create(every("FREQ=HOURLY"))
    first, _ = (await world.stored(reminder_id)).current
    await world.claim(first)
    changed = await world.reschedule(reminder_id, every("FREQ=DAILY;BYHOUR=18;BYMINUTE=0"))
    assert changed.was_fired
    assert [e.key.ring_at.hour for e in changed.view.ahead] == [18, 18]
    state = await world.state(first)
    assert state is not None
    assert state.fate is Fate.CLAIMED


async def test_one_local_occurrence_rings_once_though_its_rule_moves_to_another_zone(
    world: World,
) -> None:
    """14:00 rang in Paris at noon UTC; in New York it comes six hours later, and is left out."""
    reminder_id = await world.create(every("FREQ=DAILY;BYHOUR=14;BYMINUTE=0", zone="Europe/Paris"))
    first, _ = (await world.stored(reminder_id)).current
    assert first.key.ring_at == NOON
    await world.claim(first)
    world.clock.advance(SECOND)
    moved = every("FREQ=DAILY;BYHOUR=14;BYMINUTE=0", zone="America/New_York")
    changed = await world.reschedule(reminder_id, moved)
    next_day = NOON + DAY + 6 * HOUR
    assert [e.key.ring_at for e in changed.view.ahead] == [next_day, next_day + DAY]
    assert changed.view.ahead[0].recurs


async def test_a_rule_goes_on_where_all_its_planned_occurrences_rang(world: World) -> None:
    """Only then it plans further."""
    rule = "FREQ=DAILY;BYHOUR=14;BYMINUTE=0,1"
    reminder_id = await world.create(every(rule, zone="Europe/Paris"))
    both = (await world.stored(reminder_id)).current
    world.clock.advance(2 * MINUTE)
    for entry in both:
        await world.claim(entry)
    changed = await world.reschedule(reminder_id, every(rule, zone="America/New_York"))
    next_day = NOON + DAY + 6 * HOUR
    assert [e.key.ring_at for e in changed.view.ahead] == [next_day, next_day + MINUTE]


async def test_an_instant_is_another_intent_than_the_same_reading_of_clocks(world: World) -> None:
    """14:00 in Paris rang; now the caller wants 14:00 UTC: a key of its own, for receivers too."""
    reminder_id = await world.create(every("FREQ=DAILY;BYHOUR=14;BYMINUTE=0", zone="Europe/Paris"))
    first, _ = (await world.stored(reminder_id)).current
    await world.claim(first)
    changed = await world.reschedule(reminder_id, At(instant=NOON + 2 * HOUR))
    (entry,) = changed.view.ahead
    assert entry.dedupe_id != first.dedupe_id
    world.clock.advance(2 * HOUR)
    assert await world.claim(entry) is ClaimAnswer.CLAIMED


async def test_of_a_one_shot_that_rings_twice_the_second_time_can_be_moved(world: World) -> None:
    """02:30 comes twice; the first was claimed."""
    world = await World.led(start=NOON.replace(month=10, day=25, hour=0))
    schedule = LocalTime(date="2026-10-25", time="02:30", zone="Europe/Paris")
    reminder_id = await world.create(schedule, policies=Policies(overlap=Overlap.BOTH))
    first, second = (await world.stored(reminder_id)).current
    world.clock.move_to(first.key.ring_at)
    await world.claim(first)
    changed = await world.reschedule(reminder_id, At(instant=world.now + 2 * HOUR))
    assert [answer.was_fired for answer in changed.answers] == [True, False]
    await world.dispatch()
    world.clock.move_to(second.key.ring_at)
    answer = await world.claim(second, read_at=first.key.ring_at - SECOND)
    assert answer in (ClaimAnswer.VOID, ClaimAnswer.STALE)
    assert world.rings == [first.dedupe_id]
    assert [kind for kind, _ in await open_kinds(world, reminder_id)].count(Kind.OCCURRENCE) == 1


async def test_a_change_sees_the_occurrence_that_an_expander_wrote_just_before_it(
    world: World,
) -> None:
    """The expander reads the record as unchanged, the change begins; only the live entries of after
    the beginning show what was written in between.
    """
    reminder_id = await world.create(every("FREQ=DAILY"))
    first, _ = (await world.stored(reminder_id)).current
    await world.claim(first)
    await world.dispatch()

    async def expand_first(point: str) -> None:
        if point == "records.begin":
            world.on_point = None
            stored = await world.stored(reminder_id)
            with behind_the_scenes():
                following = world.reminders.planner.following(stored.record, stored.current)
                stamp = stored.record.stamp
                await world.store.records.add_live(following, stamp=stamp)
                await world.reminders.writer.put(following, stamp=stamp)

    world.on_point = expand_first
    assert not (await world.cancel(reminder_id)).was_fired
    assert await open_kinds(world, reminder_id) == []
    assert await world.reminders.pending("ns", "ann", limit=5, token="") is not None
    assert (await world.reminders.pending("ns", "ann", limit=5, token=""))[1] == 0


async def test_many_reschedules_leave_only_the_live_entries_that_count(world: World) -> None:
    """A read brings only the newest few by local time, whatever their version: none of a dropped
    version may stand before them.
    """
    reminder_id = await world.create(every("FREQ=DAILY"))
    for hours in range(23, 10, -1):
        start = (NOON + hours * HOUR).replace(tzinfo=None)
        await world.reschedule(reminder_id, every("FREQ=DAILY", start_local=start))
    stored = await world.stored(reminder_id)
    assert stored.live == tuple(reversed(stored.current))
    assert len(stored.current) == 2

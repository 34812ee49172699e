"""Updates: other content under the same promise, other rules behind what rang."""

from datetime import date, datetime
from typing import Any

import pytest

from expander.expansion import Expansion
from reminders.errors import AlreadyEnded, AlreadyFired, InvalidRequest, KeyConflict
from reminders.model.codec import decode_body
from reminders.model.definition import After, At, CatchUp, LocalTime, Policies
from reminders.model.entry import Body, Fate, Kind
from reminders.model.record import Status
from reminders.ports import ClaimAnswer
from reminders.recurrence import Gap, MissingDay, Overlap
from tests.unit.lifecycle.support import only
from tests.unit.lifecycle.world import DAY, HOUR, MINUTE, NOON, SECOND, World, every

SOON = At(instant=NOON + 10 * SECOND)
HOURLY = every("FREQ=HOURLY")


async def bodies(world: World, reminder_id: str) -> list[Body]:
    """What would be delivered, soonest first."""
    return [
        decode_body(state.entry.body)
        for state in await world.entries(reminder_id)
        if state.entry.kind is Kind.OCCURRENCE and state.fate is not Fate.VOID
    ]


def rings(view: Any) -> list[datetime]:
    """When it rings next."""
    return [entry.key.ring_at for entry in view.ahead]


def ids(view: Any) -> list[str]:
    """Which occurrences are next."""
    return [entry.occurrence.occurrence_id for entry in view.ahead]


# --- content ---


@pytest.mark.parametrize("schedule", [SOON, After(delay=10 * SECOND), HOURLY])
async def test_other_content_goes_out_at_the_same_occurrences(world: World, schedule: Any) -> None:
    """Same ids, same instants, whatever time has passed; the old entries are void."""
    reminder_id = await world.create(schedule)
    before = (await world.reminders.get("ns", reminder_id)).ahead
    world.clock.advance(SECOND / 2)
    changed = await world.update(reminder_id, params_json='{"a":1}', template_id="t")
    assert changed.view.record.version == 2
    assert ids(changed.view) == [e.occurrence.occurrence_id for e in before if e.occurrence]
    assert [e.promised_at for e in changed.view.ahead] == [e.promised_at for e in before]
    for body in await bodies(world, reminder_id):
        assert (body.params_json, body.template_id) == ('{"a":1}', "t")
    states = [await world.state(entry) for entry in before]
    assert all(state is not None and state.fate is Fate.VOID for state in states)


async def test_an_occurrence_that_was_claimed_rings_as_it_was_and_only_once(world: World) -> None:
    """The rule goes on behind it with the new content, two ahead as ever."""
    reminder_id = await world.create(HOURLY)
    first, _ = (await world.stored(reminder_id)).current
    await world.claim(first)
    changed = await world.update(reminder_id, params_json='{"a":1}')
    assert changed.was_fired
    assert [answer.was_fired for answer in changed.answers] == [True, False]
    assert rings(changed.view)[-2:] == [NOON + HOUR, NOON + 2 * HOUR]
    assert [e.occurrence.ordinal for e in changed.view.ahead][-2:] == [2, 3]
    await world.dispatch()
    assert world.rings == [first.dedupe_id]


async def test_what_is_due_and_not_claimed_rings_with_the_new_content(world: World) -> None:
    """Nothing is lost between the old version and the new one."""
    reminder_id = await world.create(HOURLY)
    first, _ = (await world.stored(reminder_id)).current
    world.clock.advance(5 * SECOND)
    changed = await world.update(reminder_id, params_json='{"a":1}')
    assert not changed.was_fired
    again = (await world.stored(reminder_id)).current[0]
    assert again.dedupe_id == first.dedupe_id
    assert again.key.ring_at == NOON + 5 * SECOND
    assert await world.claim(first, read_at=NOON) is ClaimAnswer.VOID
    assert await world.claim(again) is ClaimAnswer.CLAIMED


async def test_a_fired_one_shot_is_not_updated(world: World) -> None:
    """Neither its content nor its time; and it stays what it was."""
    reminder_id = await world.create(SOON)
    world.clock.advance(10 * SECOND)
    await world.claim(await only(world, reminder_id))
    for changes in ({"template_id": "t"}, {"schedule": After(delay=HOUR)}):
        with pytest.raises(AlreadyFired):
            await world.update(reminder_id, **changes)
    view = await world.reminders.get("ns", reminder_id)
    assert (view.status, view.record.definition.template_id) == (Status.FIRED, None)


async def test_a_cancelled_one_is_not_updated(world: World) -> None:
    """It has ended."""
    reminder_id = await world.create(SOON)
    await world.cancel(reminder_id)
    with pytest.raises(AlreadyEnded):
        await world.update(reminder_id, template_id="t")


async def test_another_user_has_it_in_the_list_and_the_first_one_has_not(world: World) -> None:
    """The index rows move with it, those of later occurrences as well."""
    reminder_id = await world.create(every("FREQ=MINUTELY"))
    await world.update(reminder_id, user_id="bob")
    for user_id, count in (("ann", 0), ("bob", 1)):
        page, total, _ = await world.reminders.pending("ns", user_id, limit=5, token="")
        assert (len(page.items), total) == (count, count)
    first = (await world.stored(reminder_id)).current[0]
    await world.claim(first)
    await world.dispatch()
    await Expansion(world.platform, world.reminders).expand(first)
    _, total, _ = await world.reminders.pending("ns", "ann", limit=5, token="")
    assert total == 0


async def test_a_repeat_by_request_id_changes_nothing_again(world: World) -> None:
    """Other content under the same id is a conflict."""
    reminder_id = await world.create(SOON)
    first = await world.update(reminder_id, template_id="t", request_id="r")
    again = await world.update(reminder_id, template_id="t", request_id="r")
    assert again.view.record == first.view.record
    with pytest.raises(KeyConflict):
        await world.update(reminder_id, template_id="u", request_id="r")


async def test_what_the_edit_refuses_changes_nothing(world: World) -> None:
    """It runs before anything is written."""
    reminder_id = await world.create(SOON)
    before = len(world.points)
    with pytest.raises(InvalidRequest):
        await world.update(reminder_id, schedule=every("FREQ=DAILY", until=NOON - DAY))
    assert set(world.points[before:]) == {"records.read"}


# --- schedule ---


async def test_another_rule_begins_strictly_after_the_last_that_rang(world: World) -> None:
    """In the new zone noon is to come, and has rung: so it goes on an hour later."""
    reminder_id = await world.create(HOURLY)
    first, _ = (await world.stored(reminder_id)).current
    await world.claim(first)
    await world.dispatch()
    moved = every("FREQ=HOURLY", zone="America/New_York", start_local=datetime(2026, 6, 1))  # noqa: DTZ001
    changed = await world.update(reminder_id, schedule=moved)
    assert ids(changed.view) == ["20260601T130000", "20260601T140000"]
    assert rings(changed.view) == [NOON + 5 * HOUR, NOON + 6 * HOUR]


async def test_what_rang_two_versions_ago_does_not_ring_again(world: World) -> None:
    """The record remembers how far it came, not only the version before."""
    reminder_id = await world.create(HOURLY)
    first, _ = (await world.stored(reminder_id)).current
    await world.claim(first)
    await world.dispatch()
    midnight = datetime(2026, 6, 1)  # noqa: DTZ001
    moved = every("FREQ=HOURLY", zone="America/New_York", start_local=midnight)
    await world.update(reminder_id, schedule=moved)
    moved = every("FREQ=HOURLY", zone="America/Los_Angeles", start_local=midnight)
    changed = await world.update(reminder_id, schedule=moved)
    assert ids(changed.view) == ["20260601T130000", "20260601T140000"]


async def test_a_count_goes_on_under_the_same_rule_and_begins_anew_under_another(
    world: World,
) -> None:
    """One of three has rung."""
    rule = every("FREQ=HOURLY;COUNT=3")
    reminder_id = await world.create(rule)
    first, _ = (await world.stored(reminder_id)).current
    await world.claim(first)
    await world.dispatch()
    world.clock.advance(MINUTE)
    changed = await world.update(reminder_id, schedule=rule, template_id="t")
    assert [e.occurrence.ordinal for e in changed.view.ahead] == [2, 3]
    other = every("FREQ=HOURLY;COUNT=2")
    changed = await world.update(reminder_id, schedule=other)
    assert [e.occurrence.ordinal for e in changed.view.ahead] == [1, 2]
    assert [e.recurs for e in changed.view.ahead] == [True, False]


async def test_a_delay_that_is_named_again_counts_from_now(world: World) -> None:
    """An hour is another hour then."""
    reminder_id = await world.create(After(delay=HOUR))
    world.clock.advance(MINUTE)
    changed = await world.update(reminder_id, schedule=After(delay=HOUR))
    assert rings(changed.view) == [NOON + MINUTE + HOUR]


# --- policies ---


async def test_another_policy_moves_the_same_local_intent(world: World) -> None:
    """02:30 on the night it is skipped: 03:00, or 03:30."""
    schedule = LocalTime(date="2027-03-28", time="02:30", zone="Europe/Paris")
    reminder_id = await world.create(schedule)
    before = await only(world, reminder_id)
    changed = await world.update(reminder_id, policies={"gap": Gap.SHIFT_FORWARD})
    assert ids(changed.view) == [before.occurrence.occurrence_id]
    assert rings(changed.view) == [before.key.ring_at + HOUR / 2]
    with pytest.raises(InvalidRequest) as caught:
        await world.update(reminder_id, policies={"gap": Gap.SKIP})
    assert caught.value.reason == "NOTHING_AHEAD"


async def test_a_policy_may_bring_an_occurrence_nearer(world: World) -> None:
    """The 31st, clamped, comes in June as well; it counts on."""
    rule = every("FREQ=MONTHLY;BYMONTHDAY=31;BYHOUR=9;BYMINUTE=0;BYSECOND=0;COUNT=2")
    reminder_id = await world.create(rule)
    assert [each.date() for each in rings(await world.reminders.get("ns", reminder_id))] == [
        date(2026, 7, 31),
        date(2026, 8, 31),
    ]
    changed = await world.update(reminder_id, policies={"missing_day": MissingDay.CLAMP})
    assert [each.date() for each in rings(changed.view)] == [date(2026, 6, 30), date(2026, 7, 31)]
    assert [e.occurrence.ordinal for e in changed.view.ahead] == [1, 2]


async def test_a_policy_never_brings_back_what_rang(world: World) -> None:
    """Of a repeated time the first pass rang; once both are asked for, the second comes alone."""
    world = await World.led(start=NOON.replace(month=10, day=25, hour=0, minute=30))
    rule = every(
        "FREQ=DAILY;BYHOUR=2;BYMINUTE=30",
        zone="Europe/Paris",
        start_local=datetime(2026, 10, 25),  # noqa: DTZ001
    )
    reminder_id = await world.create(rule)
    first = (await world.stored(reminder_id)).current[0]
    assert await world.claim(first) is ClaimAnswer.CLAIMED
    await world.dispatch()
    world.clock.advance(MINUTE)
    changed = await world.update(reminder_id, policies={"overlap": Overlap.BOTH})
    assert ids(changed.view) == ["20261025T023000~1", "20261026T023000"]


async def test_policies_about_lateness_leave_the_occurrences_as_they_are(world: World) -> None:
    """Catch-up is asked when it is late; it stands in the body."""
    reminder_id = await world.create(HOURLY, policies=Policies(jitter=10 * SECOND))
    before = (await world.reminders.get("ns", reminder_id)).ahead
    changed = await world.update(reminder_id, policies={"catch_up": CatchUp.ALL})
    assert [e.occurrence for e in changed.view.ahead] == [e.occurrence for e in before]
    assert {body.catch_up for body in await bodies(world, reminder_id)} == {CatchUp.ALL}

"""What new zone data and new holidays do to what is ahead."""

from datetime import date, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from reminders.lifecycle.moves import Totals
from reminders.model.definition import Policies
from reminders.model.entry import Fate
from reminders.model.ledger import OccurrenceStatus
from reminders.ports import ClaimAnswer
from reminders.recurrence import Gap, MissingDay, business
from tests import zonedata
from tests.unit.lifecycle.world import HOUR, NOON, World, every
from tests.unit.sweeping.support import (
    CHANGED,
    IS,
    JULY,
    rings_at,
    told,
    walked,
)


async def test_a_reminder_that_can_not_be_computed_any_more_is_left_and_told(
    world: World, releases: dict[str, Path], tmp_path: Path
) -> None:
    """Its zone is gone: the others go on."""
    gone = await world.create(replace(JULY, zone="Africa/Tunis"))
    moves = await world.create(JULY)
    folder = zonedata.release(tmp_path, "2026h", CHANGED)
    listed = folder / "tzdata" / "zones"
    names = listed.read_text().replace("Africa/Tunis\n", "")
    listed.unlink()
    listed.write_text(names)
    with zonedata.installed(folder):
        moved, left, totals = told(await walked(world))
    assert [each.reminder_id for each in moved] == [moves]
    assert [each.reminder_id for each in left] == [gone]
    assert "Africa/Tunis" in left[0].why
    assert totals.failed == 1


MARCH = datetime(2027, 3, 28)  # noqa: DTZ001 - local; Paris leaves out 02:00 to 03:00 on that day


async def test_two_occurrences_on_one_instant_become_one(
    world: World, releases: dict[str, Path]
) -> None:
    """With the identity of the earliest; the ledger says what became of the other, and the rule
    goes on.
    """
    rule = every(
        "FREQ=DAILY;BYHOUR=2,3;BYMINUTE=0;BYSECOND=0", start_local=MARCH, zone="Africa/Algiers"
    )
    reminder_id = await world.create(rule)
    with zonedata.installed(releases["2026h"]):
        moved, _, totals = told(await walked(world))
        assert [(each.occurrence_id, each.new_instant) for each in moved] == [
            ("20270328T030000", None)
        ]
        assert (totals.moved, totals.dropped) == (0, 1)
        current = (await world.stored(reminder_id)).current
        assert [(one.occurrence.occurrence_id, one.key.ring_at) for one in current] == [  # type: ignore[union-attr]
            ("20270328T020000", datetime.fromisoformat("2027-03-28T01:00Z")),
            ("20270329T020000", datetime.fromisoformat("2027-03-29T00:00Z")),
        ]
        (row,) = await world.ledger(reminder_id)
        assert (row.occurrence.occurrence_id, row.ended) == (
            "20270328T030000",
            OccurrenceStatus.SKIPPED,
        )
        assert row.reason
        assert told(await walked(world))[0] == []


async def test_what_the_new_data_takes_away_is_in_the_ledger(
    world: World, releases: dict[str, Path]
) -> None:
    """Of a one-shot that leaves nothing; it does not ring, and nobody has to guess why."""
    skipped = replace(JULY, date="2027-03-28", time="02:30")
    reminder_id = await world.create(skipped, policies=Policies(gap=Gap.SKIP))
    with zonedata.installed(releases["2026h"]):
        moved, left, totals = told(await walked(world))
        assert [each.new_instant for each in moved] == [None]
        assert moved[0].note
        assert (left, totals.dropped) == ([], 1)
        (row,) = await world.ledger(reminder_id)
        assert (row.ended, row.reason) == (OccurrenceStatus.SKIPPED, moved[0].note)
        entries = [one for one in await world.entries(reminder_id) if one.entry.occurrence]
        assert [one.fate for one in entries] == [Fate.VOID]
        assert told(await walked(world)) == ([], [], Totals(records=1))


async def test_a_new_edition_of_holidays_moves_what_it_closes_a_day_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of June, put on the first business day after it, which has become a holiday."""
    rule = every(
        "FREQ=MONTHLY;BYMONTHDAY=31",
        start_local=datetime(2026, 6, 1, 9),  # noqa: DTZ001 - local
        zone="Europe/Berlin",
    )
    policies = Policies(missing_day=MissingDay.NEXT_BUSINESS_DAY, holiday_calendar="DE")
    reminder_id = await world.create(rule, policies=policies)
    weekdays = await world.create(rule, policies=replace(policies, holiday_calendar=None))
    assert (await rings_at(world, reminder_id))[0] == datetime.fromisoformat("2026-07-01T07:00Z")

    open_on = business._is_business_day
    monkeypatch.setattr(
        business,
        "_is_business_day",
        lambda calendar: (
            lambda day: open_on(calendar)(day) and (calendar, day) != ("DE", date(2026, 7, 1))
        ),
    )
    monkeypatch.setattr(business, "version", lambda _: "99.1")
    business.holiday_data_version.cache_clear()
    try:
        moved, _, totals = told(await walked(world))
        assert [(one.reminder_id, one.new_instant) for one in moved] == [
            (reminder_id, datetime.fromisoformat("2026-07-02T07:00Z"))
        ]
        assert totals == Totals(records=2, older=1, moved=1)
        entries = (await world.stored(reminder_id)).current
        assert {one.occurrence.holiday_data for one in entries if one.occurrence} == {"99.1"}
        assert (await world.stored(weekdays)).record.version == 1
    finally:
        monkeypatch.undo()
        business.holiday_data_version.cache_clear()


@pytest.mark.parametrize(("before", "after"), [("2026g", "2026h"), ("2026h", "2026j")])
async def test_an_elapsing_rule_goes_on_in_step(
    world: World, releases: dict[str, Path], before: str, after: str
) -> None:
    """Every hour is every hour: what clocks are said to show changes, and no instant is named twice
    or left out, whether the new data puts the zone ahead or back.
    """
    midnight = datetime(2026, 6, 1)  # noqa: DTZ001 - local
    with zonedata.installed(releases[before]):
        rule = every("FREQ=HOURLY", start_local=midnight, zone="Africa/Algiers")
        reminder_id = await world.create(rule)
        stored = await world.stored(reminder_id)
    with zonedata.installed(releases[after]):
        assert told(await walked(world))[0] == []
        (following,) = world.reminders.planner.following(stored.record, stored.current)
    instants = [entry.key.ring_at for entry in (*stored.current, following)]
    assert instants == [NOON, NOON + HOUR, NOON + 2 * HOUR]


async def test_what_moves_into_the_past_rings_at_once(
    world: World, releases: dict[str, Path]
) -> None:
    """Late by what the data came late; its promise is the new instant."""
    reminder_id = await world.create(JULY)
    world.clock.move_to(IS + HOUR / 2)
    with zonedata.installed(releases["2026h"]):
        moved, _, _ = told(await walked(world))
        assert [each.new_instant for each in moved] == [IS]
        (entry,) = (await world.stored(reminder_id)).current
        assert entry.occurrence is not None
        assert (entry.occurrence.fire_at, entry.key.ring_at) == (IS, IS + HOUR / 2)
        assert await world.claim(entry) is ClaimAnswer.CLAIMED

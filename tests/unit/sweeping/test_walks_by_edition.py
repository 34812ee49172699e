"""Who may walk: never a process whose data is older than what was used here."""

from contextlib import aclosing
from pathlib import Path

import pytest

from reminders.lifecycle.editions import DataNewer, EditionUnknown
from reminders.lifecycle.moves import Passed, Totals
from tests import zonedata
from tests.unit.lifecycle.world import World
from tests.unit.sweeping.support import (
    JULY,
    as_one,
    many,
    sweep,
    told,
    walked,
)


async def test_what_newer_data_computed_is_left(world: World, releases: dict[str, Path]) -> None:
    """And counted, so that whoever runs this with old data hears of it."""
    with zonedata.installed(releases["2026i"]):
        newer = await world.create(JULY)
    before = await world.stored(newer)
    with zonedata.installed(releases["2026h"]):
        moved, left, totals = told(await walked(world))
    assert (moved, [each.reminder_id for each in left]) == ([], [newer])
    assert left[0].newer
    assert totals == Totals(records=1, newer=1)
    assert await world.stored(newer) == before


async def test_a_process_with_older_data_than_walked_here_is_refused(
    world: World, releases: dict[str, Path]
) -> None:
    """Else it could move what the newer data looked at and left where it was."""
    reminder_id = await world.create(JULY)
    with zonedata.installed(releases["2026i"]):
        await walked(world)
    before = await world.stored(reminder_id)
    with zonedata.installed(releases["2026h"]):
        for apply in (False, True):
            with pytest.raises(DataNewer, match=r"2026i and holidays .* this process has 2026h"):
                await walked(world, apply=apply)
    assert await world.stored(reminder_id) == before


async def test_newer_data_has_walked_here_once_it_began(
    world: World, releases: dict[str, Path]
) -> None:
    """Though it died before the end of its first page."""
    await world.create(JULY)
    world.points.clear()
    with zonedata.installed(releases["2026i"]):
        assert await world.dies_at(4, as_one(walked(world)))
    assert "records.begin" not in world.points
    with zonedata.installed(releases["2026h"]), pytest.raises(DataNewer):
        await walked(world)


async def test_a_walk_with_newer_data_begins_anew_and_stops_the_older_one(
    world: World, releases: dict[str, Path]
) -> None:
    """At its next page, and its position does not come back."""
    await many(world, 35)
    with zonedata.installed(releases["2026h"]):
        older = sweep(world, rate=1)
    with zonedata.installed(releases["2026i"]):
        newer = sweep(world, rate=1)
    async with aclosing(older.run()) as old, aclosing(newer.run()) as new:
        with zonedata.installed(releases["2026h"]):
            await _a_page(old)
        with zonedata.installed(releases["2026i"]):
            passed = await _a_page(new)
        assert passed.resumed_at == 0.0
        with zonedata.installed(releases["2026h"]), pytest.raises(DataNewer):
            await _a_page(old)
        with zonedata.installed(releases["2026i"]):
            await _a_page(new)
            while (await _a_page(new)).share < 1.0:
                pass
    with zonedata.installed(releases["2026h"]), pytest.raises(DataNewer):
        await walked(world)


async def _a_page(events: object) -> Passed:
    async for event in events:  # type: ignore[attr-defined]
        if isinstance(event, Passed):
            return event
    raise AssertionError("it ended")


async def test_data_without_a_place_in_the_order_is_refused(
    world: World, releases: dict[str, Path]
) -> None:
    """Whether it is ours, or what an occurrence carries: never taken for older."""
    reminder_id = await world.create(JULY)
    with zonedata.installed(releases["?"]):
        with pytest.raises(EditionUnknown, match=r"zone data '\?' is no IANA release"):
            await walked(world)
        strange = await world.create(JULY)
    with zonedata.installed(releases["2026h"]):
        moved, left, totals = told(await walked(world))
    assert [each.reminder_id for each in moved] == [reminder_id]
    assert [(each.reminder_id, each.newer) for each in left] == [(strange, False)]
    assert "'?'" in left[0].why
    assert totals == Totals(records=2, older=1, moved=1, failed=1)

"""`tocsin zones`: what is in use, and the report of a walk."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from reminders.cli import operation, recomputing
from reminders.config.settings import Settings
from reminders.errors import StoreUnavailable
from reminders.model.definition import At, LocalTime
from reminders.platform import Platform
from reminders.recurrence import holiday_data_version, zone_data_version, zone_names
from tests import zonedata
from tests.unit.lifecycle.world import World

JULY = LocalTime(date="2026-07-01", time="09:00", zone="Africa/Algiers")
Tocsin = Callable[..., Any]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """In memory, what the command connects to; its clock jumps."""
    world = asyncio.run(World.led())

    async def jump(at: datetime) -> None:
        world.clock.move_to(max(at, world.now))

    @asynccontextmanager
    async def connected(_: Settings, **_how: object) -> AsyncIterator[Platform]:
        yield world.platform

    monkeypatch.setattr(world.clock, "sleep_until", jump)
    monkeypatch.setattr(recomputing, "connected", connected)
    # To a stream that lasts only as long as a test, for the rest of this process.
    monkeypatch.setattr(operation, "configure_logging", lambda **_: None)
    return world


@pytest.fixture
def reminder_id(world: World, tmp_path: Path) -> Iterator[str]:
    """One that moves with the data now in use, beside one that doesn't."""
    with zonedata.installed(zonedata.release(tmp_path, "2026g")):
        asyncio.run(world.create(At(instant=datetime.fromisoformat("2026-07-01T08:00Z"))))
        moves = asyncio.run(world.create(JULY))
    with zonedata.installed(
        zonedata.release(tmp_path, "2026h", {"Africa/Algiers": "Europe/Paris"})
    ):
        yield moves


def test_zones_shows_what_is_in_use_and_where_it_is_from(tocsin: Tocsin) -> None:
    """Without a store."""
    result = tocsin("zones")
    assert result.code == 0
    assert f"zone data  {zone_data_version()}: {len(zone_names())} zones" in result.out
    assert "tzdata" in result.out
    assert f"holidays   {holiday_data_version()}" in result.out
    shown = json.loads(tocsin("zones", "--json").out)
    assert shown["zone_data"] == zone_data_version()
    assert shown["zones"] == len(zone_names()) > 400
    assert Path(shown["folder"], "zoneinfo", "Europe", "Paris").is_file()


def test_a_dry_run_is_the_default_and_says_what_would_move(
    tocsin: Tocsin, world: World, reminder_id: str
) -> None:
    """Reminder, local promise, zone, both instants; and how to do it."""
    result = tocsin("zones", "recompute")
    assert (result.code, result.err) == (0, "")
    head, row, *rest = result.out.splitlines()
    assert head.split()[:1] == ["REMINDER"]
    assert "WOULD BE (UTC)" in head
    assert row.split() == [
        *(reminder_id, "2026-07-01T09:00:00", "Africa/Algiers"),
        *("2026-07-01", "08:00:00Z", "2026-07-01", "07:00:00Z"),
    ]
    assert rest[0].startswith("2 reminders looked at, 1 of them ahead under older data")
    assert "1 occurrences would move, 0 fall away, 0 reminders left as they are" in rest[0]
    assert rest[1:] == ["nothing was changed: --apply does it"]
    assert asyncio.run(world.stored(reminder_id)).record.version == 1


def test_apply_moves_and_a_repeat_finds_nothing(
    tocsin: Tocsin, world: World, reminder_id: str
) -> None:
    """Its words are of what was done."""
    result = tocsin("zones", "recompute", "--apply")
    assert result.code == 0
    assert " IS (UTC)" in result.out
    assert "1 occurrences moved" in result.out
    assert "--apply" not in result.out
    assert asyncio.run(world.stored(reminder_id)).record.version == 2
    again = tocsin("zones", "recompute", "--apply")
    assert again.out.startswith("2 reminders looked at, 0 of them ahead under older data")


def test_json_is_a_line_for_each_event(tocsin: Tocsin, world: World, reminder_id: str) -> None:
    """The last one has the sums."""
    result = tocsin("zones", "recompute", "--json")
    moved, totals = [json.loads(line) for line in result.out.splitlines()]
    assert moved == {
        "event": "moved",
        "namespace": "ns",
        "reminder_id": reminder_id,
        "occurrence_id": "20260701T090000",
        "planned_local": "2026-07-01T09:00:00",
        "zone": "Africa/Algiers",
        "old_instant": "2026-07-01T08:00:00Z",
        "new_instant": "2026-07-01T07:00:00Z",
        "note": "",
    }
    assert totals == {
        "event": "totals",
        "records": 2,
        "older": 1,
        "moved": 1,
        "dropped": 0,
        "newer": 0,
        "failed": 0,
        "resumed_at": 0.0,
    }


def test_what_had_to_be_left_is_told_and_makes_it_fail(
    tocsin: Tocsin, world: World, reminder_id: str, tmp_path: Path
) -> None:
    """So that whoever runs it by a timer notices."""
    with zonedata.installed(zonedata.release(tmp_path, "2026i")):
        newer = asyncio.run(world.create(JULY))
    result = tocsin("zones", "recompute")
    assert result.code == 1
    assert f"{newer} " in result.out
    assert "newer data computed it" in result.out
    assert "error: 1 reminders had to be left as they were" in result.err
    assert "1 were computed with newer data: use that" in result.err


def test_older_data_than_walked_here_is_refused_with_the_remedy(
    tocsin: Tocsin, world: World, reminder_id: str, tmp_path: Path
) -> None:
    """What the newer one left in its place must stay there."""
    with zonedata.installed(zonedata.release(tmp_path, "2026i")):
        assert tocsin("zones", "recompute", "--apply").code == 0
    result = tocsin("zones", "recompute", "--apply")
    assert result.code == 1
    assert "zone data 2026i" in result.err
    assert "run it with tzdata and holidays at least as new" in result.err


def test_a_server_that_stays_away_ends_it_and_it_says_what_holds(
    tocsin: Tocsin, world: World, reminder_id: str
) -> None:
    """Where the next run goes on."""

    async def away(point: str) -> None:
        if point == "records.scan":
            raise StoreUnavailable(operation=point)

    world.on_point = away
    result = tocsin("zones", "recompute", "--apply")
    assert result.code == 1
    assert "Cassandra does not answer" in result.err
    assert "the same command goes on from here, once the servers answer" in result.err
    assert "nothing was changed" in tocsin("zones", "recompute").err


def test_a_rate_of_nothing_is_refused(tocsin: Tocsin) -> None:
    """It would never end."""
    result = tocsin("zones", "recompute", "--rate", "0")
    assert result.code == 2
    assert "--rate" in result.err

"""A world in which everything was made with old zone data."""

import asyncio
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from tests import zonedata
from tests.unit.lifecycle.world import World
from tests.unit.sweeping.support import (
    CHANGED,
)


@pytest.fixture(scope="session")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By name; Algiers changes with 2026h, and is as before in 2026j."""
    folder = tmp_path_factory.mktemp("zonedata")
    made = {"2026g": {}, "2026h": CHANGED, "2026i": CHANGED, "2026j": {}, "?": {}}
    return {name: zonedata.release(folder, name, like) for name, like in made.items()}


@pytest.fixture(autouse=True)
def old_data(releases: dict[str, Path]) -> Iterator[None]:
    """Everything is made with the old data, unless a test says otherwise."""
    with zonedata.installed(releases["2026g"]):
        yield


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """Whose clock jumps to what the walk waits for."""
    world = await World.led()

    async def jump(at: datetime) -> None:
        world.clock.move_to(max(at, world.now))
        await asyncio.sleep(0)

    monkeypatch.setattr(world.clock, "sleep_until", jump)
    return world

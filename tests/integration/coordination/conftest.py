"""A redis-server that one test may break, and an adapter on it."""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from redis.asyncio import Redis

from reminders.coordination import Lives, RedisCoordination, Timeouts
from tests.contract.coordination.support import (
    RedisServer,
    find_servers,
    no_server,
    start_server,
)

SERVERS = find_servers() or [Path("missing")]


@pytest.fixture(params=SERVERS, ids=lambda path: f"server{SERVERS.index(path)}")
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RedisServer]:
    """Started for this test, stopped after it."""
    if not request.param.exists():
        no_server()
    server = start_server(request.param, tmp_path)
    yield server
    server.stop()


@pytest.fixture
async def client(server: RedisServer) -> AsyncIterator[Redis]:
    """To look behind the adapter's back."""
    async with Redis.from_url(server.url, protocol=2, decode_responses=True) as client:
        yield client


@pytest.fixture
async def coordination(server: RedisServer) -> AsyncIterator[RedisCoordination]:
    """With short time-outs and short lives of consumers."""
    coordination = await RedisCoordination.connect(
        server.url,
        lookahead=timedelta(seconds=30),
        margin=timedelta(seconds=90),
        lives=Lives(consumer=timedelta(milliseconds=20)),
        timeouts=Timeouts(operation=timedelta(milliseconds=500), block=timedelta(milliseconds=100)),
    )
    yield coordination
    await coordination.close()

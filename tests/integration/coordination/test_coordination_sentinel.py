"""A replicated Redis behind sentinels: who is asked, what a fail-over does, what is refused."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from redis import Redis

from reminders.coordination import RedisCoordination, Severity, Timeouts
from reminders.coordination.connection import packed
from reminders.coordination.masters import Masters
from reminders.errors import CoordinationUnavailable
from reminders.localstack import redis as localredis
from reminders.localstack.datadir import Ports
from reminders.localstack.probe import redis_answers
from reminders.localstack.process import ServerProcess
from reminders.ports import LeaseAnswer
from reminders.sentinel_url import parse_sentinel_url
from tests.contract.coordination.support import LONG, NO_WAIT, SECOND, find_servers, no_server

HOST = "127.0.0.1"
SERVICE = "ringing"
DOWN_AFTER_MS = 2500
"""More than the replicas' lag of 2 s, after which an isolated master takes no writes."""


@dataclass(slots=True)
class Watched:
    """Servers by port; the first one begins as the master."""

    folder: Path
    ports: Ports
    program: Path
    servers: dict[int, ServerProcess] = field(default_factory=dict)
    sentinels: dict[int, ServerProcess] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """For the adapter."""
        hosts = ",".join(f"{HOST}:{port}" for port in self.sentinels)
        return f"redis+sentinel://{hosts}/{SERVICE}/0"

    def add(self, replicas: int, sentinels: int) -> None:
        """Starts them."""
        master: tuple[str, int] | None = None
        for number in range(1 + replicas):
            port = self.ports.choose(f"server {number}", HOST)
            settings = localredis.RedisSettings(
                directory=self.folder / f"server-{number}",
                host=HOST,
                port=port,
                replicated=True,
                replica_of=master,
            )
            self.servers[port] = localredis.launch(self.program, settings)
            master = master or (HOST, port)
        assert master is not None
        for number in range(sentinels):
            port = self.ports.choose(f"sentinel {number}", HOST)
            self.sentinels[port] = localredis.launch_sentinel(
                self.program,
                localredis.SentinelSettings(
                    directory=self.folder / f"sentinel-{number}",
                    host=HOST,
                    port=port,
                    service=SERVICE,
                    master=master,
                    quorum=sentinels // 2 + 1,
                    down_after_ms=DOWN_AFTER_MS,
                ),
            )
        for port, process in {**self.servers, **self.sentinels}.items():
            process.wait_until(
                lambda port=port: redis_answers(f"redis://{HOST}:{port}/0"),  # type: ignore[misc]
                timeout_s=20,
                progress=lambda _line: None,
            )

    def wait_until_all_know(self) -> None:
        """Until each sentinel knows all replicas and sentinels."""
        wanted = (len(self.servers) - 1, len(self.sentinels) - 1)
        for port in self.sentinels:
            with Redis(port=port) as client:
                deadline = time.monotonic() + 30
                while True:
                    state = client.sentinel_master(SERVICE)
                    if (state["num-slaves"], state["num-other-sentinels"]) == wanted:
                        break
                    assert time.monotonic() < deadline, state
                    time.sleep(0.05)

    def stop(self) -> None:
        """All of them, the stopped ones as well."""
        for process in [*self.servers.values(), *self.sentinels.values()]:
            process.process.kill()
            process.process.wait()


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    """No server runs yet."""
    programs = find_servers()
    if not programs:
        no_server()
    made = Watched(tmp_path, Ports(tmp_path / "ports.json"), programs[0])
    yield made
    made.stop()


@pytest.fixture
async def coordination(watched: Watched) -> AsyncIterator[RedisCoordination]:
    """On a master with two replicas and three sentinels."""
    watched.add(replicas=2, sentinels=3)
    watched.wait_until_all_know()
    coordination = await _connect(watched)
    yield coordination
    await coordination.close()


async def _connect(watched: Watched) -> RedisCoordination:
    return await RedisCoordination.connect(
        watched.url,
        lookahead=30 * SECOND,
        margin=90 * SECOND,
        timeouts=Timeouts(operation=SECOND / 2, block=LONG),
    )


def _master_port(coordination: RedisCoordination) -> int:
    masters = coordination._clients.masters
    assert masters is not None
    return masters.address[1]


async def _until_held(take: Callable[[], Awaitable[LeaseAnswer]]) -> LeaseAnswer:
    """The first answer that is one."""
    async with asyncio.timeout(30):
        while True:
            try:
                return await take()
            except CoordinationUnavailable:
                await asyncio.sleep(0.05)


@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_fail_over_is_followed(
    watched: Watched, coordination: RedisCoordination, fault: signal.Signals
) -> None:
    """Also of a master that hangs: nobody goes on waiting for it, reads blocked for long included;
    what was held counts as moved, and the time does not go backwards.
    """
    leases = coordination.leases
    assert await leases.acquire(3, "token") is LeaseAnswer.HELD
    waiting = {
        asyncio.create_task(coordination.jobs.read("c", [3], count=1, wait=LONG)),
        asyncio.create_task(coordination.hints.tail({3: "0"}, wait=LONG)),
    }
    await asyncio.sleep(0.1)
    assert not any(task.done() for task in waiting)
    before, now = _master_port(coordination), coordination.clock.now()
    began = time.monotonic()
    watched.servers[before].process.send_signal(fault)
    answer = await _until_held(lambda: _renewed(coordination))
    assert answer is not LeaseAnswer.HELD
    assert _master_port(coordination) != before
    done, late = await asyncio.wait(waiting, timeout=2)
    assert not late, f"still waits for a master that is gone {time.monotonic() - began:.1f} s"
    assert all(isinstance(task.exception(), CoordinationUnavailable) for task in done)
    assert await _until_held(lambda: leases.acquire(3, "new")) is LeaseAnswer.HELD
    assert await coordination.jobs.read("c", [3], count=1, wait=NO_WAIT) == []
    assert now < coordination.clock.now()
    assert coordination.clock.in_bounds()


async def _renewed(coordination: RedisCoordination) -> LeaseAnswer:
    return (await coordination.leases.renew({3: "token"}))[3]


async def test_a_well_watched_server_has_no_findings(coordination: RedisCoordination) -> None:
    """As `localstack` sets it up: two replicas, one of which must follow, three sentinels."""
    assert await coordination.inspect() == []


async def test_too_few_to_survive_a_loss_are_refused(watched: Watched) -> None:
    """One replica is too few, one sentinel has no majority, and the master must stop in time."""
    watched.add(replicas=1, sentinels=1)
    watched.wait_until_all_know()
    with Redis(port=next(iter(watched.servers))) as client:
        client.config_set("min-replicas-max-lag", 3)
    coordination = await _connect(watched)
    try:
        found = {one.name: one.severity for one in await coordination.inspect()}
    finally:
        await coordination.close()
    assert found["replicas_known"] is Severity.REFUSE
    assert found["isolation_lag"] is Severity.REFUSE, "3 s are more than the sentinels' 2.5 s"
    assert found["sentinels"] is Severity.WARNING


class ToldSentinel:
    """Answers every question with what a test tells it to; silent if that is None."""

    def __init__(self) -> None:
        self.says: tuple[str, int] | None = None
        """The master's host, and the epoch."""

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        """The port."""
        server = await asyncio.start_server(self._serve, HOST, 0)
        yield server.sockets[0].getsockname()[1]
        server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while request := await reader.read(4096):
            if b"SENTINEL" not in request:
                writer.write(b"+OK\r\n" * request.count(b"*"))
            elif self.says is not None:
                host, epoch = self.says
                fields = {
                    "ip": host,
                    "port": "6379",
                    "config-epoch": str(epoch),
                    "num-slaves": "2",
                    "num-other-sentinels": "1",
                    "down-after-milliseconds": "3000",
                }
                words = [word.encode() for pair in fields.items() for word in pair]
                writer.write(b"*%d\r\n" % len(words) + packed(*words))
        writer.close()


async def test_the_sentinel_with_the_later_epoch_is_believed() -> None:
    """One that is cut off from the others goes on naming the old master, or is silent."""
    cut_off, other = ToldSentinel(), ToldSentinel()
    moves = []
    async with cut_off.listening() as first, other.listening() as second:
        masters = Masters(
            parse_sentinel_url(f"redis+sentinel://{HOST}:{first},{HOST}:{second}/{SERVICE}")
        )

        async def moved() -> None:
            moves.append(masters.address[0])

        cut_off.says = other.says = ("old", 4)
        try:
            await masters.start(moved)
            assert masters.address == ("old", 6379)
            other.says = ("new", 5)
            await masters.look()
            assert masters.address == ("new", 6379)
            other.says = None
            await masters.look()
            assert masters.address == ("new", 6379), "what was heard later counts on"
            assert moves == ["new"]
        finally:
            await masters.close()


async def test_no_sentinel_that_answers_is_unavailable() -> None:
    """And so is a service that they do not know."""
    with pytest.raises(CoordinationUnavailable):
        await RedisCoordination.connect(
            f"redis+sentinel://{HOST}:1,{HOST}:2/{SERVICE}",
            lookahead=timedelta(seconds=1),
            margin=timedelta(seconds=1),
        )

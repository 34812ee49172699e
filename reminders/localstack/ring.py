"""Servers that survive the loss of one: a Cassandra of three nodes, a Redis with two replicas.

    with ring(Path(".local/ring"), progress=print) as servers:
        ...                        # servers.endpoints; servers.nodes[1].kill(), .start(), …

Three sentinels watch the Redis. All is on this machine: the nodes on 127.0.0.1, .2 and .3 with
small heaps, all else on 127.0.0.1. A run begins with empty servers. For a shell there is
`python -m reminders.localstack --ring`; the chaos tests take the servers down one by one.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from reminders.localstack import cassandra, redis, runtime
from reminders.localstack.datadir import Ports, hold
from reminders.localstack.probe import cassandra_answers, redis_answers
from reminders.localstack.process import ServerProcess
from reminders.localstack.provide import LOOPBACK, START_TIMEOUT_S, Endpoints

ADDRESSES: Final = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
REPLICAS: Final = 2
SENTINELS: Final = 3
SERVICE: Final = "tocsin"
HEAP: Final = "512M"


@dataclass(slots=True, kw_only=True)
class Server:
    """One of them, which can be taken down and started again with the data it had."""

    name: str
    address: tuple[str, int]
    launch: Callable[[], ServerProcess]
    answers: Callable[[], bool]
    progress: Callable[[str], None]
    directory: Path
    process: ServerProcess | None = None

    def start(self) -> None:
        """Does not wait; see `wait`."""
        self.process = self.launch()

    def wait(self) -> None:
        """Until it answers."""
        assert self.process is not None
        self.process.wait_until(self.answers, timeout_s=START_TIMEOUT_S, progress=self.progress)

    def kill(self) -> None:
        """As `kill -9`."""
        if self.process is not None:
            self.process.process.kill()
            self.process.process.wait()
            self.process = None

    def pause(self) -> None:
        """SIGSTOP: connections stay open, nothing answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self._signal(signal.SIGCONT)

    def erase(self) -> None:
        """Of one that is down: its data, not its configuration."""
        for path in self.directory.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.suffix != ".conf":
                path.unlink()

    def _signal(self, number: signal.Signals) -> None:
        assert self.process is not None, f"{self.name} is down"
        self.process.process.send_signal(number)


@dataclass(slots=True, kw_only=True)
class Ring:
    """All of them."""

    nodes: list[Server] = field(default_factory=list)
    """Of Cassandra."""
    redis: list[Server] = field(default_factory=list)
    """The first one begins as the master."""
    sentinels: list[Server] = field(default_factory=list)

    @property
    def endpoints(self) -> Endpoints:
        """Every node, and the sentinels."""
        return Endpoints(
            cassandra_hosts=_joined(self.nodes),
            redis_url=f"redis+sentinel://{_joined(self.sentinels)}/{SERVICE}",
        )

    @property
    def servers(self) -> list[Server]:
        """In the order of their start."""
        return [*self.redis, *self.sentinels, *self.nodes]

    def stop(self) -> None:
        """Ends all that run, the stopped ones as well."""
        running = [server.process for server in self.servers if server.process is not None]
        for process in running:
            process.process.send_signal(signal.SIGCONT)
            process.ask_to_stop()
        for process in running:
            process.stop()


@contextmanager
def ring(
    data_dir: Path, *, progress: Callable[[str], None], heap: str = HEAP, hints: bool = True
) -> Iterator[Ring]:
    """Empty servers that answer, for the length of a `with` block.

    Raises:
        StepFailedError: names the step, why, and what to do.
    """
    data_dir = data_dir.expanduser().resolve()
    with ExitStack() as stack:
        lock = stack.enter_context(hold(data_dir, progress))
        for name in ("cassandra", "redis", "sentinel"):
            for old in data_dir.glob(f"{name}-*"):
                shutil.rmtree(old)
        maker = _Maker(data_dir, progress, lock)
        made = Ring()
        stack.callback(made.stop)
        maker.add_redis(made)
        maker.add_nodes(made, heap=heap, hints=hints)
        for server in made.servers:
            server.start()
        for server in made.servers:
            server.wait()
        yield made


class _Maker:
    """Settings and ports of one data folder."""

    def __init__(self, data_dir: Path, progress: Callable[[str], None], lock: int) -> None:
        self._data_dir = data_dir
        self._progress = progress
        self._lock = lock
        self._ports = Ports(data_dir / "ports.json")

    def add_redis(self, made: Ring) -> None:
        """A master, its replicas, their sentinels."""
        program = redis.find(runtime.cache_dir(), self._progress)
        master: tuple[str, int] | None = None
        for number in range(1, 1 + REPLICAS + 1):
            port = self._ports.choose(f"Redis {number}", LOOPBACK)
            settings = redis.RedisSettings(
                directory=self._data_dir / f"redis-{number}",
                host=LOOPBACK,
                port=port,
                replicated=True,
                replica_of=master,
            )
            master = master or (LOOPBACK, port)
            made.redis.append(
                self._server(
                    f"redis-{number}",
                    (LOOPBACK, port),
                    lambda settings=settings: redis.launch(  # type: ignore[misc]
                        program, settings, keep_open=[self._lock]
                    ),
                )
            )
        assert master is not None
        for number in range(1, SENTINELS + 1):
            port = self._ports.choose(f"Sentinel {number}", LOOPBACK)
            watcher = redis.SentinelSettings(
                directory=self._data_dir / f"sentinel-{number}",
                host=LOOPBACK,
                port=port,
                service=SERVICE,
                master=master,
                quorum=SENTINELS // 2 + 1,
            )
            made.sentinels.append(
                self._server(
                    f"sentinel-{number}",
                    (LOOPBACK, port),
                    lambda watcher=watcher: redis.launch_sentinel(  # type: ignore[misc]
                        program, watcher, keep_open=[self._lock]
                    ),
                )
            )

    def add_nodes(self, made: Ring, *, heap: str, hints: bool) -> None:
        """All of them seeds: none has data to fetch, so they may start at once."""
        java, jars = runtime.find_java(), runtime.cassandra_jars(self._progress)
        cql_port = self._ports.choose("Cassandra", LOOPBACK)
        storage_port = self._ports.choose("Cassandra's peers", LOOPBACK)
        for number, address in enumerate(ADDRESSES, 1):
            settings = cassandra.CassandraSettings(
                directory=self._data_dir / f"cassandra-{number}",
                address=address,
                cql_port=cql_port,
                storage_port=storage_port,
                seeds=ADDRESSES,
                heap=heap,
                hints=hints,
            )
            made.nodes.append(
                self._server(
                    f"cassandra-{number}",
                    (address, cql_port),
                    lambda settings=settings: cassandra.launch(  # type: ignore[misc]
                        java, jars, settings, keep_open=[self._lock]
                    ),
                )
            )

    def _server(
        self, name: str, address: tuple[str, int], launch: Callable[[], ServerProcess]
    ) -> Server:
        cql = name.startswith("cassandra")

        def answers() -> bool:
            if cql:
                return cassandra_answers(*address)
            return redis_answers("redis://{}:{}/0".format(*address))

        return Server(
            name=name,
            address=address,
            launch=launch,
            answers=answers,
            progress=self._progress,
            directory=self._data_dir / name,
        )


def _joined(servers: list[Server]) -> str:
    return ",".join("{}:{}".format(*server.address) for server in servers)

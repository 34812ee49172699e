"""The ports as a process sees them: each call crosses a network and may be interfered with.

```
 call ──▶ latency ──▶ arrives: takes effect at once, in one step ──▶ latency ──▶ answer
   │                     │                                             │
 trap: lost, late,     cut off? nothing happens                     cut off? nobody hears it
 crash, pause, …       blocking read, nothing there? waits
```
The adapters in memory never wait by themselves, so a call is driven to its end when it arrives.
What was sent takes effect even if the sender is dead by then.
"""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from functools import partial
from inspect import iscoroutinefunction
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from reminders.errors import CoordinationUnavailable, StoreUnavailable, TocsinError, Unavailable
from reminders.ports import Coordination, Store
from tests.simulation.plan import Interference
from tests.simulation.process import Process

if TYPE_CHECKING:
    from tests.simulation.network import Network

Method = Callable[..., Coroutine[Any, Any, Any]]

MS = 1_000
TIME_OUT_US = {"redis": 1_500 * MS, "store": 5_000 * MS}
"""As the real adapters have it."""
BLOCKING = {"jobs.read", "fires.read", "hints.tail"}
REPEATABLE = {
    *("due.put", "due.mark", "due.handled", "due.expanded"),
    *("records.create", "records.add_live", "records.drop_live"),
    *("users.add", "users.remove", "ledger.write", "progress.advance"),
}
"""Plain writes: the driver, or the server, may make them twice."""


class Call(Struct):
    """One call on its way."""

    process: Process
    server: str
    name: str
    method: Method
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    answer: asyncio.Future[Any]
    trap: Interference | None = None
    until_us: int = 0
    """A blocking read waits until then."""
    result: Any = None

    def error(self) -> Unavailable:
        """What the caller is told when there is no answer."""
        kind = CoordinationUnavailable if self.server == "redis" else StoreUnavailable
        return kind(operation=self.name)


class Link:
    """One process's connections to both servers."""

    def __init__(self, network: "Network", process: Process) -> None:
        self._network = network
        self._process = process
        self.store = cast("Store", self._remote("store", network.store))
        self.coordination = cast("Coordination", self._remote("redis", network.coordination))
        self.time = partial(self._send, "redis", "time", network.redis_time)

    def _remote(self, server: str, whole: object) -> SimpleNamespace:
        remote = SimpleNamespace(**self._methods(server, "", whole))
        for name, port in vars(whole).items():
            methods = {} if name.startswith("_") else self._methods(server, f"{name}.", port)
            if methods:
                setattr(remote, name, SimpleNamespace(**methods))
        return remote

    def _methods(self, server: str, prefix: str, port: object) -> dict[str, Any]:
        return {
            name: partial(self._send, server, prefix + name, getattr(port, name))
            for name in dir(type(port))
            if not name.startswith("_") and iscoroutinefunction(getattr(type(port), name))
        }

    def _send(
        self, server: str, name: str, method: Method, /, *arguments: Any, **options: Any
    ) -> "asyncio.Future[Any]":
        process = self._process
        if not process.alive:
            raise asyncio.CancelledError
        answer: asyncio.Future[Any] = asyncio.Future(loop=process.loop)
        self._network.send(Call(process, server, name, method, arguments, options, answer))
        return answer


def drive(call: Call) -> Any:
    """What the method returns; it must not wait."""
    return at_once(call.method(*call.arguments, **call.options))


def at_once(work: Coroutine[Any, Any, Any]) -> Any:
    """What a method of the adapters in memory returns; none of them waits."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    work.close()
    raise AssertionError(f"{work!r} waits")


def without_waiting(call: Call) -> Call:
    """A blocking read, to be tried at once; remembers how long it may wait."""
    wait: timedelta = call.options["wait"]
    call.until_us = call.process.loop.now_us + int(wait.total_seconds() * 1e6)
    call.options = {**call.options, "wait": timedelta(0)}
    return call


def failed(error: BaseException) -> bool:
    """Whether an error is an answer rather than a bug of the simulation."""
    return isinstance(error, TocsinError)

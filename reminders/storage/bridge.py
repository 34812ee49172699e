"""The driver's futures as awaitables, and its errors as the domain's.

The driver completes requests on its own thread. Each completion is put into a deque, and only the
first since the loop last looked wakes it: under load one `call_soon_threadsafe` serves hundreds of
completions.
"""

import asyncio
from collections import deque
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from cassandra import OperationTimedOut, RequestExecutionException
from cassandra.cluster import EXEC_PROFILE_DEFAULT, NoHostAvailable, Session
from cassandra.connection import ConnectionBusy, ConnectionException
from cassandra.pool import NoConnectionsAvailable
from cassandra.protocol import RequestExecutionException as ServerRequestError
from cassandra.protocol import ServerError

from reminders.errors import StoreUnavailable
from reminders.storage.wire import Mutation, batch

T = TypeVar("T")

Row = tuple[Any, ...]

UNAVAILABLE = (
    OperationTimedOut,
    RequestExecutionException,  # time-outs, failures of replicas, too few of them
    ServerRequestError,  # overloaded, bootstrapping
    ServerError,
    NoHostAvailable,
    NoConnectionsAvailable,
    ConnectionException,
    ConnectionBusy,
)
"""What the driver raises for a Cassandra that is down, slow or short of replicas."""

MAX_SINGLE_REQUESTS = 256
"""Single statements under way at once; more would only queue up at the server."""


@contextmanager
def translated(operation: str) -> Iterator[None]:
    """Turns the driver's errors into `StoreUnavailable`, once for the whole adapter."""
    try:
        yield
    except UNAVAILABLE as error:
        raise StoreUnavailable(operation=operation) from error


async def together(steps: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Runs steps at once; the first error ends all, and is raised bare."""
    if len(steps) == 1:
        return [await steps[0]]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(step, name="storage") for step in steps]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from errors
    return [task.result() for task in tasks]


class Bridge:
    """Sends requests from one event loop."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._profile = session.get_execution_profile(EXEC_PROFILE_DEFAULT)
        self._loop = asyncio.get_running_loop()
        self._completed: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._woken = False
        self._singles = asyncio.Semaphore(MAX_SINGLE_REQUESTS)

    async def run(self, bound: Any) -> list[Row]:
        """The rows of one bound statement. Raises the driver's errors: see `translated`."""
        async with self._singles:
            future = self._loop.create_future()
            self._session.execute_async(bound).add_callbacks(
                self._succeeded, self._failed, callback_args=(future,), errback_args=(future,)
            )
            rows: list[Row] | None = await future
            return rows or []

    def batch(
        self, mutations: Sequence[Mutation], *, conditional: bool = False, row_factory: Any = None
    ) -> asyncio.Future[Any]:
        """Sends rows as one unlogged batch. Raises the driver's errors when awaited."""
        future = self._loop.create_future()
        response = batch(
            self._session,
            self._profile,
            mutations,
            conditional=conditional,
            row_factory=row_factory,
        )
        response.add_callbacks(
            self._succeeded, self._failed, callback_args=(future,), errback_args=(future,)
        )
        response.send_request()
        return future

    # on the driver's thread, or on ours where sending failed at once

    def _succeeded(self, rows: Any, future: asyncio.Future[Any]) -> None:
        self._complete(future, rows, None)

    def _failed(self, error: BaseException, future: asyncio.Future[Any]) -> None:
        self._complete(future, None, error)

    def _complete(
        self, future: asyncio.Future[Any], rows: Any, error: BaseException | None
    ) -> None:
        # Append first, then look at the flag; `_drain` clears it first, then pops. So whatever is
        # appended after its last pop sees the flag cleared and wakes the loop again.
        self._completed.append((future, rows, error))
        if not self._woken:
            self._woken = True
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        self._woken = False
        while self._completed:
            future, rows, error = self._completed.popleft()
            if future.done():  # the caller was cancelled
                continue
            if error is None:
                future.set_result(rows)
            else:
                future.set_exception(error)

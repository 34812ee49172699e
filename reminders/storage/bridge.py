"""The driver's futures as awaitables, and its errors as the domain's.

The driver completes requests on the loop's thread (`reactor`), sometimes on one of its own. Each
completion is put into a deque, and only the first since the loop last looked wakes it: under load
one `call_soon_threadsafe` serves hundreds of completions.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from cassandra import OperationTimedOut, RequestExecutionException
from cassandra.cluster import EXEC_PROFILE_DEFAULT, NoHostAvailable, Session
from cassandra.connection import ConnectionBusy, ConnectionException
from cassandra.pool import NoConnectionsAvailable
from cassandra.protocol import RequestExecutionException as ServerRequestError
from cassandra.protocol import ServerError
from cassandra.query import dict_factory

from reminders.errors import StoreUnavailable
from reminders.storage.wire import CONDITIONAL_TIMEOUT_S, Mutation, batch

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
"""Single statements and conditional batches under way at once; more would only queue up at the
server. One that its caller gave up counts until the driver is done with it: while the server hangs,
calls that come and go must not add up."""


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


Done = Callable[[Any, BaseException | None], None]
"""Told the rows or the driver's error."""


class Bridge:
    """Sends requests from one event loop."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._profile = session.get_execution_profile(EXEC_PROFILE_DEFAULT)
        self._loop = asyncio.get_running_loop()
        self._completed: deque[tuple[Done, Any, BaseException | None]] = deque()
        self._woken = False
        self._singles = asyncio.Semaphore(MAX_SINGLE_REQUESTS)

    async def run(self, bound: Any) -> list[Row]:
        """The rows of one bound statement. Raises the driver's errors: see `translated`."""
        rows: list[Row] | None = await self._single(lambda: self._execute(bound))
        return rows or []

    def _execute(self, bound: Any) -> Any:
        if bound.is_idempotent:
            return self._session.execute_async(bound)
        return self._session.execute_async(bound, timeout=CONDITIONAL_TIMEOUT_S)

    def send(self, mutations: Sequence[Mutation], done: Done) -> None:
        """Sends rows as one unlogged batch; calls `done` in the loop, with the driver's error or
        None.
        """
        response = batch(self._session, self._profile, mutations)
        self._expect(response, done)
        response.send_request()

    async def run_conditional(self, mutations: Sequence[Mutation]) -> list[dict[str, Any]]:
        """The same for conditional rows of one partition: what the server says, by column name."""

        def send() -> Any:
            response = batch(
                self._session, self._profile, mutations, conditional=True, row_factory=dict_factory
            )
            response.send_request()
            return response

        rows: list[dict[str, Any]] = await self._single(send)
        return rows

    async def _single(self, send: Callable[[], Any]) -> Any:
        """Sends in its turn."""
        await self._singles.acquire()
        future = self._loop.create_future()

        def done(rows: Any, error: BaseException | None) -> None:
            self._singles.release()
            _resolve(future, rows, error)

        try:
            response = send()
        except BaseException:
            self._singles.release()
            raise
        self._expect(response, done)
        return await future

    def _expect(self, response: Any, done: Done) -> None:
        response.add_callbacks(
            self._succeeded, self._failed, callback_args=(done,), errback_args=(done,)
        )

    # on the loop's thread, or on one of the driver's

    def _succeeded(self, rows: Any, done: Done) -> None:
        self._complete(done, rows, None)

    def _failed(self, error: BaseException, done: Done) -> None:
        self._complete(done, None, error)

    def _complete(self, done: Done, rows: Any, error: BaseException | None) -> None:
        # Append first, then look at the flag; `_drain` clears it first, then pops. So whatever is
        # appended after its last pop sees the flag cleared and wakes the loop again.
        self._completed.append((done, rows, error))
        if not self._woken:
            self._woken = True
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        self._woken = False
        while self._completed:
            done, rows, error = self._completed.popleft()
            done(rows, error)


def _resolve(future: asyncio.Future[Any], rows: Any, error: BaseException | None) -> None:
    if future.done():  # the caller was cancelled
        return
    if error is None:
        future.set_result(rows)
    else:
        future.set_exception(error)

"""Driver futures as awaitables, against a session that completes them on a thread."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from cassandra import InvalidRequest, OperationTimedOut, Unavailable
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionShutdown
from cassandra.protocol import OverloadedErrorMessage

from reminders.errors import StoreUnavailable
from reminders.storage.bridge import MAX_SINGLE_REQUESTS, Bridge, together, translated
from reminders.storage.wire import CONDITIONAL_TIMEOUT_S


class Response:
    """A `ResponseFuture`, as far as the bridge uses it."""

    succeed: Callable[[Any], None]
    fail: Callable[[BaseException], None]

    def add_callbacks(
        self, callback: Any, errback: Any, *, callback_args: Any, errback_args: Any
    ) -> None:
        """Keeps them."""
        self.succeed = lambda rows: callback(rows, *callback_args)
        self.fail = lambda error: errback(error, *errback_args)


class Bound:
    """A statement, as far as the bridge looks at it."""

    is_idempotent = True


class Session:
    """Hands out responses."""

    def __init__(self) -> None:
        self.responses: list[Response] = []
        self.options: list[dict[str, float]] = []

    def get_execution_profile(self, _name: Any) -> None:
        """Not needed."""

    def execute_async(self, _statement: Any, **options: float) -> Response:
        """One more."""
        self.options.append(options)
        self.responses.append(Response())
        return self.responses[-1]


def on_a_thread(work: Any) -> None:
    """Runs it there to its end."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


async def test_many_completions_wake_the_loop_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many the driver's thread completes before the loop looks."""
    session = Session()
    bridge = Bridge(session)
    loop = asyncio.get_running_loop()
    wakes = 0
    wake = loop.call_soon_threadsafe

    def counted(*args: Any) -> Any:
        nonlocal wakes
        wakes += 1
        return wake(*args)

    monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
    callers = [asyncio.create_task(bridge.run(Bound()), name=f"run {n}") for n in range(100)]
    await asyncio.sleep(0)

    def complete() -> None:
        for n, response in enumerate(session.responses):
            response.succeed([(n,)])

    on_a_thread(complete)
    assert await asyncio.gather(*callers) == [[(n,)] for n in range(100)]
    assert wakes == 1


async def test_an_lwt_waits_for_less_time() -> None:
    """It is asked of one node only: one that hangs must not cost its caller the whole limit."""
    session = Session()
    conditional = Bound()
    conditional.is_idempotent = False
    caller = asyncio.create_task(Bridge(session).run(conditional), name="run")
    await asyncio.sleep(0)
    assert session.options == [{"timeout": CONDITIONAL_TIMEOUT_S}]
    on_a_thread(lambda: session.responses[0].succeed([(True,)]))
    assert await caller == [(True,)]


async def test_no_rows_are_an_empty_list() -> None:
    """Writes answer None."""
    session = Session()
    caller = asyncio.create_task(Bridge(session).run(Bound()), name="run")
    await asyncio.sleep(0)
    on_a_thread(lambda: session.responses[0].succeed(None))
    assert await caller == []


async def test_errors_reach_the_caller_and_a_cancelled_one_does_not_mind() -> None:
    """An answer that nobody waits for is dropped; the others are served."""
    session = Session()
    bridge = Bridge(session)
    first, second = (asyncio.create_task(bridge.run(Bound()), name=f"run {n}") for n in (1, 2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)

    def fail() -> None:
        for response in session.responses:
            response.fail(OperationTimedOut())

    on_a_thread(fail)
    with pytest.raises(OperationTimedOut):
        await second


async def test_requests_given_up_count_until_the_driver_is_done_with_them() -> None:
    """While the server hangs, calls that come and go send no more than so many."""
    session = Session()
    bridge = Bridge(session)

    async def call(number: int) -> list[Any]:
        return await bridge.run(Bound())

    gone = [asyncio.create_task(call(n), name=f"gone {n}") for n in range(2 * MAX_SINGLE_REQUESTS)]
    await asyncio.sleep(0)
    for task in gone:
        task.cancel()
    await asyncio.wait(gone)
    patient = asyncio.create_task(call(-1), name="patient")
    await asyncio.sleep(0)
    assert len(session.responses) == MAX_SINGLE_REQUESTS
    on_a_thread(lambda: session.responses[0].fail(OperationTimedOut()))
    for _ in range(5):
        await asyncio.sleep(0)
    on_a_thread(lambda: session.responses[-1].succeed([(1,)]))
    assert await patient == [(1,)]


@pytest.mark.parametrize(
    "error",
    [
        OperationTimedOut(),
        Unavailable("short"),
        NoHostAvailable("none", {}),
        ConnectionShutdown("gone"),
        OverloadedErrorMessage(0x1001, "busy", None),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_cassandra_that_is_down_is_unavailable(error: Exception) -> None:
    """With the step's name and the cause."""
    with pytest.raises(StoreUnavailable, match="a step") as caught, translated("a step"):
        raise error
    assert caught.value.__cause__ is error


def test_mistakes_stay_what_they_are() -> None:
    """A wrong statement is no outage."""
    with pytest.raises(InvalidRequest), translated("a step"):
        raise InvalidRequest("bug")


async def test_together_raises_the_first_error_bare() -> None:
    """Not as a group, so that it can be translated."""

    async def step(error: Exception | None) -> int:
        await asyncio.sleep(0)
        if error is not None:
            raise error
        return 1

    assert await together([step(None), step(None)]) == [1, 1]
    assert await together([]) == []
    with pytest.raises(OperationTimedOut):
        await together([step(None), step(OperationTimedOut())])

"""An event loop without I/O whose time passes only when nobody has anything left to do.

Tasks of a process carry it in their context, so the loop can freeze a process: what is ready to run
is then held back, and goes on when the process thaws, as after SIGSTOP and SIGCONT.
"""

import asyncio
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from heapq import heappop, heappush
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

Ready = tuple[Context, Callable[..., object], tuple[Any, ...]]


class Freezable(Protocol):
    """What the loop knows of a process."""

    frozen: bool
    held: list[Ready]


PROCESS: ContextVar[Freezable | None] = ContextVar("process", default=None)
"""Whose code runs; None: the world's own."""


class Stuck(AssertionError):
    """Nothing is left to do and the future is not done: somebody waits for what never comes."""


class NumberedTask(asyncio.Task[T]):
    """Hashes by its number: sets of tasks, as in task groups, have the same order in every run."""

    def __init__(self, number: int, coro: Coroutine[Any, Any, T], **options: Any) -> None:
        self.number = number
        super().__init__(coro, **options)

    def __hash__(self) -> int:
        return self.number


class VirtualLoop(asyncio.AbstractEventLoop):
    """As much of an event loop as asyncio's own classes need, and `at` for the world's events.

    Time is in whole µs since the beginning.
    """

    def __init__(self) -> None:
        self.now_us = 0
        self.steps = 0
        self.current: Freezable | None = None
        """Whose code runs, or ran last."""
        self.mishaps: list[str] = []
        """What nobody caught."""
        self._ready: deque[Ready] = deque()
        self._timers: list[tuple[int, int, Callable[[Any], object], Any]] = []
        self._order = 0
        self._tasks = 0
        self._running = False
        self._nobody = copy_context()

    # --- the world's side -------------------------------------------------------------------------

    def at(self, when_us: int, event: Callable[[Any], object], argument: Any = None) -> None:
        """Calls `event(argument)` then, outside of any process; in order of the calls to `at`."""
        self._order += 1
        heappush(self._timers, (when_us, self._order, event, argument))

    def thaw(self, process: Freezable) -> None:
        """Lets it go on with what it was held back from."""
        process.frozen = False
        self._ready.extend(process.held)
        process.held.clear()

    def inside(self, process: Freezable, action: Callable[[], T]) -> T:
        """Acts as if the process did."""
        self.current = process
        try:
            return action()
        finally:
            self.current = None

    def run_until(self, future: asyncio.Future[T]) -> T:
        """The future's result. Raises `Stuck` if it can't come."""
        with self._in_charge():
            self._run(future)
        return future.result()

    def unwind(self, *tasks: asyncio.Task[Any]) -> None:
        """Cancels these and lets them end, in no time."""
        with self._in_charge():
            for task in tasks:
                task.cancel()
            self.settle()

    @contextmanager
    def _in_charge(self) -> Iterator[None]:
        self._running = True
        events._set_running_loop(self)
        try:
            yield
        finally:
            events._set_running_loop(None)
            self._running = False

    def settle(self) -> None:
        """What is ready runs, and what that makes ready; no time passes."""
        ready, process_of = self._ready, PROCESS
        while ready:
            context, callback, arguments = item = ready.popleft()
            process = context.get(process_of)
            if process is not None and process.frozen:
                process.held.append(item)
                continue
            self.current = process
            self.steps += 1
            context.run(callback, *arguments)

    def _run(self, future: asyncio.Future[Any]) -> None:
        timers, settle = self._timers, self.settle
        while True:
            settle()
            if future.done():
                return
            if not timers:
                raise Stuck("nothing is left to do")
            when_us, _, event, argument = heappop(timers)
            self.now_us = max(self.now_us, when_us)
            self.current = None
            self.steps += 1
            event(argument)

    # --- asyncio's side ---------------------------------------------------------------------------

    def time(self) -> float:
        """Seconds since the beginning."""
        return self.now_us / 1e6

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle | None:
        """Tasks and futures name their context and never cancel: they get no handle."""
        if context is not None:
            self._ready.append((context, callback, args))
            return None
        context = copy_context()
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append((context, self._if_wanted, (handle,)))
        return handle

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Never early by the virtual clock."""
        handle = asyncio.TimerHandle(when, callback, args, self, context or copy_context())
        self.at(-int(-when * 1e6 // 1), self._ring, handle)
        return handle

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """As `call_at`."""
        return self.call_at(self.now_us / 1e6 + delay, callback, *args, context=context)

    def _ring(self, handle: asyncio.TimerHandle) -> None:
        if not handle.cancelled():
            context: Context = handle._context  # type: ignore[attr-defined]
            self._ready.append((context, self._if_wanted, (handle,)))

    @staticmethod
    def _if_wanted(handle: asyncio.Handle) -> None:
        if not handle.cancelled():
            handle._callback(*handle._args)  # type: ignore[attr-defined]

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It stays in the heap and does nothing there."""

    def create_future(self) -> asyncio.Future[Any]:
        """A plain one."""
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Coroutine[Any, Any, T] | Generator[Any, None, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        """A numbered one."""
        assert asyncio.iscoroutine(coro)
        self._tasks += 1
        return NumberedTask(self._tasks, coro, loop=self, name=name, context=context)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Kept: the run fails for it."""
        cause = context.get("exception")
        self.mishaps.append(f"{context.get('message')}: {cause!r}")

    def get_debug(self) -> bool:
        """Debugging costs too much."""
        return False

    def is_running(self) -> bool:
        """While `run_until` is at work."""
        return self._running

    def is_closed(self) -> bool:
        """There is nothing to close."""
        return False


def virtual_loop() -> VirtualLoop:
    """A new one, at its beginning. What it does not implement, nobody here may call."""
    return VirtualLoop()  # type: ignore[abstract]

"""One stream of batches: in order, and reading no faster than the store takes.

At most `window` batches are between read and answered. Reading the next one waits for a place in
the window, and then for admission among all streams; what the client sends meanwhile stays in
HTTP/2's flow-control window, and the client's own writes block. So a store that stands still for
half a minute costs `window` batches, whatever the client holds back.

    read ──▶ admission ──▶ answer (a task for each batch) ──▶ write, in the order of reading
      ▲                                                            │
      └───────────────────── a place in the window ◀───────────────┘
"""

import asyncio
from collections.abc import Awaitable, Callable, Sized
from functools import partial
from typing import Generic, Protocol, TypeVar

from reminders.errors import TocsinError
from scheduler.admission import Admission, Draining


class Batch(Protocol):
    """A message that holds many requests."""

    @property
    def requests(self) -> Sized:
        """What it holds."""

    def ByteSize(self) -> int:  # noqa: N802 - protobuf's
        """Of the whole message."""


B = TypeVar("B", bound=Batch)
R = TypeVar("R")
Read = Callable[[], Awaitable[B | None]]
"""The next batch; None at the end. A `TocsinError` ends the stream as one of `Answer` does."""
Write = Callable[[R], Awaitable[None]]
Answer = Callable[[B], Awaitable[R | TocsinError]]
"""A `TocsinError` ends the stream after the answers to earlier batches."""


class BatchStream(Generic[B, R]):
    """One call's life."""

    def __init__(
        self,
        *,
        read: Read[B],
        write: Write[R],
        answer: Answer[B, R],
        admission: Admission,
        window: int,
    ) -> None:
        self._read = read
        self._write = write
        self._answer = answer
        self._admission = admission
        self._places = asyncio.Semaphore(window)
        self._answers: asyncio.Queue[asyncio.Task[R | TocsinError] | None] = asyncio.Queue()
        self._reading: asyncio.Task[None] | None = None
        self._draining = False

    async def run(self) -> None:
        """Returns when the client is done and answered. Raises what ends the stream early."""
        under_way: set[asyncio.Task[R | TocsinError]] = set()
        async with asyncio.TaskGroup() as group:
            self._reading = group.create_task(
                self._read_all(group, under_way), name="stream-reading"
            )
            self._reading.add_done_callback(lambda _: self._answers.put_nowait(None))
            if self._draining:
                self._reading.cancel()
            failure = await self._write_all()
            if failure is not None:
                self._reading.cancel()
                for task in under_way:
                    task.cancel()
        if failure is None and self._draining:
            failure = Draining(operation="stream")
        if failure is not None:
            raise failure

    def drain(self) -> None:
        """Reads no more; `run` answers what was read and raises `Draining`."""
        if self._reading is None or not self._reading.done():
            self._draining = True
        if self._reading is not None:
            self._reading.cancel()

    async def _read_all(
        self, group: asyncio.TaskGroup, under_way: set[asyncio.Task[R | TocsinError]]
    ) -> None:
        while True:
            await self._places.acquire()
            try:
                batch = await self._read()
            except TocsinError as error:
                self._answers.put_nowait(group.create_task(_failed(error), name="stream-unread"))
                return
            if batch is None:
                return
            creates, size = len(batch.requests), batch.ByteSize()
            await self._admission.enter(creates, size)
            task = group.create_task(self._safely(batch), name="stream-batch")
            under_way.add(task)
            task.add_done_callback(under_way.discard)
            task.add_done_callback(partial(self._left, creates, size))
            self._answers.put_nowait(task)

    def _left(self, creates: int, size: int, _task: asyncio.Task[R | TocsinError]) -> None:
        """A callback, for a task that is cancelled before it began runs no `finally`."""
        self._admission.leave(creates, size)

    async def _safely(self, batch: B) -> R | TocsinError:
        """Errors as values: a raised one would stop earlier batches before they are answered."""
        try:
            return await self._answer(batch)
        except TocsinError as error:
            return error

    async def _write_all(self) -> TocsinError | None:
        while (task := await self._answers.get()) is not None:
            answered = await task
            if isinstance(answered, TocsinError):
                return answered
            await self._write(answered)
            self._places.release()
        return None


class OpenStreams(Generic[B, R]):
    """The streams of one method, so that a drain ends them."""

    def __init__(self, answer: Answer[B, R], admission: Admission, window: int) -> None:
        self._answer = answer
        self._admission = admission
        self._window = window
        self._open: set[BatchStream[B, R]] = set()
        self._draining = False

    async def run(self, read: Read[B], write: Write[R]) -> None:
        """Batches until `read` gives None; waits where too many are under way."""
        if self._draining:
            raise Draining(operation="stream")
        stream = BatchStream(
            read=read,
            write=write,
            answer=self._answer,
            admission=self._admission,
            window=self._window,
        )
        self._open.add(stream)
        try:
            await stream.run()
        finally:
            self._open.discard(stream)

    def drain(self) -> None:
        """Ends them after the batches that they have read."""
        self._draining = True
        for stream in self._open:
            stream.drain()


async def _failed(error: TocsinError) -> TocsinError:
    return error

"""A thread with an event loop: where the receiver, the proxies and the witness live."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")

STOP_S = 10.0


class Backstage:
    """Scenarios are plain code that blocks; what must go on meanwhile goes on here."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="backstage", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.run(_cancel_others())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(STOP_S)
        self.loop.close()

    def begin(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Starts it there; does not wait."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def run(self, work: Coroutine[Any, Any, T], within_s: float = 120.0) -> T:
        """Runs it there, and waits for its result."""
        return self.begin(work).result(within_s)


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)

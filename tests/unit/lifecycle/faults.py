"""Faults at any step: a store and a Redis in memory tell where the code under test is."""

from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from reminders.errors import CoordinationUnavailable, StoreUnavailable, TocsinError

_behind_the_scenes: ContextVar[bool] = ContextVar("behind_the_scenes", default=False)

Point = Callable[[str], Awaitable[None]]


class Crash(BaseException):
    """The process died here."""


@dataclass
class behind_the_scenes:  # noqa: N801 - reads as a statement
    """What the test does itself passes no points."""

    def __enter__(self) -> None:
        self._token = _behind_the_scenes.set(True)

    def __exit__(self, *_: object) -> None:
        _behind_the_scenes.reset(self._token)


class Faults:
    """Points that are passed, one after the other, and what happens there."""

    def __init__(self) -> None:
        self.on_point: Point | None = None
        self.points: list[str] = []
        """Where the code under test has been."""

    async def passing(self, point: str) -> None:
        """The code under test is there; it fails here where it is to."""
        if _behind_the_scenes.get():
            return
        self.points.append(point)
        if self.on_point is not None:
            await self.on_point(point)

    async def dies_at(self, step: int, work: Coroutine[Any, Any, Any]) -> bool:
        """Whether the work died at its step-th point (from 0); else it had fewer."""
        return await self._fails_at(step, work, lambda _: Crash(), (Crash,))

    async def unavailable_at(self, step: int, work: Coroutine[Any, Any, Any]) -> bool:
        """As `dies_at`, but the server did not answer there: the work may try to go on."""

        def error(point: str) -> BaseException:
            redis = point.rpartition(".")[2] in ("before", "after")
            return (CoordinationUnavailable if redis else StoreUnavailable)(operation=point)

        return await self._fails_at(step, work, error, (TocsinError,))

    async def _fails_at(
        self,
        step: int,
        work: Coroutine[Any, Any, Any],
        error: Callable[[str], BaseException],
        expected: tuple[type[BaseException], ...],
    ) -> bool:
        passed = 0
        failed = False

        async def point(name: str) -> None:
            nonlocal passed, failed
            passed += 1
            if passed == step + 1:
                failed = True
                raise error(name)

        self.on_point = point
        try:
            await work
        except expected:
            pass
        finally:
            self.on_point = None
        return failed

"""Where faults and interleavings can be injected."""

from collections.abc import Awaitable, Callable

Hook = Callable[[str], Awaitable[None]]
"""Told the name of the point that was reached."""


class Points:
    """Base of the ports: they pass through named points."""

    def __init__(self, hook: Hook | None) -> None:
        self._hook = hook

    async def _point(self, name: str) -> None:
        if self._hook is not None:
            await self._hook(name)

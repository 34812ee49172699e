"""How far walks over all records have come."""

from reminders.memory.store.points import Hook, Points


class MemorySweeps(Points):
    """`reminders.ports.Sweeps`."""

    def __init__(self, hook: Hook | None) -> None:
        super().__init__(hook)
        self._states: dict[str, bytes] = {}

    async def read(self, name: str) -> bytes | None:
        """Looks."""
        await self._point("sweeps.read")
        return self._states.get(name)

    async def save(self, name: str, state: bytes, *, expected: bytes | None) -> bool:
        """Compares and sets."""
        await self._point("sweeps.save")
        saved = self._states.get(name) == expected
        if saved:
            self._states[name] = state
        await self._point("sweeps.save.done")
        return saved

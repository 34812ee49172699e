"""How far walks over all records have come."""

from typing import Protocol


class Sweeps(Protocol):
    """How far operations that walk over all records have come, by their names."""

    async def read(self, name: str) -> bytes | None:
        """What was saved last."""

    async def save(self, name: str, state: bytes, *, expected: bytes | None) -> bool:
        """Atomically replaces `expected`; False if something else stands there. Linearizable.

        After an error it may have been saved, now or later: read, and decide anew.
        """

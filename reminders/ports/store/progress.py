"""How far each shard is settled."""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol


class Progress(Protocol):
    """How far each shard is settled."""

    async def read(self) -> Mapping[int, datetime]:
        """`settled_through` by shard: every minute before it needs no more looking at."""

    async def advance(self, shard: int, settled_through: datetime) -> None:
        """Moves it forward; a smaller value than the stored one changes nothing."""

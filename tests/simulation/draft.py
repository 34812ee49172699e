"""A plan in the making."""

import random

from tests.simulation.plan import AnyItem
from tests.simulation.wishes import Create


class Draft:
    """A plan in the making."""

    def __init__(self, rng: random.Random, length: int, *, instances: int) -> None:
        self.rng = rng
        self.length = length
        self.instances = instances
        self._items: list[AnyItem] = []
        self._named = 0
        self.groups = 0
        """So many were named."""
        self.crowds = 0
        """Topics that have subscribers."""
        self.shift_s = 0
        """Of newer zone data: there is one release in a run."""

    def add(self, *items: AnyItem) -> None:
        """At whatever time."""
        self._items += items

    def in_order(self) -> tuple[AnyItem, ...]:
        """All of them, by time."""
        return tuple(sorted(self._items, key=lambda item: item.at))

    def any_time(self) -> int:
        """While reminders are about."""
        return self.rng.randrange(3_000, self.length)

    def some_time(self) -> int:
        """With room around it for what belongs together."""
        return self.rng.randrange(20_000, self.length - 10_000)

    def name(self) -> str:
        """A new one."""
        self._named += 1
        return f"r{self._named}"

    def reminder(self, rings: int, *, ahead: int = 15_000, **changes: object) -> str:
        """One that rings then; its name."""
        name = self.name()
        self.add(
            Create(
                at=max(2_000, rings - ahead - self.rng.randrange(3_000)),
                name=name,
                via=self.rng.randrange(3),
                rings=rings,
                **changes,  # type: ignore[arg-type]
            )
        )
        return name

    def one(self, service: str) -> str:
        """A process of the service."""
        return f"{service}-{self.rng.randrange(self.instances)}"

"""What is set aside in the code under test for a run: chance, machine time, metrics, the log; and
the size of a page of a fan-out.

Nothing of the protocol is among it.
"""

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any
from uuid import UUID

import dispatcher.destinations
import dispatcher.leg
import dispatcher.service
import dispatcher.stretch
import expander.service
import reminders.coordination.clock
import reminders.reminder_id
import scanner.service
from tests.simulation.process import HostTime

if TYPE_CHECKING:
    from tests.simulation.world import World

PAGE = 3
"""Subscribers of one page: small crowds have several pages, too."""
UNEXPECTED = "exception"
"""The level at which the services log what they hold for bugs."""


class Nothing:
    """Counts and reports nothing."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return _nothing

    def __call__(self, *_: object, **__: object) -> "Nothing":
        """Also what it makes is nothing."""
        return self


def _nothing(*_: object, **__: object) -> Nothing:
    return NOTHING


NOTHING = Nothing()


class Log:
    """Where the services' log lines go: into the trace; what they hold for a bug breaks the run."""

    def __init__(self, world: "World") -> None:
        self._world = world
        if world.history.trace is None:
            self.debug = self.info = self.warning = self.error = _nothing

    def __getattr__(self, level: str) -> Any:
        def tell(event: str, **fields: object) -> None:
            process = self._world.loop.current
            words = " ".join(f"{name}={value}" for name, value in fields.items())
            self._world.tell(getattr(process, "name", "?"), f"{level}: {event} {words}")

        return tell

    def bind(self, **_: object) -> "Log":
        """The same."""
        return self

    def exception(self, event: str, **fields: object) -> None:
        """A bug, by the services' own judgement."""
        cause = sys.exc_info()[1]
        self._world.broken(event, f"{cause!r} {fields}")


@cache
def modules() -> tuple[ModuleType, ...]:
    """Those of the code under test."""
    packages = ("dispatcher", "expander", "scanner", "reminders")
    return tuple(
        module for name, module in sys.modules.items() if name.partition(".")[0] in packages
    )


@contextmanager
def replaced(*places: tuple[object, str, object]) -> Iterator[None]:
    """Attributes have other values for as long as this lasts."""
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in places]
    for owner, name, value in places:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


@contextmanager
def tamed(world: "World") -> Iterator[None]:
    """The code under test, as the run of this world needs it."""
    rng = random.Random(f"ids {world.plan.seed}")
    time, log = HostTime(world.loop), Log(world)

    def uuid4() -> UUID:
        return UUID(bytes=rng.randbytes(16))

    with replaced(
        *((module, "log", log) for module in modules() if hasattr(module, "log")),
        (reminders.reminder_id, "token_bytes", rng.randbytes),
        (scanner.service, "uuid4", uuid4),
        (expander.service, "uuid4", uuid4),
        (dispatcher.stretch, "PAGE", PAGE),
        (scanner.service, "Metrics", Nothing),
        (dispatcher.service, "Reporter", Nothing),
        (expander.service, "metrics", NOTHING),
        (reminders.coordination.clock, "time", time),
    ):
        yield

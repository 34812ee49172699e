"""Faults planted on purpose: who guards the guards. The harness must find each of them.

    python -m tests.chaos --planted settled-first      plays the scenario that finds it

The harness starts the services through this module then (`python -m tests.chaos.planted dispatcher`
in place of `python -m dispatcher`), which breaks one rule and runs the service as it is. Nothing in
the product knows of it.
"""

import asyncio
import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from dispatcher.service import Dispatcher
from reminders.model.codec import decode_entry
from reminders.ports import Copy, Job
from tests.chaos.rules import Verdict

VARIABLE = "CHAOS_PLANTED"
"""Of the environment of a service: the name of its fault."""


WINDOW_S = 0.5
"""Between the mistake and its consequence: long enough for a signal to fall into it."""


class Planted(Struct, frozen=True, kw_only=True):
    """One broken rule."""

    plant: Callable[[], None]
    scenario: str
    """The function of the scenario that finds it."""
    found_as: str
    """What the judge calls it: `lost`, or words of a broken rule."""

    def found(self, verdict: Verdict) -> bool:
        """Whether the judge found it."""
        if self.found_as == "lost":
            return bool(verdict.lost)
        return any(self.found_as in broken for broken in verdict.broken)


def _settled_first() -> None:
    """A job is settled and acknowledged before it is sent: a crash in between loses it."""
    runs = Dispatcher._run

    async def run(self: Dispatcher, job: Job) -> None:
        store: Any = self._runner._store
        await store.due.handled([decode_entry(job.raw)], at=self._clock.now())
        self._acknowledger.add(job)
        await self._acknowledger.emptied()
        await asyncio.sleep(WINDOW_S)
        await runs(self, job)

    Dispatcher._run = run  # type: ignore[method-assign]


def _void_ignored() -> None:
    """What a change made void is claimed by whoever holds a copy of it."""
    Copy.voidable = property(lambda _: False)  # type: ignore[assignment, method-assign]


PLANTED = {
    "settled-first": Planted(plant=_settled_first, scenario="dispatcher_killed", found_as="lost"),
    "void-ignored": Planted(
        plant=_void_ignored, scenario="storm", found_as="rang though not fired"
    ),
}


def command(service: str) -> list[str]:
    """What starts a service with a fault in it."""
    return [sys.executable, "-m", "tests.chaos.planted", service]


def environment(name: str) -> dict[str, str]:
    """What it must be told: which fault, and where this module is."""
    return {VARIABLE: name, "PYTHONPATH": str(Path(__file__).parents[2])}


def main() -> None:
    """Plants the fault, and runs the service."""
    service = sys.argv[1]
    PLANTED[os.environ[VARIABLE]].plant()
    sys.argv = [service]
    runpy.run_module(service, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

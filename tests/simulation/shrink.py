"""Makes a failing plan short: drops items as long as the same rule is still broken.

Delta debugging (Zeller's ddmin): halves, quarters, … of the list are left out, until no single item
can be. The rest of a plan, such as how long each call takes, follows from its seed alone, so a
shorter plan is as reproducible as the long one.
"""

from collections.abc import Callable, Sequence

from tests.simulation.plan import AnyItem, Plan
from tests.simulation.run import Report, run

MOST_RUNS = 400


class Shrinker:
    """Shrinks one plan."""

    def __init__(self, report: Report, *, progress: Callable[[int, int], None]) -> None:
        self._plan = report.plan
        self._rules = {violation.rule for violation in report.violations[:1]}
        self._progress = progress
        self.runs = 0

    def shrink(self) -> Plan:
        """The shortest plan found."""
        items = self._without_needless(list(self._plan.items))
        return self._plan.only(items)

    def _without_needless(self, items: list[AnyItem]) -> list[AnyItem]:
        parts = 2
        while len(items) >= 1 and self.runs < MOST_RUNS:
            size = max(1, len(items) // parts)
            shorter = self._without_one_part(items, size)
            if shorter is not None:
                items, parts = shorter, max(2, parts - 1)
            elif size == 1:
                break
            else:
                parts = min(len(items), parts * 2)
        return items

    def _without_one_part(self, items: list[AnyItem], size: int) -> list[AnyItem] | None:
        for start in range(0, len(items), size):
            rest = items[:start] + items[start + size :]
            if self._fails(rest):
                return rest
        return None

    def _fails(self, items: Sequence[AnyItem]) -> bool:
        self.runs += 1
        self._progress(self.runs, len(items))
        found = run(self._plan.only(items)).violations
        return any(violation.rule in self._rules for violation in found)

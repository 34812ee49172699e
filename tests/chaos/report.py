"""A scenario's row, and the table of all of them."""

from collections.abc import Sequence

from msgspec import Struct

from tests.chaos.rules import Verdict

COLUMNS = (
    "scenario",
    "created",
    "delivered",
    "lost",
    "repeats explained",
    "unexplained",
    "worst gap",
    "recovered in",
)


class Row(Struct, frozen=True, kw_only=True):
    """One scenario's outcome."""

    scenario: str
    verdict: Verdict
    seconds: float
    """That it took."""

    @property
    def cells(self) -> tuple[str, ...]:
        """As shown."""
        told = self.verdict
        broken = f" + {len(told.broken)} broken" if told.broken else ""
        return (
            self.scenario,
            str(told.created),
            str(told.delivered),
            str(len(told.lost)),
            str(told.explained),
            f"{len(told.unexplained)}{broken}",
            f"{told.worst_gap_s:.2f} s",
            f"{told.recovery_s:.2f} s" if told.recovery_s else "no late one",
        )


def line(row: Row) -> str:
    """For the terminal."""
    told = " · ".join(
        f"{name} {cell}" for name, cell in zip(COLUMNS[1:], row.cells[1:], strict=True)
    )
    return f"{'held' if row.verdict.held else 'BROKEN'}  {row.scenario}: {told}"


def details(row: Row, most: int = 10) -> list[str]:
    """What went wrong, in words."""
    told = row.verdict
    groups = {"lost": told.lost, "unexplained repeat": told.unexplained, "broken": told.broken}
    found = []
    for name, items in groups.items():
        found += [f"  {name}: {item}" for item in items[:most]]
        if len(items) > most:
            found.append(f"  {name}: and {len(items) - most} more")
    return found


def markdown(rows: Sequence[Row]) -> str:
    """The table."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---" + "|---:" * (len(COLUMNS) - 1) + "|"]
    lines += ["| " + " | ".join(row.cells) + " |" for row in rows]
    return "\n".join(lines)

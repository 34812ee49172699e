"""Figures of several runs, as tables for people and as JSON."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

NARROWEST = 132
"""Columns, where no terminal says how many there are."""

Value = float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One figure of a row."""

    key: str
    head: str
    digits: int = 0

    def show(self, values: Sequence[Value]) -> str:
        """Median, and the range where there was more than one run."""
        known = [value for value in values if value is not None]
        if not known:
            return "–"
        middle = self._format(statistics.median(known))
        if len(known) == 1:
            return middle
        return f"{middle} ({self._format(min(known))}–{self._format(max(known))})"

    def _format(self, value: float) -> str:
        return f"{value:,.{self.digits}f}"


@dataclass(slots=True, kw_only=True)
class Board:
    """The figures of one benchmark: a value for each row, column and run."""

    title: str
    columns: Sequence[Column]
    notes: list[str] = field(default_factory=list)
    """Printed below, and kept."""
    rows: dict[str, dict[str, list[Value]]] = field(default_factory=dict)

    def add(self, row: str, values: Mapping[str, Value]) -> None:
        """One run's figures of a row."""
        known = {column.key for column in self.columns}
        assert values.keys() <= known, f"unknown columns: {values.keys() - known}"
        cells = self.rows.setdefault(row, {})
        for key, value in values.items():
            cells.setdefault(key, []).append(value)

    def median(self, row: str, key: str) -> float:
        """Over the runs."""
        return statistics.median(v for v in self.rows[row][key] if v is not None)

    def print(self, console: Console) -> None:
        """As a table."""
        table = Table(title=escape(self.title), title_justify="left", title_style="bold")
        table.add_column("")
        for column in self.columns:
            table.add_column(column.head, justify="right")
        for row, cells in self.rows.items():
            table.add_row(escape(row), *(c.show(cells.get(c.key, ())) for c in self.columns))
        console.print()
        console.print(table)
        for note in self.notes:
            console.print(f"  {note}", style="dim", highlight=False, markup=False)

    def as_json(self) -> dict[str, Any]:
        """Everything, with medians and ranges."""
        heads = {column.key: column.head.replace("\n", " ") for column in self.columns}
        rows = {
            row: {heads[key]: _summary(values) for key, values in cells.items()}
            for row, cells in self.rows.items()
        }
        return {"title": self.title, "rows": rows, "notes": self.notes}


def _summary(values: Sequence[Value]) -> dict[str, Any]:
    known = [value for value in values if value is not None]
    if not known:
        return {"values": []}
    return {
        "values": [round(value, 4) for value in known],
        "min": round(min(known), 4),
        "median": round(statistics.median(known), 4),
        "max": round(max(known), 4),
    }


def percentile(values: Sequence[float], share: float) -> float:
    """Of sorted values: the smallest that at least `share` of them do not exceed; 0 of none."""
    if not values:
        return 0.0
    rank = math.ceil(len(values) * share - 1e-9)
    return values[max(rank - 1, 0)]


def console() -> Console:
    """Wide enough for tables where output goes into a file."""
    made = Console()
    return made if made.is_terminal else Console(width=NARROWEST)

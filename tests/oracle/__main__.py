"""`make oracle`: every zone of tzdata, every transition from 1990 to 2050, all policies."""

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from reminders.recurrence import zone_data_version
from tests.oracle.clocks import FIRST_YEAR, LAST_YEAR, Rules, all_rules, transitions
from tests.oracle.compare import ALL, Tally, compare

_STEP = 180
"""Minutes between two looks at a zone's offset."""
_SHOWN = 20
"""Differences that are printed."""
_LINE_EVERY_S = 5.0
"""Seconds between two progress lines where the output is no terminal."""


def main() -> int:
    """0 if all agree."""
    console = Console(highlight=False)
    rules = all_rules()
    total = Tally()
    with (
        ProcessPoolExecutor(max_workers=os.cpu_count()) as pool,
        _progress(console, len(rules)) as done,
    ):
        for zone, tally in zip(rules, pool.map(_whole, rules), strict=True):
            total.add(tally)
            done(zone.names[0], total)
    console.print(
        f"tzdata {zone_data_version()}: {sum(len(one.names) for one in rules)} names of"
        f" {len(rules)} different zones, {total.transitions:,} transitions from {FIRST_YEAR} to"
        f" {LAST_YEAR}; compared {total.local_times:,} local times under 9 pairs of policies and"
        f" {total.occurrences:,} occurrences of series"
    )
    for line in total.differences[:_SHOWN]:
        console.print(line)
    console.print(f"{len(total.differences)} differences" if total.differences else "all agree")
    return 1 if total.differences or not total.transitions else 0


def _whole(rules: Rules) -> Tally:
    tally = Tally()
    for transition in transitions(rules.clock(), step=_STEP):
        compare(rules, transition, ALL, tally)
    return tally


@contextmanager
def _progress(console: Console, zones: int) -> Iterator[Callable[[str, Tally], None]]:
    """A bar on a terminal, else a line now and then."""
    if not console.is_terminal:
        yield _lines(console, zones)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("zones", total=zones)

        def advance(name: str, total: Tally) -> None:
            description = f"{total.transitions:,} transitions, {name}"
            progress.update(task, advance=1, description=description)

        yield advance


def _lines(console: Console, zones: int) -> Callable[[str, Tally], None]:
    finished, last = 0, monotonic()

    def advance(name: str, total: Tally) -> None:
        nonlocal finished, last
        finished += 1
        if monotonic() - last >= _LINE_EVERY_S:
            last = monotonic()
            console.print(f"{finished} of {zones} zones, {total.transitions:,} transitions, {name}")

    return advance


if __name__ == "__main__":
    sys.exit(main())

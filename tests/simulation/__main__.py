"""`python -m tests.simulation`: many seeds, or one again. `make simulate` calls this."""

import argparse
import gc
import os
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from msgspec import Struct
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from reminders.process import use_packaged_zones
from tests.simulation.generate import generate
from tests.simulation.history import Violation
from tests.simulation.plan import Plan, from_json, to_json
from tests.simulation.planted import PLANTED, found_at
from tests.simulation.run import run
from tests.simulation.shrink import Shrinker

KEPT_IN = Path(".local/simulation")
"""Where the plans of failing runs go."""
HASH_SEED = "PYTHONHASHSEED"

console = Console(highlight=False, soft_wrap=True)


class Told(Struct, frozen=True):
    """What a worker says of a run."""

    seed: int
    violations: tuple[Violation, ...]
    simulated_s: float
    took_s: float
    faults: int
    sendings: int


def main() -> int:
    """The exit code: 0 if every promise was kept."""
    options = _options()
    use_packaged_zones()
    if options.plan is not None:
        plan = from_json(options.plan.read_bytes())
        return _show(plan, words=options.about)
    if options.planted:
        return _hunt()
    seeds = _seeds(options.seeds)
    if options.trace:
        return _show(generate(seeds[0]), words=options.about)
    return _run_all(seeds, workers=options.workers, shrink=not options.no_shrink)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("seeds", nargs="?", default="100", help="200, or a range: 1000-1500")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--trace", action="store_true", help="run the first seed, print its steps")
    parser.add_argument("--plan", type=Path, help="replay this file instead, with its trace")
    parser.add_argument("--about", nargs="*", default=[], help="only steps with one of these words")
    parser.add_argument("--planted", action="store_true", help="how soon planted faults are found")
    parser.add_argument("--no-shrink", action="store_true", help="leave failing plans as they are")
    return parser.parse_args()


def _hunt() -> int:
    """A table: planted fault, the first seed that finds it."""
    missed = 0
    for name, one in PLANTED.items():
        seed = found_at(name, range(one.within))
        missed += seed is None
        told = f"seed {seed}" if seed is not None else "[red]not found[/red]"
        console.print(f"{name:24} {told} (of {one.within})")
        gc.collect()
    return 1 if missed else 0


def _seeds(text: str) -> range:
    first, dash, last = text.partition("-")
    return range(int(first), int(last)) if dash else range(int(first))


def _tell(seed: int) -> Told:
    report = run(generate(seed))
    gc.collect()
    return Told(
        seed=seed,
        violations=tuple(report.violations),
        simulated_s=report.simulated_s,
        took_s=report.took_s,
        faults=report.troubles,
        sendings=report.sendings,
    )


def _run_all(seeds: range, *, workers: int, shrink: bool) -> int:
    began = time.monotonic()
    failed: list[Told] = []
    all_told: list[Told] = []
    columns = (
        TextColumn("simulating"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[found]}"),
        TimeRemainingColumn(),
    )
    with (
        ProcessPoolExecutor(workers, initializer=use_packaged_zones) as pool,
        Progress(*columns, console=console) as progress,
    ):
        bar = progress.add_task("", total=len(seeds), found="nothing broken")
        for told in pool.map(_tell, seeds):
            all_told.append(told)
            if told.violations:
                failed.append(told)
                console.print(f"[red]seed {told.seed}[/red] {told.violations[0]}")
            found = f"[red]{len(failed)} broken[/red]" if failed else "nothing broken"
            progress.update(bar, advance=1, found=found)
    _sum_up(all_told, time.monotonic() - began)
    if not failed:
        return 0
    if shrink:
        _explain(failed[0].seed)
    return 1


def _sum_up(all_told: list[Told], took_s: float) -> None:
    minutes = sum(told.simulated_s for told in all_told) / 60
    busy_s = sum(told.took_s for told in all_told)
    faults = sum(told.faults for told in all_told)
    sendings = sum(told.sendings for told in all_told)
    console.print(
        f"{len(all_told)} seeds in {took_s:.1f} s: {minutes:.0f} simulated minutes, "
        f"{faults} faults, {sendings} sends"
    )
    console.print(
        f"{minutes / took_s:.1f} simulated minutes a second ({minutes / busy_s:.1f} for each busy "
        f"processor), {faults / took_s:.1f} faults a second"
    )


def _explain(seed: int) -> None:
    """Shrinks a failing seed, keeps the plan and shows its trace."""
    with console.status(f"shrinking seed {seed}") as status:
        shrinker = Shrinker(
            run(generate(seed)),
            progress=lambda runs, left: status.update(f"run {runs}: {left} items are left"),
        )
        plan = shrinker.shrink()
    KEPT_IN.mkdir(parents=True, exist_ok=True)
    path = KEPT_IN / f"seed-{seed}.json"
    path.write_text(to_json(plan))
    _show(plan, words=[])
    console.print(f"again: python -m tests.simulation --plan {path}")


def _show(plan: Plan, *, words: Iterable[str]) -> int:
    """Runs a plan and prints its steps: those about what was broken, unless told otherwise."""
    report = run(plan, tracing=True)
    for item in plan.items:
        console.print(repr(item), markup=False)
    wanted = tuple(words) or _about(report.violations)
    for line in report.history.trace or ():
        if not wanted or any(word in line for word in wanted):
            console.print(line, markup=False)
    for violation in report.violations:
        console.print(str(violation), style="red", markup=False)
    console.print(f"{len(report.violations)} broken, {report.simulated_s / 60:.1f} minutes")
    return 1 if report.violations else 0


def _about(violations: list[Violation]) -> tuple[str, ...]:
    ids = {violation.reminder_id for violation in violations if violation.reminder_id}
    return (*sorted(ids)[:1], "trap", "PLAN", "killed", "lead.", "JUDGE") if ids else ()


if __name__ == "__main__":
    if os.environ.get(HASH_SEED) != "0":  # sets of ids have the same order in every run
        os.environ[HASH_SEED] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]])
    sys.exit(main())

"""`python -m bench`: starts the real stack, measures, prints tables, writes JSON, stops it all.

python -m bench --quick                     a few minutes
python -m bench --only creates,claims       some of them
python -m bench --runs 5                    more runs: every figure is a median (smallest–largest)
python -m bench --only group --members 5000000   cancel a group of five million
python -m bench --only fanout --subscribers 1000000   tell a topic of a million
python -m bench --only memory --quick --creates 1000000   stop Cassandra amid a million creates
"""

import argparse
import importlib
import json
import os
import platform
import signal
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console

from bench.harness.child import ChildFailedError
from bench.harness.report import Board, console
from bench.harness.stack import commit_log, real_stack
from bench.harness.world import World
from reminders.cli.failure import CommandError
from reminders.localstack import StepFailedError

NAMES = (
    "recurrence",
    "claims",
    "throughput",
    "creates",
    "lateness",
    "burst",
    "cancel",
    "group",
    "fanout",
    "isolation",
    "memory",
)
"""In this order: those without services first, the one that stops Cassandra last."""
FOLDER = Path(".local/bench")
SHARDS = 4
"""As the local stack (`make run`) has."""
DISPATCHERS = 2
"""One for each core of a small machine: a burst is mostly their work."""
RUNS, QUICK_RUNS = 3, 1
MEMBERS, QUICK_MEMBERS = 100_000, 10_000
SUBSCRIBERS, QUICK_SUBSCRIBERS = 100_000, 20_000
CREATES, QUICK_CREATES = 1_000_000, 200_000


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default=",".join(NAMES), help="some of %(default)s")
    parser.add_argument("--quick", action="store_true", help="short, one run")
    parser.add_argument("--runs", type=int, help=f"default {RUNS}, with --quick {QUICK_RUNS}")
    parser.add_argument("--shards", type=int, default=SHARDS, help="default %(default)s")
    parser.add_argument("--dispatchers", type=int, default=DISPATCHERS, help="default %(default)s")
    parser.add_argument(
        "--members", type=int, help=f"of the large group, default {MEMBERS}, quick {QUICK_MEMBERS}"
    )
    parser.add_argument(
        "--subscribers",
        type=int,
        help=f"of the large topic, default {SUBSCRIBERS}, quick {QUICK_SUBSCRIBERS}",
    )
    parser.add_argument(
        "--creates",
        type=int,
        help=f"of the stream while Cassandra stops, default {CREATES}, quick {QUICK_CREATES}",
    )
    given = parser.parse_args()
    given.only = [name.strip() for name in given.only.split(",") if name.strip()]
    if unknown := [name for name in given.only if name not in NAMES]:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(NAMES)}")
    given.members = given.members or (QUICK_MEMBERS if given.quick else MEMBERS)
    given.subscribers = given.subscribers or (QUICK_SUBSCRIBERS if given.quick else SUBSCRIBERS)
    given.creates = given.creates or (QUICK_CREATES if given.quick else CREATES)
    given.runs = given.runs or (QUICK_RUNS if given.quick else RUNS)
    return given


def machine() -> dict[str, Any]:
    """What the figures belong to."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(pages / 2**30),
        "python": platform.python_version(),
        "cassandra_commit_log": commit_log(),
    }


def main() -> int:
    """The exit code."""
    given, out = options(), console()
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    FOLDER.mkdir(parents=True, exist_ok=True)

    def progress(line: str) -> None:
        out.print(f"[dim]{datetime.now(UTC):%H:%M:%S}[/dim] {line}", highlight=False)

    chosen = [importlib.import_module(f"bench.{name}") for name in NAMES if name in given.only]
    boards: list[Board] = []
    try:
        with real_stack(
            FOLDER.resolve(),
            shards=given.shards,
            dispatchers=given.dispatchers,
            progress=progress,
        ) as stack:
            world = World(
                stack=stack,
                runs=given.runs,
                quick=given.quick,
                progress=progress,
                members=given.members,
                subscribers=given.subscribers,
                creates=given.creates,
            )
            sync = commit_log()
            out.print(
                f"{machine()}, {given.shards} shards, {given.dispatchers} dispatchers; "
                f"Cassandra with {sync} commit-log sync; everything on one machine"
            )
            for group in (False, True):
                boards += run(world, out, [m for m in chosen if m.SERVICES is group])
    except KeyboardInterrupt:
        progress("stopped")
        return 130
    except (ChildFailedError, CommandError, StepFailedError) as error:
        out.print(str(error), markup=False)
        return 1
    finally:
        write(boards, given)
    progress(f"results: {FOLDER / 'results.json'}")
    return 0


def run(world: World, out: Console, modules: Sequence[ModuleType]) -> list[Board]:
    """Those that need services, or those that do not. Each table is shown at once."""
    if not modules:
        return []
    boards: list[Board] = []
    services = modules[0].SERVICES
    with world.stack.running() if services else nullcontext():
        for module in modules:
            made: list[Board] = module.measure(world)
            for board in made:
                board.print(out)
            boards += made
    return boards


def write(boards: Sequence[Board], given: argparse.Namespace) -> None:
    """Whatever was measured, also after an interrupt."""
    if not boards:
        return
    content = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "options": {
            "only": given.only,
            "quick": given.quick,
            "runs": given.runs,
            "members": given.members,
            "creates": given.creates,
        },
        "shards": given.shards,
        "dispatchers": given.dispatchers,
        "benchmarks": [board.as_json() for board in boards],
    }
    (FOLDER / "results.json").write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    sys.exit(main())

"""`python -m tests.chaos`: every scenario on a ring of servers, and their table. `make chaos`.

The exit code is 0 if every promise was kept; with `--planted`, if the fault was found.
"""

import argparse
import os
import platform
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import NoReturn

import redis

from reminders.localstack.ring import SERVICE, Ring, ring
from tests.chaos import scenes_cassandra, scenes_changes, scenes_processes, scenes_redis
from tests.chaos.fleet import TWO_OF_EACH
from tests.chaos.planted import PLANTED
from tests.chaos.playing import SCENARIOS, Scenario, play, world
from tests.chaos.report import Row, markdown
from tests.chaos.stage import Progress

SCENES = (scenes_processes, scenes_changes, scenes_redis, scenes_cassandra)
"""Importing them fills SCENARIOS; in this order they are played."""
RECORD = Path(__file__).parents[2] / "docs" / "chaos.md"
TABLE = "<!-- table -->"


def say(text: str) -> None:
    """At once, also into a pipe."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def master_url(of: Ring) -> str:
    """Of the server that the sentinels name."""
    for sentinel in of.sentinels:
        host, port = sentinel.address
        with redis.Redis(host=host, port=port, socket_timeout=2, decode_responses=True) as client:
            try:
                found = client.sentinel_get_master_addr_by_name(SERVICE)
            except redis.RedisError:
                continue
        if found is not None:
            return "redis://{}:{}/0".format(*found)
    raise RuntimeError("no sentinel answers")


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def chosen(patterns: Sequence[str]) -> list[Scenario]:
    """Those whose function's name or title holds one of the words; all of them without any."""
    order = [module.__name__ for module in SCENES]
    return [
        one
        for one in sorted(SCENARIOS, key=lambda one: order.index(one.play.__module__))
        if not patterns or any(word in f"{one.play.__name__} {one.name}" for word in patterns)
    ]


def main() -> int:
    """Plays them."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("only", nargs="*", help="words out of the scenarios' names; default: all")
    parser.add_argument("--list", action="store_true", help="name the scenarios")
    parser.add_argument("--data-dir", type=Path, help="kept afterwards, with the logs")
    parser.add_argument("--record", action="store_true", help=f"write the table to {RECORD.name}")
    parser.add_argument(
        "--patience", type=float, default=1.0, help="multiplies the bounds of time (busy machine)"
    )
    parser.add_argument("--planted", choices=PLANTED, help="a fault that must be found")
    arguments = parser.parse_args()
    if arguments.planted:
        arguments.only = [PLANTED[arguments.planted].scenario]
    scenarios = chosen(arguments.only)
    if arguments.list or not scenarios:
        for one in chosen(()) if arguments.list else ():
            say(f"{one.play.__name__:20} {one.name}")
        return 0 if arguments.list else 2
    signal.signal(signal.SIGTERM, _interrupt)
    folder = arguments.data_dir or Path(tempfile.mkdtemp(prefix="tocsin-chaos-"))
    began = time.monotonic()

    def progress(text: str) -> None:
        say(f"{time.monotonic() - began:7.1f} s  {text}")

    rows: list[Row] = []
    try:
        with ring(folder / "servers", progress=progress, hints=False) as servers:
            rows += run(servers, folder, scenarios, progress, arguments.patience, arguments.planted)
    except KeyboardInterrupt:
        say("interrupted")
    finally:
        if arguments.data_dir is None and all(row.verdict.held for row in rows):
            shutil.rmtree(folder, ignore_errors=True)
        else:
            say(f"logs are in {folder}")
    say(f"\n{markdown(rows)}")
    if arguments.planted:
        found = any(PLANTED[arguments.planted].found(row.verdict) for row in rows)
        say(f"\n{arguments.planted}: {'found' if found else 'NOT FOUND'}")
        return 0 if found else 1
    held = len(rows) == len(scenarios) and all(row.verdict.held for row in rows)
    if arguments.record and rows:
        record(rows, time.monotonic() - began, arguments.patience)
    say(f"\n{'every promise was kept' if held else 'PROMISES WERE BROKEN'}")
    return 0 if held else 1


def run(
    servers: Ring,
    folder: Path,
    scenarios: Sequence[Scenario],
    progress: Progress,
    patience: float,
    fault: str | None,
) -> list[Row]:
    """One fleet for all of them."""
    logs = folder / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    with world(
        servers.endpoints,
        logs,
        TWO_OF_EACH,
        progress,
        redis_url=lambda: master_url(servers),
        ring=servers,
        fault=fault,
        cassandra_replication="3",
        settle_grace="20s",
    ) as stage:
        return [play(stage, one, patience=patience) for one in scenarios]


def record(rows: Sequence[Row], seconds: float, patience: float) -> None:
    """Replaces the table of docs/chaos.md, dated."""
    text = RECORD.read_text()
    before, _, rest = text.partition(TABLE)
    _, _, after = rest.partition(TABLE)
    told = (
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, {seconds / 60:.0f} minutes"
        + ("" if patience == 1 else f", bounds of time × {patience:g}")
        + ":"
    )
    RECORD.write_text(f"{before}{TABLE}\n{told}\n\n{markdown(rows)}\n{TABLE}{after}")


if __name__ == "__main__":
    sys.exit(main())

"""`python -m reminders.localstack`: real Cassandra and Redis until Ctrl-C.

Prints the lines that make a shell use them; everything else goes to stderr.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from reminders.localstack.failure import StepFailedError
from reminders.localstack.provide import (
    CASSANDRA_VARIABLE,
    REDIS_VARIABLE,
    Endpoints,
    provide,
)
from reminders.localstack.ring import ring

INTERRUPTED: Final = 130  # as shells count a Ctrl-C


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    """Leave the `with` block; further signals must not interrupt the clean-up."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


@contextmanager
def _servers(arguments: argparse.Namespace, say: Callable[[str], None]) -> Iterator[Endpoints]:
    if arguments.ring:
        with ring(arguments.data_dir, progress=say) as servers:
            yield servers.endpoints
        return
    with provide(
        arguments.data_dir,
        progress=say,
        fresh=arguments.fresh,
        cassandra_port=arguments.cassandra_port,
        redis_port=arguments.redis_port,
    ) as endpoints:
        yield endpoints


def main() -> int:
    """Provide the servers until SIGINT or SIGTERM; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m reminders.localstack", description=__doc__)
    parser.add_argument(
        "--data-dir",
        type=Path,
        default=Path(".local/stack"),
        help="kept from run to run (%(default)s)",
    )
    parser.add_argument("--fresh", action="store_true", help="begin with empty servers")
    parser.add_argument("--cassandra-port", type=int, help="default: as last time, else a free one")
    parser.add_argument("--redis-port", type=int, help="the same")
    parser.add_argument(
        "--ring",
        action="store_true",
        help="three Cassandra nodes, and a Redis with two replicas and sentinels; always fresh",
    )
    arguments = parser.parse_args()

    def say(line: str) -> None:
        print(f"# {line}", file=sys.stderr, flush=True)

    up = False
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, _interrupt)
    try:
        with _servers(arguments, say) as endpoints:
            up = True  # before anybody can know, and send a signal
            print(f"export {CASSANDRA_VARIABLE}={endpoints.cassandra_hosts}")
            print(f"export {REDIS_VARIABLE}={endpoints.redis_url}", flush=True)
            say("all answer; Ctrl-C stops them")
            threading.Event().wait()
    except StepFailedError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        say("stopped")
    return 0 if up else INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())

"""The commands that run Tocsin: its services, its schema, its configuration, all of it at once."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from reminders.cli import zones
from reminders.cli.failure import CommandError

DataDir = Annotated[Path, Option("--data-dir", help="Data and logs of local servers and services.")]
DEFAULT_DATA_DIR = Path(".local/run")


def scheduler() -> None:
    """Run the gRPC service."""
    _become("scheduler")


def scanner() -> None:
    """Run a scanner: it finds what is due, and claims it."""
    _become("scanner")


def expander() -> None:
    """Run an expander: it writes the next occurrence of what recurs."""
    _become("expander")


def dispatcher() -> None:
    """Run a dispatcher: it delivers what was claimed."""
    _become("dispatcher")


def migrate() -> None:
    """Bring the schema of the configured Cassandra up to date; safe to run many times at once."""
    from reminders.cli import migrating  # noqa: PLC0415

    print(migrating.migrate())


def config(*, json: Annotated[bool, Option("--json", help="For programs.")] = False) -> None:
    """Print what is in force, and where each value comes from."""
    from reminders.cli import configuration  # noqa: PLC0415

    configuration.show(json=json)


def shards(*, json: Annotated[bool, Option("--json", help="For programs.")] = False) -> None:
    """Show who leads each shard, how far it is settled, and what waits in it.

    From the stores, not from the processes. Exit code 1 if nobody leads some shard, or if a
    watermark may not go on.
    """
    from reminders.cli import shards as looking  # noqa: PLC0415

    looking.show(json=json)


def rebuild() -> None:
    """Write due entries again from the records, after nobody settled a shard for four weeks.

    Reads every record, so it may take long; safe beside running services, and to repeat. A refused
    watermark (`tocsin shards`) goes on after it.
    """
    from reminders.cli import rebuilding  # noqa: PLC0415

    rebuilding.rebuild()


def up(
    *,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    in_memory: Annotated[
        bool, Option("--in-memory", help="One process, no servers, nothing durable.")
    ] = False,
) -> None:
    """Run everything on this machine until Ctrl-C."""
    if in_memory:
        from reminders.cli import inmemory  # noqa: PLC0415

        inmemory.up()
    else:
        from reminders.cli import upping  # noqa: PLC0415

        upping.up(data_dir)


def demo(*, data_dir: DataDir = DEFAULT_DATA_DIR) -> None:
    """Run everything, create a few reminders, and show them ring until Ctrl-C."""
    from reminders.cli import demo as demonstration  # noqa: PLC0415

    demonstration.demo(data_dir)


def register(app: typer.Typer) -> None:
    """Adds the commands, in the order in which help lists them."""
    local = "Everything on this machine"
    app.command(rich_help_panel=local)(up)
    app.command(rich_help_panel=local)(demo)
    for service in (scheduler, scanner, expander, dispatcher, migrate):
        app.command(rich_help_panel="Operation")(service)
    app.command(rich_help_panel="Operation")(config)
    app.command(rich_help_panel="Operation")(shards)
    app.command(rich_help_panel="Operation")(rebuild)
    app.add_typer(zones.zones, name="zones", rich_help_panel="Operation")


def _become(service: str) -> None:
    """Replaces this process, so that signals and the exit code are the service's own."""
    from reminders.cli.children import module_command  # noqa: PLC0415

    os.environ["PYTHONTZPATH"] = ""
    try:
        os.execv(sys.executable, module_command(service))  # noqa: S606 - no shell wanted
    except OSError as error:
        raise CommandError(f"can't start {service}: {error}") from error

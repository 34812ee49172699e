"""`tocsin zones`: which zone data is in use, and moving to it what older data planned."""

import json as jsonlib
from importlib.metadata import version
from typing import Annotated

import typer
from typer import Option

Json = Annotated[bool, Option("--json", help="For programs.")]

zones = typer.Typer(
    help="Show the zone data in use; `recompute` moves to it what older data planned.",
    invoke_without_command=True,
)


@zones.callback()
def show(context: typer.Context, *, json: Json = False) -> None:
    """Show the zone data in use; `recompute` moves to it what older data planned."""
    if context.invoked_subcommand is not None:
        return
    found = in_use()
    if json:
        print(jsonlib.dumps(found, ensure_ascii=False, indent=2))
        return
    print(f"zone data  {found['zone_data']}: {found['zones']} zones")
    print(f"from       tzdata {found['tzdata']}, {found['folder']}")
    print(f"holidays   {found['holidays']}")


@zones.command()
def recompute(
    *,
    apply: Annotated[
        bool, Option("--apply/--dry-run", help="Move what moves; unless given, only show it.")
    ] = False,
    rate: Annotated[
        int,
        Option(
            min=1,
            max=1_000_000,
            help="Records read a second, at most; one that moves counts as twenty of them.",
        ),
    ] = 2000,
    json: Annotated[bool, Option("--json", help="A line for each event, for programs.")] = False,
) -> None:
    """Find what is ahead under older zone data or holidays, and move what the new data moves.

    Safe beside running services, and to stop at any time: with --apply the same command goes on
    where the last run stopped, and a repeat of a whole run changes nothing. Restart the services
    with the new data first. Exit code 1 if something had to be left as it was.
    """
    from reminders.cli import recomputing  # noqa: PLC0415

    recomputing.recompute(apply=apply, rate=rate, json=json)


def in_use() -> dict[str, str | int]:
    """What this process computes with, and where it comes from."""
    from importlib.resources import files  # noqa: PLC0415

    from reminders.recurrence import (  # noqa: PLC0415
        holiday_data_version,
        zone_data_version,
        zone_names,
    )

    return {
        "zone_data": zone_data_version(),
        "zones": len(zone_names()),
        "tzdata": version("tzdata"),
        "folder": str(files("tzdata")),
        "holidays": holiday_data_version(),
    }

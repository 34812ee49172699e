"""`tocsin config`."""

import json as jsonlib
from dataclasses import asdict

from rich.table import Table

from reminders.cli import render
from reminders.cli.failure import CommandError
from reminders.config.problems import ConfigError
from reminders.config.report import report


def show(*, json: bool) -> None:
    """What is in force, secrets masked."""
    try:
        found = report()
    except ConfigError as error:
        raise CommandError("wrong configuration", *error.problems) from None
    if json:
        print(jsonlib.dumps(asdict(found), ensure_ascii=False, indent=2))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("VARIABLE", "VALUE", "FROM", "MEANING"):
        table.add_column(name, overflow="fold")
    for each in found.settings:
        table.add_row(each.variable, each.value or render.NONE, each.source, each.meaning)
    console = render.console()
    console.print(table)
    versions = ", ".join(f"{name} {number}" for name, number in found.versions.items())
    console.print(f"\n{versions}; configuration file: {found.config_file or 'none'}")
    for warning in found.warnings:
        console.print(f"warning: {warning}", style="yellow")

"""`tocsin preview`: what a rule would do, computed here. No server and no store is asked."""

from dataclasses import dataclass, field
from typing import Annotated

import typer
from typer import Argument, Option

from reminders.cli.options import CalendarFlags, with_options

_RULE = "Rule"
_SHOW = "Show"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFlags:
    """The recurrence, and which part of it to show."""

    rule: Annotated[
        str | None, Argument(metavar="RULE", help="RFC 5545, such as FREQ=WEEKLY;BYDAY=MO.")
    ] = None
    cron: Annotated[
        str | None, Option("--cron", help="Instead: five fields, or @daily.", rich_help_panel=_RULE)
    ] = None
    start: Annotated[
        str,
        Option("--start", help="First local time: 2026-12-07T09:00.", rich_help_panel=_RULE),
    ] = ""
    zone: Annotated[
        str, Option("--zone", help="IANA name such as Europe/Paris.", rich_help_panel=_RULE)
    ] = ""
    exdate: Annotated[
        list[str],
        Option(
            "--exdate",
            help="A local time to leave out, or TZID=…:…; repeatable.",
            rich_help_panel=_RULE,
        ),
    ] = field(default_factory=list)
    rdate: Annotated[
        list[str],
        Option(
            "--rdate", help="A local time to add, or TZID=…:…; repeatable.", rich_help_panel=_RULE
        ),
    ] = field(default_factory=list)
    max_occurrences: Annotated[
        int,
        Option(
            "--max-occurrences",
            help="End after so many.",
            show_default=False,
            rich_help_panel=_RULE,
        ),
    ] = 0
    until: Annotated[
        str | None, Option("--until", help="End at this instant.", rich_help_panel=_RULE)
    ] = None
    after: Annotated[
        str | None,
        Option(
            "--after",
            help="As if created at this instant: what comes after it. "
            "Else from --start on, or from now where there is none.",
            rich_help_panel=_SHOW,
        ),
    ] = None
    count: Annotated[
        int, Option("--count", help="How many, at most 1000.", rich_help_panel=_SHOW)
    ] = 10
    json: Annotated[
        bool,
        Option(
            "--json",
            help="An array of {local, instant, offset, note}; note is null where no policy acted.",
            rich_help_panel=_SHOW,
        ),
    ] = False


@with_options(RuleFlags, CalendarFlags)
def preview(rule: RuleFlags, calendar: CalendarFlags) -> None:
    """Show when a rule rings, and where which policy acts. Works without a server.

    tocsin preview "FREQ=MONTHLY;BYMONTHDAY=31" --start 2026-01-31T09:00 --zone Europe/Paris
    """
    from reminders.cli import previewing  # noqa: PLC0415

    previewing.show(rule, calendar)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(rich_help_panel="Client")(preview)

"""The commands that make a reminder ring beside its schedule: now, or for a past range."""

from typing import Annotated

import typer
from typer import Option

from reminders.cli.client import ReminderId, RequestId
from reminders.cli.options import Connection, with_options


@with_options(Connection)
def trigger(connection: Connection, *, reminder: ReminderId, request_id: RequestId = None) -> None:
    """Have a reminder ring once now; its schedule goes on."""
    from tocsin.v1.reminder_service_pb2 import TriggerReminderRequest  # noqa: PLC0415

    from reminders.cli import render, rpc  # noqa: PLC0415

    request = TriggerReminderRequest(
        namespace=connection.namespace, reminder_id=reminder, request_id=request_id or ""
    )
    with rpc.scheduler(connection) as stub:
        answer = stub.TriggerReminder(request, timeout=rpc.DEADLINE_S)
    if connection.json:
        render.print_json(answer)
        return
    render.console().print(render.occurrence_table([answer.occurrence]))


@with_options(Connection)
def backfill(
    connection: Connection,
    *,
    reminder: ReminderId,
    start: Annotated[
        str, Option("--from", help="An instant, such as 2026-12-01T09:00:00Z: from it on.")
    ],
    end: Annotated[
        str | None, Option("--to", help="An instant: until before it. Else until now.")
    ] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Show them, ring none.")] = False,
    request_id: RequestId = None,
) -> None:
    """Ring what a rule named in a past range and has not rung, at a gentle pace."""
    from tocsin.v1.reminder_service_pb2 import BackfillReminderRequest  # noqa: PLC0415

    from reminders.cli import render, requests, rpc  # noqa: PLC0415

    request = BackfillReminderRequest(
        namespace=connection.namespace,
        reminder_id=reminder,
        start_time=requests.instant("--from", start),
        end_time=requests.instant("--to", end) if end is not None else None,
        validate_only=dry_run,
        request_id=request_id or "",
    )
    with rpc.scheduler(connection) as stub:
        answer = stub.BackfillReminder(request, timeout=rpc.DEADLINE_S)
    if connection.json:
        render.print_json(answer)
        return
    if answer.occurrences:
        render.console().print(render.occurrence_table(answer.occurrences))
    total = f"{answer.occurrence_count}{'+' if answer.occurrence_count_capped else ''}"
    shown = len(answer.occurrences)
    cut = f", the first {shown} shown" if shown < answer.occurrence_count else ""
    done = "nothing was changed" if dry_run else "those that have not rung will, from now on"
    render.console().print(f"{total} in the range{cut}: {done}")


def register(app: typer.Typer) -> None:
    """Adds the commands, in the order in which help lists them."""
    for command in (trigger, backfill):
        app.command(rich_help_panel="Client")(command)

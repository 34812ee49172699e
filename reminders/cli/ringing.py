"""The commands that make a reminder ring beside its schedule: now, or for a past range."""

from typing import Annotated

import typer
from typer import Argument, Option

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


@with_options(Connection)
def replay(
    connection: Connection,
    *,
    reminder: ReminderId,
    occurrence: Annotated[str, Argument(metavar="OCCURRENCE", help="As `explain` shows it.")],
    channel: Annotated[
        list[str] | None, Option("--channel", help="Only this one; may be repeated.")
    ] = None,
    force: Annotated[
        bool, Option("--force", help="Also what was taken, and of a cancelled or paused one.")
    ] = False,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Say what would be sent, send none.")
    ] = False,
    request_id: RequestId = None,
) -> None:
    """Send deliveries of one occurrence again, under the keys that they had."""
    from tocsin.v1.reminder_service_pb2 import ReplayOccurrenceRequest  # noqa: PLC0415

    from reminders.cli import render, rpc  # noqa: PLC0415

    request = ReplayOccurrenceRequest(
        namespace=connection.namespace,
        reminder_id=reminder,
        occurrence_id=occurrence,
        channel_ids=channel or [],
        force=force,
        validate_only=dry_run,
        request_id=request_id or "",
    )
    with rpc.scheduler(connection) as stub:
        answer = stub.ReplayOccurrence(request, timeout=rpc.DEADLINE_S)
    if connection.json:
        render.print_json(answer)
        return
    render.console().print(render.replay_table(answer.deliveries))
    sent = "would be sent again" if dry_run else "will be sent again"
    line = f"{answer.replay_count} of {len(answer.deliveries)} {sent}"
    if answer.suppressed_count:
        line += (
            f", {answer.suppressed_count} refused: taken already (--force sends it all the same)"
        )
    render.console().print(line)


def register(app: typer.Typer) -> None:
    """Adds the commands, in the order in which help lists them."""
    for command in (trigger, backfill, replay):
        app.command(rich_help_panel="Client")(command)

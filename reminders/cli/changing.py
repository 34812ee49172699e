"""The commands that change a reminder's content, or silence it for a while."""

from typing import Annotated

import typer
from typer import Option

from reminders.cli.client import Etag, ReminderId, RequestId
from reminders.cli.options import Connection, NewContent, PolicyFlags, When, with_options


@with_options(NewContent, When, PolicyFlags, Connection)
def update(
    new: NewContent,
    when: When,
    flags: PolicyFlags,
    connection: Connection,
    *,
    reminder: ReminderId,
    etag: Etag = None,
    request_id: RequestId = None,
) -> None:
    """Replace what is given, leave the rest as it is.

    tocsin update REMINDER --param amount=12 --clear template_id
    """
    from reminders.cli import render, requests, rpc  # noqa: PLC0415

    request = requests.update_request(
        connection.namespace,
        reminder,
        new,
        when,
        flags,
        etag=etag or "",
        request_id=request_id or "",
    )
    with rpc.scheduler(connection) as stub:
        answer = stub.UpdateReminder(request, timeout=rpc.DEADLINE_S)
    if connection.json:
        render.print_json(answer)
        return
    render.console().print(render.reminder_details(answer.reminder))
    if answer.was_fired:
        render.console().print("an occurrence had fired: it rings as it was")


@with_options(Connection)
def pause(
    connection: Connection,
    *,
    reminder: ReminderId,
    reason: Annotated[str, Option("--reason", help="Why; `get` shows it.")] = "",
    etag: Etag = None,
    request_id: RequestId = None,
) -> None:
    """Silence a reminder until it is resumed, and say whether it had fired by then."""
    from tocsin.v1.reminder_service_pb2 import PauseReminderRequest  # noqa: PLC0415

    from reminders.cli import render, rpc  # noqa: PLC0415

    request = PauseReminderRequest(
        namespace=connection.namespace,
        reminder_id=reminder,
        reason=reason,
        etag=etag or "",
        request_id=request_id or "",
    )
    with rpc.scheduler(connection) as stub:
        answer = stub.PauseReminder(request, timeout=rpc.DEADLINE_S)
    if connection.json:
        render.print_json(answer)
        return
    render.console().print(render.reminder_details(answer.reminder))
    render.console().print(
        "an occurrence had fired: that delivery goes on"
        if answer.was_fired
        else "nothing will be sent until it is resumed"
    )


@with_options(Connection)
def resume(
    connection: Connection, *, reminder: ReminderId, etag: Etag = None, request_id: RequestId = None
) -> None:
    """Let a paused reminder ring again."""
    from tocsin.v1.reminder_service_pb2 import ResumeReminderRequest  # noqa: PLC0415

    from reminders.cli import render, rpc  # noqa: PLC0415

    request = ResumeReminderRequest(
        namespace=connection.namespace,
        reminder_id=reminder,
        etag=etag or "",
        request_id=request_id or "",
    )
    with rpc.scheduler(connection) as stub:
        answer = stub.ResumeReminder(request, timeout=rpc.DEADLINE_S)
    if connection.json:
        render.print_json(answer)
    else:
        render.console().print(render.reminder_details(answer.reminder))


def register(app: typer.Typer) -> None:
    """Adds the commands, in the order in which help lists them."""
    for command in (update, pause, resume):
        app.command(rich_help_panel="Client")(command)

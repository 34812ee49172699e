"""The commands that create a reminder, change it, silence it for a while, or cancel it."""

from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from reminders.cli.options import (
    Connection,
    Etag,
    NewContent,
    PolicyFlags,
    ReminderId,
    RequestId,
    What,
    When,
    with_options,
)

if TYPE_CHECKING:
    from tocsin.v1 import reminder_service_pb2 as pb

    Changed = (
        pb.CreateReminderResponse
        | pb.RescheduleReminderResponse
        | pb.UpdateReminderResponse
        | pb.PauseReminderResponse
        | pb.ResumeReminderResponse
        | pb.CancelReminderResponse
    )


@with_options(What, When, PolicyFlags, Connection)
def create(
    what: What,
    when: When,
    flags: PolicyFlags,
    connection: Connection,
    *,
    request_id: RequestId = None,
    validate_only: Annotated[
        bool, Option("--validate-only", help="Check, change nothing.", rich_help_panel="Call")
    ] = False,
) -> None:
    """Create a reminder.

    tocsin create --user u1 --in 5s --log

    tocsin create --user u1 --local 09:00 --zone Europe/Paris --webhook https://example.com/hook
    """
    from reminders.cli import render, requests, rpc  # noqa: PLC0415

    request = requests.create_request(
        connection.namespace,
        what,
        when,
        flags,
        request_id=request_id or "",
        validate_only=validate_only,
    )
    with rpc.scheduler(connection) as stub:
        answer = stub.CreateReminder(request, timeout=rpc.DEADLINE_S)
    if not _shown(connection, answer):
        return
    if answer.deduplicated:
        render.console().print("(it existed already: same dedup key or request id)")


@with_options(When, Connection)
def reschedule(
    when: When,
    connection: Connection,
    *,
    reminder: ReminderId,
    etag: Etag = None,
    request_id: RequestId = None,
) -> None:
    """Move a reminder to another time or rule."""
    from tocsin.v1.reminder_service_pb2 import RescheduleReminderRequest  # noqa: PLC0415

    from reminders.cli import render, requests, rpc  # noqa: PLC0415

    request = RescheduleReminderRequest(
        namespace=connection.namespace,
        reminder_id=reminder,
        schedule=requests.schedule(when),
        etag=etag or "",
        request_id=request_id or "",
    )
    with rpc.scheduler(connection) as stub:
        answer = stub.RescheduleReminder(request, timeout=rpc.DEADLINE_S)
    if not _shown(connection, answer):
        return
    if answer.was_fired:
        render.console().print("an occurrence of the old rule had fired: it rings beside these")


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
    if not _shown(connection, answer):
        return
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
    if not _shown(connection, answer):
        return
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

    from reminders.cli import rpc  # noqa: PLC0415

    request = ResumeReminderRequest(
        namespace=connection.namespace,
        reminder_id=reminder,
        etag=etag or "",
        request_id=request_id or "",
    )
    with rpc.scheduler(connection) as stub:
        answer = stub.ResumeReminder(request, timeout=rpc.DEADLINE_S)
    _shown(connection, answer)


@with_options(Connection)
def cancel(
    connection: Connection, *, reminder: ReminderId, etag: Etag = None, request_id: RequestId = None
) -> None:
    """Cancel a reminder, and say whether it had fired by then."""
    from tocsin.v1.reminder_service_pb2 import CancelReminderRequest  # noqa: PLC0415

    from reminders.cli import render, rpc  # noqa: PLC0415

    request = CancelReminderRequest(
        namespace=connection.namespace,
        reminder_id=reminder,
        etag=etag or "",
        request_id=request_id or "",
    )
    with rpc.scheduler(connection) as stub:
        answer = stub.CancelReminder(request, timeout=rpc.DEADLINE_S)
    if not _shown(connection, answer):
        return
    said = "nothing will be sent"
    if answer.was_fired:
        stopped = answer.deliveries_stopped
        said = "it had fired, and nothing more will be sent; "
        said += f"deliveries stopped while they waited: {stopped}"
    render.console().print(f"cancelled: {said}")


@with_options(Connection)
def cancel_group(
    connection: Connection, *, group: Annotated[str, Argument(metavar="GROUP", help="As created.")]
) -> None:
    """Cancel every reminder of a group that was created up to now, however many there are."""
    from tocsin.v1.reminder_service_pb2 import CancelGroupRequest  # noqa: PLC0415

    from reminders.cli import render, rpc  # noqa: PLC0415

    request = CancelGroupRequest(namespace=connection.namespace, group_id=group)
    with rpc.scheduler(connection) as stub:
        answer = stub.CancelGroup(request, timeout=rpc.DEADLINE_S)
    if connection.json:
        render.print_json(answer)
        return
    until = answer.cancel_time.ToJsonString()
    render.console().print(f"cancelled: what was created up to {until} will not be sent")


def register(app: typer.Typer) -> None:
    """Adds the commands, in the order in which help lists them."""
    for command in (create, reschedule, update, pause, resume, cancel):
        app.command(rich_help_panel="Client")(command)
    app.command("cancel-group", rich_help_panel="Client")(cancel_group)


def _shown(connection: Connection, answer: "Changed") -> bool:
    """Prints all of it as JSON, or the reminder as it is now; whether there is more to say."""
    from reminders.cli import render  # noqa: PLC0415

    if connection.json:
        render.print_json(answer)
        return False
    render.console().print(render.reminder_details(answer.reminder))
    return True

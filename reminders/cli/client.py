"""The client commands. Each imports what it calls with when it runs."""

from typing import Annotated

import typer
from typer import Argument, Option

from reminders.cli.options import Connection, PolicyFlags, What, When, with_options

ReminderId = Annotated[str, Argument(metavar="REMINDER", help="As `create` printed it.")]
Etag = Annotated[
    str | None, Option("--etag", help="Only this version; `get` shows it.", rich_help_panel="Call")
]
RequestId = Annotated[
    str | None,
    Option("--request-id", help="The same for retries of this very call.", rich_help_panel="Call"),
]
PageSize = Annotated[int, Option("--page-size", min=1, max=1000, help="How many at most.")]
PageToken = Annotated[str, Option("--page-token", help="Where the page before ended.")]


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
    if connection.json:
        render.print_json(answer)
        return
    render.console().print(render.reminder_details(answer.reminder))
    if answer.deduplicated:
        render.console().print("(it existed already: same dedup key or request id)")


@with_options(Connection)
def get(connection: Connection, *, reminder: ReminderId) -> None:
    """Show one reminder."""
    from tocsin.v1.reminder_service_pb2 import GetReminderRequest  # noqa: PLC0415

    from reminders.cli import progress, render, rpc  # noqa: PLC0415

    request = GetReminderRequest(namespace=connection.namespace, reminder_id=reminder)
    with rpc.scheduler(connection) as stub:
        answer = stub.GetReminder(request, timeout=rpc.DEADLINE_S)
        of_topic = bool(answer.topic_id) and not connection.json
        told = progress.newest(stub, connection.namespace, reminder) if of_topic else []
    if connection.json:
        render.print_json(answer)
        return
    render.console().print(render.reminder_details(answer))
    for line in told:
        render.console().print(line)


@with_options(Connection)
def list_reminders(
    connection: Connection,
    *,
    user: Annotated[str | None, Option("--user", help="Whose pending reminders.")] = None,
    topic: Annotated[str | None, Option("--topic", help="Or of which topic.")] = None,
    page_size: PageSize = 50,
    page_token: PageToken = "",
) -> None:
    """List the pending reminders of a user or a topic, soonest first."""
    from tocsin.v1.reminder_service_pb2 import ListRemindersRequest  # noqa: PLC0415

    from reminders.cli import render, requests, rpc  # noqa: PLC0415

    request = ListRemindersRequest(
        namespace=connection.namespace,
        page_size=page_size,
        page_token=page_token,
        **requests.audience(user, topic),
    )
    with rpc.scheduler(connection) as stub:
        answer = stub.ListReminders(request, timeout=rpc.DEADLINE_S)
    if connection.json:
        render.print_json(answer)
        return
    total = f"{answer.total_size}{'+' if answer.total_size_capped else ''}"
    if answer.reminders:
        render.console().print(render.reminder_table(answer.reminders))
    render.console().print(f"{len(answer.reminders)} of {total} pending")
    _say_more(answer.next_page_token)


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
    if connection.json:
        render.print_json(answer)
        return
    render.console().print(render.reminder_details(answer.reminder))
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
    if connection.json:
        render.print_json(answer)
        return
    render.console().print(render.reminder_details(answer.reminder))
    if answer.was_fired:
        render.console().print("an occurrence of the old rule had fired: it rings beside these")


@with_options(Connection)
def occurrences(
    connection: Connection,
    *,
    reminder: ReminderId,
    page_size: PageSize = 50,
    page_token: PageToken = "",
) -> None:
    """Show what was planned and what became of it, newest first."""
    from tocsin.v1.reminder_service_pb2 import ListOccurrencesRequest  # noqa: PLC0415

    from reminders.cli import render, rpc  # noqa: PLC0415

    request = ListOccurrencesRequest(
        namespace=connection.namespace,
        reminder_id=reminder,
        page_size=page_size,
        page_token=page_token,
    )
    with rpc.scheduler(connection) as stub:
        answer = stub.ListOccurrences(request, timeout=rpc.DEADLINE_S)
    if connection.json:
        render.print_json(answer)
        return
    render.console().print(render.occurrence_table(answer.occurrences))
    _say_more(answer.next_page_token)


@with_options(Connection)
def deliveries(
    connection: Connection,
    *,
    reminder: ReminderId,
    occurrence: Annotated[str, Option("--occurrence", help="Only of this one.")] = "",
    subscriber: Annotated[str, Option("--subscriber", help="Only to this one.")] = "",
    status: Annotated[
        list[str] | None, Option("--status", help="Only such: failed, retrying, …; repeatable.")
    ] = None,
    page_size: PageSize = 50,
    page_token: PageToken = "",
) -> None:
    """Show who was tried, how often, with what answer."""
    from tocsin.v1.reminder_service_pb2 import ListDeliveriesRequest  # noqa: PLC0415

    from reminders.cli import render, requests, rpc  # noqa: PLC0415

    request = ListDeliveriesRequest(
        namespace=connection.namespace,
        reminder_id=reminder,
        occurrence_id=occurrence,
        subscriber_id=subscriber,
        statuses=[requests.delivery_status(each) for each in status or ()],
        page_size=page_size,
        page_token=page_token,
    )
    with rpc.scheduler(connection) as stub:
        answer = stub.ListDeliveries(request, timeout=rpc.DEADLINE_S)
    if connection.json:
        render.print_json(answer)
        return
    render.console().print(render.delivery_table(answer.deliveries))
    _say_more(answer.next_page_token)


@with_options(Connection)
def explain(
    connection: Connection,
    *,
    reminder: ReminderId,
    limit: Annotated[int, Option("--limit", min=1, max=100, help="Newest occurrences.")] = 20,
) -> None:
    """Say what was promised, what became of it and why, and who acts next."""
    from tocsin.v1.reminder_service_pb2 import ExplainReminderRequest  # noqa: PLC0415

    from reminders.cli import explaining, render, rpc  # noqa: PLC0415

    request = ExplainReminderRequest(
        namespace=connection.namespace, reminder_id=reminder, occurrence_limit=limit
    )
    with rpc.scheduler(connection) as stub:
        answer = stub.ExplainReminder(request, timeout=rpc.DEADLINE_S)
    if connection.json:
        render.print_json(answer)
    else:
        explaining.show(answer)


@with_options(Connection)
def watch(
    connection: Connection,
    *,
    reminder: Annotated[str | None, Argument(metavar="REMINDER", help="Or --user.")] = None,
    user: Annotated[str | None, Option("--user", help="All that are pending now.")] = None,
    every: Annotated[str, Option("--every", help="How often to look.")] = "1s",
) -> None:
    """Follow a reminder, or all of a user's, until they have ended (or Ctrl-C)."""
    if (reminder is None) == (user is None):
        raise typer.BadParameter("give a reminder or --user, one of the two")
    from reminders.cli import requests, rpc, watching  # noqa: PLC0415

    interval = requests.duration("--every", every).ToTimedelta()
    with rpc.scheduler(connection) as stub:
        watcher = watching.Watcher(stub=stub, namespace=connection.namespace, json=connection.json)
        watcher.follow(reminder=reminder, user=user, every=interval)


def register(app: typer.Typer) -> None:
    """Adds the commands, in the order in which help lists them."""
    commands = (create, get, cancel, reschedule, occurrences, deliveries, explain, watch)
    for command in commands:
        app.command(rich_help_panel="Client")(command)
    app.command("list", rich_help_panel="Client")(list_reminders)
    app.command("cancel-group", rich_help_panel="Client")(cancel_group)


def _say_more(token: str) -> None:
    if token:
        from reminders.cli import render  # noqa: PLC0415

        render.console().print(f"there is more: --page-token {token}")

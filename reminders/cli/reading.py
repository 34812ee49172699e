"""The commands that show what there is and what became of it."""

from typing import Annotated

import typer
from typer import Argument, Option

from reminders.cli.options import Connection, PageSize, PageToken, ReminderId, with_options


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

    from reminders.cli import render, rpc, values  # noqa: PLC0415

    request = ListDeliveriesRequest(
        namespace=connection.namespace,
        reminder_id=reminder,
        occurrence_id=occurrence,
        subscriber_id=subscriber,
        statuses=[values.delivery_status(each) for each in status or ()],
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
    from reminders.cli import rpc, values, watching  # noqa: PLC0415

    interval = values.duration("--every", every).ToTimedelta()
    with rpc.scheduler(connection) as stub:
        watcher = watching.Watcher(stub=stub, namespace=connection.namespace, json=connection.json)
        watcher.follow(reminder=reminder, user=user, every=interval)


def register(app: typer.Typer) -> None:
    """Adds the commands, in the order in which help lists them."""
    app.command(rich_help_panel="Client")(get)
    app.command("list", rich_help_panel="Client")(list_reminders)
    for command in (occurrences, deliveries, explain, watch):
        app.command(rich_help_panel="Client")(command)


def _say_more(token: str) -> None:
    if token:
        from reminders.cli import render  # noqa: PLC0415

        render.console().print(f"there is more: --page-token {token}")

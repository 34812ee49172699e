"""`tocsin subscriber`: who is told what a topic says, and by which endpoint."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from reminders.cli import signing
from reminders.cli.options import Connection, Content, PageSize, PageToken, RequestId, with_options
from reminders.cli.subscriber_calls import (
    SecretFile,
    SubscriberId,
    TopicId,
    calling_topics,
    read_secret,
)

if TYPE_CHECKING:
    from tocsin.v1.reminder_pb2 import Channel
    from tocsin.v1.topic_service_pb2_grpc import TopicServiceStub


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointFlags:
    """Where one subscriber is told: exactly one."""

    webhook: Annotated[str, Option("--webhook", help="URL to POST to.")] = ""
    header: Annotated[
        list[str], Option("--header", help="name=value for the webhook; repeatable.")
    ] = field(default_factory=list)
    email: Annotated[str, Option("--email", help="Address to mail to.")] = ""
    subject: Annotated[str | None, Option("--subject", help="Of the e-mails.")] = None
    sms: Annotated[str, Option("--sms", help="Number such as +33123456789.")] = ""
    push: Annotated[str, Option("--push", help="Device token.")] = ""
    provider: Annotated[str | None, Option("--provider", help="Of the token: fcm | apns.")] = None
    log: Annotated[bool, Option("--log", help="A line in the dispatcher's log.")] = False
    template: Annotated[str, Option("--template", help="Overrides the reminder's.")] = ""


@with_options(EndpointFlags, Connection)
def put(
    flags: EndpointFlags,
    connection: Connection,
    *,
    topic: TopicId,
    subscriber: SubscriberId,
    label: Annotated[list[str], Option("--label", help="key=value; repeatable.")] = [],  # noqa: B006 - typer's way to declare a list
    only: Annotated[
        list[str],
        Option("--filter", help="key=value that a reminder's labels must have; repeatable."),
    ] = [],  # noqa: B006 - the same
    zone: Annotated[str, Option("--zone", help="IANA name: told beside the reminder's.")] = "",
    secret_file: SecretFile = None,
    request_id: RequestId = None,
) -> None:
    """Make a subscriber, or replace it; its secrets and its pause stay.

    tocsin subscriber put news s1 --webhook https://example.com/hook --filter kind=sports
    """
    from tocsin.v1 import topic_service_pb2 as calls  # noqa: PLC0415

    from reminders.cli import render, rpc, subscriber_texts, values  # noqa: PLC0415

    asked = calls.Subscriber(
        namespace=connection.namespace,
        topic_id=topic,
        subscriber_id=subscriber,
        endpoint=_endpoint(flags),
        labels=values.pairs("--label", label),
        filter=values.pairs("--filter", only),
        time_zone=zone,
    )
    request = calls.PutSubscriberRequest(
        subscriber=asked, secret=read_secret(secret_file), request_id=request_id or ""
    )
    with calling_topics(connection) as stub:
        answer = stub.PutSubscriber(request, timeout=rpc.DEADLINE_S)
    if connection.json:
        render.print_json(answer)
        return
    subscriber_texts.print_one(answer.subscriber)
    subscriber_texts.print_secret(answer.secret)


@with_options(Connection)
def import_file(
    connection: Connection,
    *,
    topic: TopicId,
    file: Annotated[Path, Argument(help="A JSON object a line; - for standard input.")],
    secrets_to: Annotated[
        Path | None,
        Option("--secrets-to", help="A new file for the secrets that the server makes."),
    ] = None,
    run: Annotated[
        str | None, Option("--run", help="Of an import that broke off: goes on with that one.")
    ] = None,
) -> None:
    """Put many subscribers from a file, in batches; a bad line refuses only itself.

    {"subscriberId": "s1", "endpoint": {"webhook": {"url": "https://example.com/hook"}}}
    """
    from reminders.cli import importing  # noqa: PLC0415

    importing.import_subscribers(connection, topic, file, secrets_to, run)


@with_options(Connection)
def get(connection: Connection, *, topic: TopicId, subscriber: SubscriberId) -> None:
    """Show a subscriber; of its secrets only when they were made and until when they sign."""
    from tocsin.v1.topic_service_pb2 import GetSubscriberRequest  # noqa: PLC0415

    _one(connection, topic, subscriber, GetSubscriberRequest, lambda stub: stub.GetSubscriber)


@with_options(Connection)
def list_subscribers(
    connection: Connection,
    *,
    topic: TopicId,
    label: Annotated[list[str], Option("--label", help="Only with key=value; repeatable.")] = [],  # noqa: B006 - typer's way to declare a list
    paused: Annotated[
        bool | None, Option("--paused/--active", help="Only these, or only those; else both.")
    ] = None,
    page_size: PageSize = 50,
    page_token: PageToken = "",
) -> None:
    """List the subscribers of a topic."""
    from tocsin.v1.topic_service_pb2 import ListSubscribersRequest  # noqa: PLC0415

    from reminders.cli import render, rpc, subscriber_texts, values  # noqa: PLC0415

    request = ListSubscribersRequest(
        namespace=connection.namespace,
        topic_id=topic,
        labels=values.pairs("--label", label),
        paused=paused,
        page_size=page_size,
        page_token=page_token,
    )
    with calling_topics(connection) as stub:
        answer = stub.ListSubscribers(request, timeout=rpc.DEADLINE_S)
    if connection.json:
        render.print_json(answer)
        return
    console = render.console()
    if answer.subscribers:
        console.print(subscriber_texts.listed(answer.subscribers))
    else:
        console.print("none on this page")
    if answer.next_page_token:
        console.print(f"there is more: --page-token {answer.next_page_token}")


@with_options(Connection)
def delete(connection: Connection, *, topic: TopicId, subscriber: SubscriberId) -> None:
    """Take a subscriber away, with its secrets."""
    from tocsin.v1.topic_service_pb2 import DeleteSubscriberRequest  # noqa: PLC0415

    from reminders.cli import render, rpc  # noqa: PLC0415

    request = DeleteSubscriberRequest(
        namespace=connection.namespace, topic_id=topic, subscriber_id=subscriber
    )
    with calling_topics(connection) as stub:
        answer = stub.DeleteSubscriber(request, timeout=rpc.DEADLINE_S)
    if connection.json:
        render.print_json(answer)
    else:
        render.console().print("deleted" if answer.deleted else "it was not there")


@with_options(Connection)
def pause(connection: Connection, *, topic: TopicId, subscriber: SubscriberId) -> None:
    """Leave a subscriber out until it is resumed."""
    from tocsin.v1.topic_service_pb2 import PauseSubscriberRequest  # noqa: PLC0415

    _one(connection, topic, subscriber, PauseSubscriberRequest, lambda stub: stub.PauseSubscriber)


@with_options(Connection)
def resume(connection: Connection, *, topic: TopicId, subscriber: SubscriberId) -> None:
    """Tell a paused subscriber again, from now on."""
    from tocsin.v1.topic_service_pb2 import ResumeSubscriberRequest  # noqa: PLC0415

    _one(connection, topic, subscriber, ResumeSubscriberRequest, lambda stub: stub.ResumeSubscriber)


def _one(
    connection: Connection,
    topic: str,
    subscriber: str,
    request: Any,
    call: "Callable[[TopicServiceStub], Any]",
) -> None:
    """A call that names a subscriber and answers it."""
    from reminders.cli import render, rpc, subscriber_texts  # noqa: PLC0415

    named = request(namespace=connection.namespace, topic_id=topic, subscriber_id=subscriber)
    with calling_topics(connection) as stub:
        answer = call(stub)(named, timeout=rpc.DEADLINE_S)
    if connection.json:
        render.print_json(answer)
    else:
        subscriber_texts.print_one(answer)


def _endpoint(flags: EndpointFlags) -> "Channel":
    from reminders.cli import channels  # noqa: PLC0415

    content = Content(
        webhook=[flags.webhook] if flags.webhook else [],
        header=flags.header,
        email=[flags.email] if flags.email else [],
        subject=flags.subject,
        sms=[flags.sms] if flags.sms else [],
        push=[flags.push] if flags.push else [],
        provider=flags.provider,
        log=flags.log,
    )
    found = channels.channels(content)
    if len(found) > 1:
        raise typer.BadParameter("a subscriber has one endpoint: give each its own id")
    found[0].template_id = flags.template
    return found[0]


def register(app: typer.Typer) -> None:
    """Adds the commands, in the order in which help lists them."""
    group = typer.Typer(
        help="Who is told what a topic says: endpoints, filters, signing secrets.",
        no_args_is_help=True,
    )
    for command in (put, get, delete, pause, resume):
        group.command()(command)
    group.command("list")(list_subscribers)
    group.command("import")(import_file)
    signing.register(group)
    app.add_typer(group, name="subscriber", rich_help_panel="Client")

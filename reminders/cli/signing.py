"""`tocsin subscriber rotate-secret` and `test`: what signs, and what the receiver says to it."""

from typing import Annotated

import typer
from typer import Option

from reminders.cli.options import Connection, Content, RequestId, with_options
from reminders.cli.subscriber_calls import (
    SecretFile,
    SubscriberId,
    TopicId,
    calling_topics,
    read_secret,
)


@with_options(Connection)
def rotate_secret(
    connection: Connection,
    *,
    topic: TopicId,
    subscriber: SubscriberId,
    overlap: Annotated[
        str | None,
        Option("--overlap", help="How long the old one signs as well: 12h; 0s ends it; else 24h."),
    ] = None,
    secret_file: SecretFile = None,
    request_id: RequestId = None,
) -> None:
    """Make a new signing secret; the old one goes on for a while, and both sign."""
    from tocsin.v1.topic_service_pb2 import RotateSecretRequest  # noqa: PLC0415

    from reminders.cli import render, rpc, subscriber_texts, values  # noqa: PLC0415

    request = RotateSecretRequest(
        namespace=connection.namespace,
        topic_id=topic,
        subscriber_id=subscriber,
        overlap=None if overlap is None else values.duration("--overlap", overlap),
        secret=read_secret(secret_file),
        request_id=request_id or "",
    )
    with calling_topics(connection) as stub:
        answer = stub.RotateSecret(request, timeout=rpc.DEADLINE_S)
    if connection.json:
        render.print_json(answer)
        return
    until = render.utc_text(render.moment(answer.previous_expire_time))
    render.console().print(f"rotated: secrets before this one sign until {until}")
    subscriber_texts.print_secret(answer.secret)


@with_options(Connection)
def send_test(
    connection: Connection,
    *,
    topic: TopicId,
    subscriber: SubscriberId,
    param: Annotated[list[str], Option("--param", help="key=text; repeatable.")] = [],  # noqa: B006 - typer's way to declare a list
    params: Annotated[str | None, Option("--params", help="The payload, JSON.")] = None,
    template: Annotated[str, Option("--template", help="Rendered if it exists.")] = "",
    wait: Annotated[str, Option("--wait", help="For the outcome, at most 30s.")] = "10s",
    request_id: RequestId = None,
) -> None:
    """Send one signed event to a subscriber now, and show what it answered."""
    from tocsin.v1.topic_service_pb2 import SendTestRequest  # noqa: PLC0415

    from reminders.cli import render, requests, rpc, values  # noqa: PLC0415

    request = SendTestRequest(
        namespace=connection.namespace,
        topic_id=topic,
        subscriber_id=subscriber,
        template_id=template,
        wait=values.duration("--wait", wait),
        request_id=request_id or "",
    )
    request.params.update(requests.payload(Content(param=param, params=params)))
    deadline_s = rpc.DEADLINE_S + request.wait.ToTimedelta().total_seconds()
    with calling_topics(connection) as stub:
        answer = stub.SendTest(request, timeout=deadline_s)
    if connection.json:
        render.print_json(answer)
        return
    console = render.console()
    if answer.HasField("delivery"):
        console.print(render.delivery_table([answer.delivery]))
        for attempt in answer.delivery.attempts:
            took = render.lateness_text(attempt.duration.ToTimedelta())
            console.print(f"attempt {attempt.number} took {took}: {attempt.excerpt or '-'}")
    if not answer.finished:
        console.print(f"not known yet: tocsin deliveries {answer.reminder_id}")
    elif not answer.HasField("delivery"):
        console.print(f"nothing was sent: tocsin explain {answer.reminder_id}")


def register(group: typer.Typer) -> None:
    """Adds both to `tocsin subscriber`."""
    group.command("rotate-secret")(rotate_secret)
    group.command("test")(send_test)

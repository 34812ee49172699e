"""What the commands about subscribers share: arguments, and the way to the server."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from reminders.cli.options import Connection

if TYPE_CHECKING:
    from tocsin.v1.topic_service_pb2_grpc import TopicServiceStub

TopicId = Annotated[str, Argument(metavar="TOPIC", help="Your id of the topic.")]
SubscriberId = Annotated[str, Argument(metavar="SUBSCRIBER", help="Your id of the subscriber.")]
SecretFile = Annotated[
    Path | None,
    Option("--secret-file", help="Holds a signing secret, whsec_…; else the server makes one."),
]


@contextmanager
def calling_topics(connection: Connection) -> "Iterator[TopicServiceStub]":
    """A stub for the length of the block."""
    from tocsin.v1.topic_service_pb2_grpc import TopicServiceStub  # noqa: PLC0415

    from reminders.cli import rpc  # noqa: PLC0415

    with rpc.calling(connection, TopicServiceStub) as stub:
        yield stub


def read_secret(file: Path | None) -> str:
    """Not by a flag: the list of processes shows those."""
    if file is None:
        return ""
    try:
        return file.read_text().strip()
    except OSError as error:
        raise typer.BadParameter(f"--secret-file {file}: {error.strerror}") from error

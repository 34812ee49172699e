"""Calling the scheduler, and explaining to a person what it refused."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TypeVar

import grpc
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status
from tocsin.v1.reminder_service_pb2_grpc import ReminderServiceStub

from reminders.cli.failure import CommandError
from reminders.cli.options import Connection
from reminders.config.durations import format_duration
from reminders.config.sources import ConfigFileError, config_file, read_config_file

DEADLINE_S = 15.0
DEFAULT_ADDRESS = "127.0.0.1:50051"

Stub = TypeVar("Stub")


class Asked(Protocol):
    """A request that is answered page by page."""

    page_token: str


class Answered(Protocol):
    """A page, or what one call of several came to."""

    next_page_token: str


Answer = TypeVar("Answer", bound=Answered)


def address_of(connection: Connection) -> str:
    """The flag or variable, else what the file says the scheduler listens on, else the default.

    Raises:
        CommandError: The file can't be read.
    """
    if connection.address:
        return connection.address
    try:
        return str(read_config_file(config_file()).get("grpc_address", DEFAULT_ADDRESS))
    except ConfigFileError as error:
        raise CommandError(str(error)) from error


def scheduler(connection: Connection) -> AbstractContextManager[ReminderServiceStub]:
    """As `calling`, of the service that most commands call."""
    return calling(connection, ReminderServiceStub)


@contextmanager
def calling(connection: Connection, stub: Callable[[grpc.Channel], Stub]) -> Iterator[Stub]:
    """A stub for the length of the block.

    Raises:
        CommandError: A call in the block failed.
    """
    address = address_of(connection)
    with grpc.insecure_channel(address) as channel:
        try:
            yield stub(channel)
        except grpc.RpcError as error:
            raise CommandError(*explain(error, address)) from error


def pages(call: Callable[..., Answer], request: Asked) -> Iterator[Answer]:
    """The answers to a request, each from where the one before it ended, up to the last."""
    while True:
        answer = call(request, timeout=DEADLINE_S)
        yield answer
        request.page_token = answer.next_page_token
        if not request.page_token:
            return


def explain(error: grpc.RpcError, address: str) -> list[str]:
    """A headline, then `field: description` for every violation, then when to try again."""
    code = error.code()
    text = error.details()
    status = rpc_status.from_call(error)
    if status is not None:
        return explain_status(code.name, status)
    if code is grpc.StatusCode.UNAVAILABLE:
        return [
            f"no scheduler answers on {address}",
            "`make run` or `tocsin up` starts one; --address or TOCSIN_GRPC_ADDRESS names another",
        ]
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return [f"{address} did not answer within {DEADLINE_S:.0f} s"]
    return [f"{code.name}: {text}"]


def explain_status(code_name: str, status: Status) -> list[str]:
    """The same from the rich details."""
    reason, lines, again = "", [], ""
    for detail in status.details:
        info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
        retry = error_details_pb2.RetryInfo()
        if detail.Unpack(info):
            reason = info.reason
        elif detail.Unpack(bad):
            lines += [f"{each.field}: {each.description}" for each in bad.field_violations]
        elif detail.Unpack(retry):
            delay = format_duration(retry.retry_delay.ToTimedelta())
            again = f"the same call may be repeated, best after {delay}"
    name = f"{code_name} ({reason})" if reason else code_name
    headline = name if lines else f"{name}: {status.message}"
    return [headline, *lines, *([again] if again else [])]

"""What a flag says, as a value of a message."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import typer
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from tocsin.v1 import reminder_pb2 as pb

from reminders.config.durations import parse_duration


def duration(flag: str, text: str) -> Duration:
    """A duration flag."""
    try:
        length: timedelta = parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(f"{flag}: {error}") from error
    message = Duration()
    message.FromTimedelta(length)
    return message


def instant(flag: str, text: str) -> Timestamp:
    """An instant flag: ISO 8601 with Z or an offset."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(
            f"{flag}: {text!r} is no instant such as 2026-12-01T09:00:00Z"
        ) from error
    if moment.tzinfo is None:
        raise typer.BadParameter(
            f"{flag}: {text!r} names no offset: end it with Z for UTC, "
            "or give a wall-clock time by --local and --zone"
        )
    message = Timestamp()
    message.FromDatetime(moment.astimezone(UTC))
    return message


def pairs(flag: str, items: Iterable[str]) -> dict[str, str]:
    """`key=value` flags; the last of a key wins."""
    found = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not key or not equals:
            raise typer.BadParameter(f"{flag} {item!r}: write key=value")
        found[key] = value
    return found


def delivery_status(text: str) -> "pb.DeliveryStatus.ValueType":
    """One of the words that `deliveries` shows."""
    prefix = "DELIVERY_STATUS_"
    names = {name.removeprefix(prefix).lower(): value for name, value in pb.DeliveryStatus.items()}
    names.pop("unspecified")
    if text not in names:
        raise typer.BadParameter(f"--status: {text!r} is none of {', '.join(names)}")
    return names[text]

"""Subscribers for people."""

from collections.abc import Iterable, Mapping

from google.protobuf.timestamp_pb2 import Timestamp
from rich.table import Table
from tocsin.v1.topic_service_pb2 import SigningSecret, Subscriber

from reminders.cli import render

_COLUMNS = ("SUBSCRIBER", "STATUS", "TO", "FILTER", "LABELS", "ZONE")


def listed(subscribers: Iterable[Subscriber]) -> Table:
    """A row each."""
    rows = (
        (
            one.subscriber_id,
            _status(one),
            render.channel_text(one.endpoint),
            _pairs(one.filter),
            _pairs(one.labels),
            one.time_zone,
        )
        for one in subscribers
    )
    return render.table(_COLUMNS, rows)


def print_one(one: Subscriber) -> None:
    """A line for each field that says something."""
    rows = {
        "subscriber": one.subscriber_id,
        "topic": one.topic_id,
        "status": _status(one),
        "to": render.channel_text(one.endpoint),
        "template": one.endpoint.template_id,
        "filter": _pairs(one.filter),
        "labels": _pairs(one.labels),
        "zone": one.time_zone,
        "secrets": "\n".join(map(_secret, one.secrets)),
        "created": _time(one.create_time),
        "changed": _time(one.update_time),
    }
    render.console().print(render.fields(rows))


def print_secret(secret: str) -> None:
    """If there is one."""
    if secret:
        print(f"secret: {secret}")
        print("  shown this once: keep it where the receiver verifies signatures")


def _status(one: Subscriber) -> str:
    return "paused" if one.paused else "active"


def _pairs(found: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(found.items()))


def _secret(one: SigningSecret) -> str:
    made = f"made {_time(one.create_time)}"
    ends = one.HasField("expire_time")
    return f"{made}, signs until {_time(one.expire_time)}" if ends else made


def _time(stamp: Timestamp) -> str:
    return render.utc_text(render.moment(stamp))

"""`tocsin ended`: what was not delivered, and sending it again."""

from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from reminders.cli.options import Connection, RequestId, with_options

if TYPE_CHECKING:
    from google.protobuf.timestamp_pb2 import Timestamp
    from tocsin.v1.delivery_service_pb2 import (
        EndedDelivery,
        EndedFilter,
        ListEndedDeliveriesResponse,
        RedriveCounts,
    )
    from tocsin.v1.delivery_service_pb2_grpc import DeliveryServiceStub

ended = typer.Typer(
    help="What ended as failed or expired: list it, send it again.", no_args_is_help=True
)

PAGE = 200
"""Deliveries that one call of a redrive looks at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Which:
    """The filter."""

    since: Annotated[
        str, Option("--since", help="Ended then or later: an instant, or 24h for a day ago.")
    ] = "24h"
    until: Annotated[
        str | None, Option("--until", help="Ended before: an instant, or 1h. Else now.")
    ] = None
    status: Annotated[str, Option("--status", help="failed | expired. Else both.")] = ""
    reason: Annotated[str, Option("--reason", help="Such as attempts_exhausted.")] = ""
    endpoint: Annotated[str, Option("--endpoint", help="Its id, ep_….")] = ""
    subscriber: Annotated[str, Option("--subscriber", help="Of a topic.")] = ""


@ended.command("list")
@with_options(Which, Connection)
def list_ended(
    which: Which,
    connection: Connection,
    *,
    payload: Annotated[bool, Option("--payload", help="With what was to be sent.")] = False,
    limit: Annotated[int, Option("--limit", min=1, help="Show so many at most.")] = 100,
) -> None:
    """List them, oldest first; what was delivered since is left out."""
    from reminders.cli import render  # noqa: PLC0415

    shown: list[EndedDelivery] = []
    more = False
    for page in _pages(which, connection, limit):
        if connection.json:
            render.print_json(page)
        shown += page.deliveries
        if len(shown) >= limit:
            more = len(shown) > limit or bool(page.next_page_token)
            break
    if connection.json:
        return
    _print(shown[:limit], payload=payload)
    if more:
        render.console().print("there are more: --limit, or a narrower filter, shows them")


@ended.command()
@with_options(Which, Connection)
def redrive(
    which: Which,
    connection: Connection,
    *,
    dry_run: Annotated[bool, Option("--dry-run", help="Count them, send none.")] = False,
    request_id: RequestId = None,
) -> None:
    """Send them again, under the keys that they had, at most 100 a second."""
    from uuid import uuid4  # noqa: PLC0415

    from tocsin.v1.delivery_service_pb2 import RedriveDeliveriesRequest  # noqa: PLC0415

    from reminders.cli import render, rpc  # noqa: PLC0415

    request = RedriveDeliveriesRequest(
        filter=filter_of(which, connection.namespace),
        validate_only=dry_run,
        request_id=request_id or uuid4().hex,
        page_size=PAGE,
    )
    counts: Counter[str] = Counter()
    with calling_deliveries(connection) as stub:
        for answer in rpc.pages(stub.RedriveDeliveries, request):
            if connection.json:
                render.print_json(answer)
            add_counts(counts, answer.counts)
    if not connection.json:
        render.console().print(counts_text(counts, dry_run=dry_run))


def filter_of(which: Which, namespace: str) -> "EndedFilter":
    """The message."""
    from tocsin.v1.delivery_service_pb2 import EndedFilter  # noqa: PLC0415
    from tocsin.v1.reminder_pb2 import DeliveryStatus  # noqa: PLC0415

    status = DeliveryStatus.DELIVERY_STATUS_UNSPECIFIED
    if which.status:
        if which.status not in ("failed", "expired"):
            raise typer.BadParameter("--status: failed or expired")
        status = DeliveryStatus.Value(f"DELIVERY_STATUS_{which.status.upper()}")
    return EndedFilter(
        namespace=namespace,
        start_time=moment("--since", which.since),
        end_time=moment("--until", which.until) if which.until is not None else None,
        status=status,
        reason=which.reason,
        endpoint_id=which.endpoint,
        subscriber_id=which.subscriber,
    )


def moment(flag: str, text: str) -> "Timestamp":
    """An instant, or how long ago."""
    from datetime import UTC, datetime  # noqa: PLC0415

    from google.protobuf.timestamp_pb2 import Timestamp  # noqa: PLC0415

    from reminders.cli import values  # noqa: PLC0415

    if "-" in text[1:] or ":" in text:
        return values.instant(flag, text)
    made = Timestamp()
    made.FromDatetime(datetime.now(UTC) - values.duration(flag, text).ToTimedelta())
    return made


def calling_deliveries(connection: Connection) -> "AbstractContextManager[DeliveryServiceStub]":
    """As `rpc.calling`, of the service for operators."""
    from tocsin.v1.delivery_service_pb2_grpc import DeliveryServiceStub  # noqa: PLC0415

    from reminders.cli import rpc  # noqa: PLC0415

    return rpc.calling(connection, DeliveryServiceStub)


def add_counts(counts: Counter[str], answer: "RedriveCounts") -> None:
    """Of one call, to those of the others."""
    for field, value in answer.ListFields():
        counts[field.name] += value


def counts_text(counts: Counter[str], *, dry_run: bool = False) -> str:
    """In a line."""
    sent = counts["sent_again"]
    said = f"{sent} {'would' if dry_run else 'will'} be sent again"
    words = {
        "ended": "cancelled or gone",
        "paused": "paused",
        "channel_gone": "without their channel",
        "no_delivery": "never a delivery (trigger rings anew)",
    }
    left = [f"{counts[name]} {text}" for name, text in words.items() if counts[name]]
    return f"{said}; left: {', '.join(left)}" if left else said


def _pages(
    which: Which, connection: Connection, limit: int
) -> "Iterator[ListEndedDeliveriesResponse]":
    from tocsin.v1.delivery_service_pb2 import ListEndedDeliveriesRequest  # noqa: PLC0415

    from reminders.cli import rpc  # noqa: PLC0415

    request = ListEndedDeliveriesRequest(
        filter=filter_of(which, connection.namespace), page_size=min(limit, PAGE)
    )
    with calling_deliveries(connection) as stub:
        yield from rpc.pages(stub.ListEndedDeliveries, request)


def _print(deliveries: "list[EndedDelivery]", *, payload: bool) -> None:
    from google.protobuf.json_format import MessageToJson  # noqa: PLC0415

    from reminders.cli import render  # noqa: PLC0415

    columns = ["ENDED (UTC)", "STATUS", "WHY", "REMINDER", "OCCURRENCE", "TO", "ENDPOINT"]
    rows: list[list[str]] = []
    for each in deliveries:
        delivery, content = each.delivery, each.payload
        known = content.channel.WhichOneof("kind") is not None
        to = render.channel_text(content.channel) if known else each.channel_kind
        row = [
            render.utc_text(render.moment(each.end_time)),
            render.delivery_word(delivery),
            delivery.reason,
            delivery.reminder_id,
            delivery.occurrence_id,
            delivery.subscriber_id or to,
            each.endpoint_id,
        ]
        if payload:
            params = MessageToJson(content.params, indent=None, ensure_ascii=False)
            row.append(f"{content.template_id} {params}".strip())
        rows.append(row)
    if payload:
        columns.append("PAYLOAD")
    render.console().print(render.table(columns, rows))

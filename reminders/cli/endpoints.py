"""`tocsin endpoints`: which receivers fail, which are disabled, and how they come back."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from reminders.cli.ended import PAGE, add_counts, calling_deliveries, counts_text, moment
from reminders.cli.options import Connection, RequestId, with_options

if TYPE_CHECKING:
    from tocsin.v1.delivery_service_pb2 import Endpoint

endpoints = typer.Typer(
    help="Receivers that fail: list, show, enable, disable.", no_args_is_help=True
)

Which = Annotated[
    str, Argument(metavar="ENDPOINT", help="Its id, ep_…, or a webhook's URL.", show_default=False)
]


@endpoints.command("list")
@with_options(Connection)
def list_endpoints(
    connection: Connection,
    *,
    disabled: Annotated[bool, Option("--disabled", help="Only those.")] = False,
) -> None:
    """List those that are disabled, or have failed for ten minutes or more."""
    from tocsin.v1.delivery_service_pb2 import ListEndpointsRequest  # noqa: PLC0415

    from reminders.cli import render, rpc  # noqa: PLC0415

    request = ListEndpointsRequest(
        namespace=connection.namespace, disabled_only=disabled, page_size=PAGE
    )
    found: list[Endpoint] = []
    with calling_deliveries(connection) as stub:
        for page in rpc.pages(stub.ListEndpoints, request):
            if connection.json:
                render.print_json(page)
            found += page.endpoints
    if not connection.json:
        _print(found)


@endpoints.command()
@with_options(Connection)
def show(connection: Connection, *, endpoint: Which) -> None:
    """Show one as it stands."""
    from tocsin.v1.delivery_service_pb2 import GetEndpointRequest  # noqa: PLC0415

    from reminders.cli import render, rpc  # noqa: PLC0415

    request = GetEndpointRequest(namespace=connection.namespace, **_name(endpoint))
    with calling_deliveries(connection) as stub:
        answer = stub.GetEndpoint(request, timeout=rpc.DEADLINE_S)
    if connection.json:
        render.print_json(answer)
    else:
        _print([answer])


@endpoints.command()
@with_options(Connection)
def enable(
    connection: Connection,
    *,
    endpoint: Which,
    recover_since: Annotated[
        str | None,
        Option("--recover-since", help="Send again what ended since: an instant, or 5d."),
    ] = None,
    request_id: RequestId = None,
) -> None:
    """Have it tried again, within 15 seconds, and send again what it missed."""
    from uuid import uuid4  # noqa: PLC0415

    from tocsin.v1.delivery_service_pb2 import EnableEndpointRequest  # noqa: PLC0415

    from reminders.cli import render, rpc  # noqa: PLC0415

    request = EnableEndpointRequest(
        namespace=connection.namespace,
        recover_since=moment("--recover-since", recover_since) if recover_since else None,
        request_id=request_id or uuid4().hex,
        page_size=PAGE,
        **_name(endpoint),
    )
    counts: Counter[str] = Counter()
    with calling_deliveries(connection) as stub:
        for answer in rpc.pages(stub.EnableEndpoint, request):
            if connection.json:
                render.print_json(answer)
            add_counts(counts, answer.counts)
    if connection.json:
        return
    _print([answer.endpoint])
    if recover_since:
        render.console().print(counts_text(counts))


@endpoints.command()
@with_options(Connection)
def disable(connection: Connection, *, endpoint: Which) -> None:
    """Have nothing sent there any more, within 15 seconds; what is due ends as failed."""
    from tocsin.v1.delivery_service_pb2 import DisableEndpointRequest  # noqa: PLC0415

    from reminders.cli import render, rpc  # noqa: PLC0415

    request = DisableEndpointRequest(namespace=connection.namespace, **_name(endpoint))
    with calling_deliveries(connection) as stub:
        answer = stub.DisableEndpoint(request, timeout=rpc.DEADLINE_S)
    if connection.json:
        render.print_json(answer)
    else:
        _print([answer])


def _name(endpoint: str) -> dict[str, str]:
    return {"webhook_url" if "://" in endpoint else "endpoint_id": endpoint}


def _print(found: "Sequence[Endpoint]") -> None:
    from tocsin.v1 import delivery_service_pb2 as calls  # noqa: PLC0415

    from reminders.cli import render  # noqa: PLC0415

    columns = ("ENDPOINT", "STATUS", "SINCE (UTC)", "WHY", "LAST ERROR", "ADDRESS")
    rows: list[tuple[str, ...]] = []
    for each in found:
        since = each.disable_time if each.HasField("disable_time") else each.failing_time
        why = calls.DisableReason.Name(each.disable_reason) if each.disable_reason else ""
        rows.append(
            (
                each.endpoint_id,
                render.word(calls.EndpointStatus.Name(each.status), "ENDPOINT_STATUS_"),
                render.utc_text(render.moment(since)) if since.seconds else "",
                render.word(why, "DISABLE_REASON_"),
                each.error_class,
                f"{each.channel_kind} {each.address}".strip(),
            )
        )
    render.console().print(render.table(columns, rows))

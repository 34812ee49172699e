"""`tocsin recipient`: where a user is reached, and when not."""

from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from reminders.cli.options import Connection, Etag, with_options

if TYPE_CHECKING:
    from tocsin.v1.recipient_service_pb2 import OptOut, PushAddress, QuietHours, Recipient

recipient = typer.Typer(
    help="Where users are reached: addresses, zone, opt-outs, quiet hours.",
    no_args_is_help=True,
)

UserId = Annotated[str, Argument(metavar="USER", help="Your id of the user.")]


@recipient.command()
@with_options(Connection)
def put(
    connection: Connection,
    *,
    user: UserId,
    email: Annotated[str, Option("--email", help="One address.")] = "",
    sms: Annotated[str, Option("--sms", help="A number such as +33123456789.")] = "",
    push: Annotated[
        list[str],
        Option("--push", help="fcm:TOKEN or apns:TOKEN; repeatable, the one to use first."),
    ] = [],  # noqa: B006 - typer's way to declare a list
    zone: Annotated[str, Option("--zone", help="IANA name: of local times without one.")] = "",
    locale: Annotated[str, Option("--locale", help="Of templates, such as fr-CA.")] = "",
    opt_out: Annotated[list[str], Option("--opt-out", help="email | sms | push; repeatable.")] = [],  # noqa: B006 - the same
    quiet: Annotated[str, Option("--quiet", help="Hours in --zone, such as 22:00-07:00.")] = "",
    quiet_rule: Annotated[str, Option("--quiet-rule", help="wait | drop")] = "wait",
    etag: Etag = None,
) -> None:
    """Make or replace a user's record, whole: what is not given is not there any more.

    tocsin recipient put u1 --email ada@example.com --zone Europe/Paris --quiet 22:00-07:00
    """
    from tocsin.v1 import recipient_service_pb2 as calls  # noqa: PLC0415
    from tocsin.v1.recipient_service_pb2_grpc import RecipientServiceStub  # noqa: PLC0415

    from reminders.cli import rpc  # noqa: PLC0415

    asked = calls.Recipient(
        namespace=connection.namespace,
        user_id=user,
        email=email,
        sms=sms,
        time_zone=zone,
        locale=locale,
        push=map(_device, push),
        opt_outs=map(_opt_out, opt_out),
        quiet_hours=_quiet_hours(quiet, quiet_rule) if quiet else None,
    )
    request = calls.PutRecipientRequest(recipient=asked, etag=etag or "")
    with rpc.calling(connection, RecipientServiceStub) as stub:
        answer = stub.PutRecipient(request, timeout=rpc.DEADLINE_S)
    _show(connection, answer)


@recipient.command()
@with_options(Connection)
def get(connection: Connection, *, user: UserId) -> None:
    """Show a user's record."""
    from tocsin.v1.recipient_service_pb2 import GetRecipientRequest  # noqa: PLC0415
    from tocsin.v1.recipient_service_pb2_grpc import RecipientServiceStub  # noqa: PLC0415

    from reminders.cli import rpc  # noqa: PLC0415

    request = GetRecipientRequest(namespace=connection.namespace, user_id=user)
    with rpc.calling(connection, RecipientServiceStub) as stub:
        answer = stub.GetRecipient(request, timeout=rpc.DEADLINE_S)
    _show(connection, answer)


@recipient.command()
@with_options(Connection)
def delete(connection: Connection, *, user: UserId, etag: Etag = None) -> None:
    """Take a user's record away. Reminders stay, and find no address there any more."""
    from tocsin.v1.recipient_service_pb2 import DeleteRecipientRequest  # noqa: PLC0415
    from tocsin.v1.recipient_service_pb2_grpc import RecipientServiceStub  # noqa: PLC0415

    from reminders.cli import render, rpc  # noqa: PLC0415

    request = DeleteRecipientRequest(namespace=connection.namespace, user_id=user, etag=etag or "")
    with rpc.calling(connection, RecipientServiceStub) as stub:
        answer = stub.DeleteRecipient(request, timeout=rpc.DEADLINE_S)
    if connection.json:
        render.print_json(answer)
    else:
        render.console().print(f"deleted: nothing is kept of where {user} is reached")


def _device(text: str) -> "PushAddress":
    from tocsin.v1 import recipient_service_pb2 as calls  # noqa: PLC0415
    from tocsin.v1 import reminder_pb2 as pb  # noqa: PLC0415

    provider, colon, token = text.partition(":")
    known = {"fcm": pb.PUSH_PROVIDER_FCM, "apns": pb.PUSH_PROVIDER_APNS}
    if not colon or provider not in known:
        raise typer.BadParameter(f"--push {text}: write fcm:TOKEN or apns:TOKEN")
    return calls.PushAddress(token=token, provider=known[provider])


def _opt_out(text: str) -> "OptOut.ValueType":
    from tocsin.v1 import recipient_service_pb2 as calls  # noqa: PLC0415

    known = {"email": calls.OPT_OUT_EMAIL, "sms": calls.OPT_OUT_SMS, "push": calls.OPT_OUT_PUSH}
    if text not in known:
        raise typer.BadParameter(f"--opt-out {text}: choose one of {', '.join(known)}")
    return known[text]


def _quiet_hours(text: str, rule: str) -> "QuietHours":
    from tocsin.v1 import recipient_service_pb2 as calls  # noqa: PLC0415

    known = {"wait": calls.QUIET_RULE_WAIT, "drop": calls.QUIET_RULE_DROP}
    start, dash, end = text.partition("-")
    if not dash:
        raise typer.BadParameter(f"--quiet {text}: write start-end, such as 22:00-07:00")
    if rule not in known:
        raise typer.BadParameter(f"--quiet-rule {rule}: choose one of {', '.join(known)}")
    return calls.QuietHours(start=start, end=end, rule=known[rule])


def _show(connection: Connection, answer: "Recipient") -> None:
    from reminders.cli import render  # noqa: PLC0415

    if connection.json:
        render.print_json(answer)
    else:
        render.console().print(render.fields(_said(answer)))


def _said(answer: "Recipient") -> dict[str, str]:
    """A line for each field that says something."""
    from tocsin.v1 import recipient_service_pb2 as calls  # noqa: PLC0415
    from tocsin.v1 import reminder_pb2 as pb  # noqa: PLC0415

    from reminders.cli import render  # noqa: PLC0415

    def device(one: "PushAddress") -> str:
        name = render.word(pb.PushProvider.Name(one.provider), "PUSH_PROVIDER_")
        return f"{name}:{one.token}"

    quiet = answer.quiet_hours
    rule = render.word(calls.QuietRule.Name(quiet.rule), "QUIET_RULE_")
    return {
        "user": answer.user_id,
        "email": answer.email,
        "sms": answer.sms,
        "push": "\n".join(map(device, answer.push)),
        "zone": answer.time_zone,
        "locale": answer.locale,
        "opted out of": ", ".join(
            render.word(calls.OptOut.Name(each), "OPT_OUT_") for each in answer.opt_outs
        ),
        "quiet": f"{quiet.start} to {quiet.end}: {rule}" if quiet.start else "",
        "etag": answer.etag,
        "changed": render.utc_text(render.moment(answer.update_time)),
    }

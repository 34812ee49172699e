"""The commands that make a reminder ring beside its schedule: now, or for a past range."""

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from reminders.cli.failure import CommandError
from reminders.cli.options import Connection, ReminderId, RequestId, with_options

if TYPE_CHECKING:
    from tocsin.v1.reminder_service_pb2 import ReplayOccurrenceResponse


@with_options(Connection)
def trigger(connection: Connection, *, reminder: ReminderId, request_id: RequestId = None) -> None:
    """Have a reminder ring once now; its schedule goes on."""
    from tocsin.v1.reminder_service_pb2 import TriggerReminderRequest  # noqa: PLC0415

    from reminders.cli import render, rpc  # noqa: PLC0415

    request = TriggerReminderRequest(
        namespace=connection.namespace, reminder_id=reminder, request_id=request_id or ""
    )
    with rpc.scheduler(connection) as stub:
        answer = stub.TriggerReminder(request, timeout=rpc.DEADLINE_S)
    if connection.json:
        render.print_json(answer)
        return
    render.console().print(render.occurrence_table([answer.occurrence]))


@with_options(Connection)
def backfill(
    connection: Connection,
    *,
    reminder: ReminderId,
    start: Annotated[
        str, Option("--from", help="An instant, such as 2026-12-01T09:00:00Z: from it on.")
    ],
    end: Annotated[
        str | None, Option("--to", help="An instant: until before it. Else until now.")
    ] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Show them, ring none.")] = False,
    request_id: RequestId = None,
) -> None:
    """Ring what a rule named in a past range and has not rung, at a gentle pace."""
    from tocsin.v1.reminder_service_pb2 import BackfillReminderRequest  # noqa: PLC0415

    from reminders.cli import render, rpc, values  # noqa: PLC0415

    request = BackfillReminderRequest(
        namespace=connection.namespace,
        reminder_id=reminder,
        start_time=values.instant("--from", start),
        end_time=values.instant("--to", end) if end is not None else None,
        validate_only=dry_run,
        request_id=request_id or "",
    )
    with rpc.scheduler(connection) as stub:
        answer = stub.BackfillReminder(request, timeout=rpc.DEADLINE_S)
    if connection.json:
        render.print_json(answer)
        return
    if answer.occurrences:
        render.console().print(render.occurrence_table(answer.occurrences))
    total = f"{answer.occurrence_count}{'+' if answer.occurrence_count_capped else ''}"
    shown = len(answer.occurrences)
    cut = f", the first {shown} shown" if shown < answer.occurrence_count else ""
    done = "those that have not rung will, from now on"
    if dry_run or not answer.occurrence_count:
        done = "nothing was changed"
    render.console().print(f"{total} in the range{cut}: {done}")


@with_options(Connection)
def replay(
    connection: Connection,
    *,
    reminder: ReminderId,
    occurrence: Annotated[str, Argument(metavar="OCCURRENCE", help="As `explain` shows it.")],
    channel: Annotated[
        list[str] | None, Option("--channel", help="Only this one; may be repeated.")
    ] = None,
    subscriber: Annotated[
        list[str] | None,
        Option(
            "--subscriber",
            help="Of a topic, only to this one; may be repeated. Else all whom it did not reach.",
        ),
    ] = None,
    force: Annotated[
        bool, Option("--force", help="Also what was taken, and of a cancelled or paused one.")
    ] = False,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Say what would be sent, send none.")
    ] = False,
    request_id: RequestId = None,
) -> None:
    """Send deliveries of one occurrence again, under the keys that they had. If none of them is,
    it exits with 1 and says why.
    """
    from tocsin.v1.reminder_service_pb2 import ReplayOccurrenceRequest  # noqa: PLC0415

    from reminders.cli import render, rpc  # noqa: PLC0415

    request = ReplayOccurrenceRequest(
        namespace=connection.namespace,
        reminder_id=reminder,
        occurrence_id=occurrence,
        channel_ids=channel or [],
        subscriber_ids=subscriber or [],
        force=force,
        validate_only=dry_run,
        request_id=request_id or "",
    )
    with rpc.scheduler(connection) as stub:
        answer = stub.ReplayOccurrence(request, timeout=rpc.DEADLINE_S)
    if connection.json:
        render.print_json(answer)
        _fail_if_refused(answer)
        return
    sent = "would be sent again" if dry_run else "will be sent again"
    if not answer.deliveries:  # to all subscribers whom it did not reach: counts alone
        line = f"{answer.replay_count:,} {sent}, {answer.suppressed_count:,} have it already"
        render.console().print(line)
        _fail_if_refused(answer)
        return
    render.console().print(render.replay_table(answer.deliveries))
    _fail_if_refused(answer)
    line = f"{answer.replay_count} of {len(answer.deliveries)} {sent}"
    if answer.suppressed_count:
        line += (
            f", {answer.suppressed_count} refused: taken already (--force sends it all the same)"
        )
    render.console().print(line)


def _fail_if_refused(answer: "ReplayOccurrenceResponse") -> None:
    from tocsin.v1 import reminder_service_pb2 as calls  # noqa: PLC0415

    if answer.replay_count or not (answer.deliveries or answer.suppressed_count):
        return
    reasons = {
        calls.REPLAY_VERDICT_ACKNOWLEDGED: "taken already: --force sends it all the same",
        calls.REPLAY_VERDICT_UNDER_WAY: "still being tried by itself: wait, or cancel it",
        calls.REPLAY_VERDICT_CHANNEL_GONE: "the reminder has no such channel any more",
        calls.REPLAY_VERDICT_SUBSCRIBER_GONE: "the topic has no such subscriber any more",
    }
    counts = Counter(each.verdict for each in answer.deliveries)
    if not counts:  # of a topic, where counts are all there is
        counts[calls.REPLAY_VERDICT_ACKNOWLEDGED] = answer.suppressed_count
    told = [f"{count}: {reasons[verdict]}" for verdict, count in counts.items()]
    raise CommandError("nothing is sent again", *told)


def register(app: typer.Typer) -> None:
    """Adds the commands, in the order in which help lists them."""
    for command in (trigger, backfill, replay):
        app.command(rich_help_panel="Client")(command)
